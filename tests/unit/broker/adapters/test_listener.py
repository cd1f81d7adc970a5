"""The broker's listener over a real socket: metadata from the cache, administration through a controller."""

import asyncio
from typing import Any

import pytest

from kquorum.broker.apis.registry import BROKER_APIS, FORWARDED_APIS
from kquorum.metadata.authorizer.authorization import Authorization
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.network.authentication import SASL_APIS
from kquorum.network.errors import ConnectionLost
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import Values, as_read, request_of
from tests.support.broker.listening_broker import (
    CREATE,
    IMAGE,
    Broker,
    broker,
    created,
    metadata,
    with_broker,
)
from tests.support.running_controllers import RunningController, eventually, run


def test_what_is_offered_is_what_is_served_and_the_features_are_reported() -> None:
    async def test(node: Broker, _controller: RunningController) -> None:
        answer: Any = await node.ask(
            ApiKey.API_VERSIONS, {"client_software_name": "test", "client_software_version": "1"}
        )
        offered = {entry.api_key for entry in answer.api_keys}
        assert offered == BROKER_APIS.keys() | SASL_APIS | {ApiKey.API_VERSIONS}
        assert ApiKey.JOIN_GROUP in offered
        assert ApiKey.BROKER_HEARTBEAT not in offered
        finalized = {feature.name: feature.max_version_level for feature in answer.finalized_features}
        assert finalized == {"metadata.version": 25}
        assert answer.finalized_features_epoch == IMAGE.provenance.last_contained_offset

    with_broker(test)


def test_an_api_that_is_not_offered_ends_the_connection_at_once() -> None:
    async def test(node: Broker, _controller: RunningController) -> None:

        values = {"client_instance_id": None}
        request = request_of(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, values)
        await node.client.send_request(as_read(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, request), 0)

    with pytest.raises(ConnectionLost):
        with_broker(test)


def test_metadata_needs_no_controller() -> None:
    async def work() -> None:
        async with broker(lambda: None) as node:
            answer = await node.ask(ApiKey.METADATA, metadata())
            assert [topic.name for topic in answer.topics] == ["orders"]
            assert answer.cluster_id == "the-cluster"
            described = await node.ask(
                ApiKey.DESCRIBE_CLUSTER,
                {"include_cluster_authorized_operations": False, "include_fenced_brokers": False},
            )
            assert [each.broker_id for each in described.brokers] == [101]

    run(work())


def test_a_creation_is_forwarded_with_its_client_and_the_answer_comes_back() -> None:
    async def test(node: Broker, controller: RunningController) -> None:
        answer = await node.ask(ApiKey.CREATE_TOPICS, CREATE)
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [("new", ErrorCode.none)]
        (request,) = controller.controller.requests
        assert (request.principal, request.client_id) == ("User:ANONYMOUS", "the-client")
        assert request.client_host == "127.0.0.1"

    with_broker(test)


def test_not_controller_is_never_shown_to_a_client() -> None:
    refusals: list[int] = []

    def answer(request: ControllerRequest) -> Values:
        if len(refusals) < 2:
            refusals.append(1)
            return created(request, ErrorCode.not_controller)
        return created(request)

    async def test(node: Broker, _controller: RunningController) -> None:
        response = await node.ask(ApiKey.CREATE_TOPICS, CREATE)
        assert response.topics[0].error_code is ErrorCode.none

    with_broker(test, answer)
    assert len(refusals) == 2


ACL = {"resource_type": 2, "principal": "User:a", "host": "*", "operation": 3, "permission_type": 3}
ACL_FILTER = {
    "resource_type_filter": 2,
    "resource_name_filter": None,
    "pattern_type_filter": 3,
    "principal_filter": None,
    "host_filter": None,
    "operation": 3,
    "permission_type": 3,
}
CONFIGS = {"resource_type": 2, "resource_name": "orders", "configs": ()}


# The broker judges these first, and refuses them on a connection without authentication.
JUDGED_FIRST = {
    api_key for api_key in FORWARDED_APIS if isinstance(BROKER_APIS[api_key].authorization, Authorization)
}


@pytest.mark.parametrize("api_key", sorted(FORWARDED_APIS - JUDGED_FIRST))
def test_without_a_controller_every_forwarded_request_times_out_with_an_answer(api_key: ApiKey) -> None:
    bodies: dict[ApiKey, dict[str, Any]] = {
        ApiKey.CREATE_TOPICS: CREATE,
        ApiKey.DELETE_TOPICS: {"topics": [{"name": "orders", "topic_id": None}], "timeout_ms": 1000},
        ApiKey.CREATE_PARTITIONS: {
            "topics": [{"name": "orders", "count": 2, "assignments": None}],
            "timeout_ms": 1000,
            "validate_only": False,
        },
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: {"topics": (), "timeout_ms": 1000},
        ApiKey.LIST_PARTITION_REASSIGNMENTS: {"topics": None, "timeout_ms": 1000},
        ApiKey.ALTER_CONFIGS: {"resources": [CONFIGS], "validate_only": False},
        ApiKey.INCREMENTAL_ALTER_CONFIGS: {"resources": [CONFIGS], "validate_only": False},
        ApiKey.ELECT_LEADERS: {"election_type": 0, "topic_partitions": None, "timeout_ms": 1000},
        ApiKey.UNREGISTER_BROKER: {"broker_id": 1},
        ApiKey.DESCRIBE_QUORUM: {"topics": ()},
        ApiKey.UPDATE_FEATURES: {"timeout_ms": 1000, "feature_updates": (), "validate_only": False},
        ApiKey.ADD_RAFT_VOTER: {
            "cluster_id": "c",
            "timeout_ms": 9,
            "voter_id": 4,
            "voter_directory_id": None,
            "listeners": (),
        },
        ApiKey.REMOVE_RAFT_VOTER: {"cluster_id": "c", "voter_id": 4, "voter_directory_id": None},
        ApiKey.ALTER_CLIENT_QUOTAS: {
            "entries": [{"entity": [{"entity_type": "user", "entity_name": None}], "ops": ()}],
            "validate_only": False,
        },
        ApiKey.CREATE_ACLS: {"creations": [ACL | {"resource_name": "orders", "resource_pattern_type": 3}]},
        ApiKey.DELETE_ACLS: {"filters": [ACL_FILTER]},
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: {"deletions": [{"name": "a", "mechanism": 1}], "upsertions": ()},
    }

    async def work() -> Any:
        async with broker(lambda: None, retry_timeout_ms=200) as node:
            return await node.ask(api_key, bodies[api_key])

    answer = run(work())
    lists = (
        getattr(answer, name, None)
        for name in ("responses", "topics", "entries", "results", "filter_results")
    )
    entries = next((each for each in lists if each), [answer])
    assert [entry.error_code for entry in entries] == [ErrorCode.request_timed_out]


def test_requests_of_one_client_are_answered_in_order_though_one_is_forwarded() -> None:
    async def test(node: Broker, _controller: RunningController) -> None:
        creation, listing = await asyncio.gather(
            node.ask(ApiKey.CREATE_TOPICS, CREATE), node.ask(ApiKey.METADATA, metadata("orders"))
        )
        assert creation.topics[0].name == "new"
        assert listing.topics[0].error_code is ErrorCode.none

    with_broker(test)


def test_an_unknown_topic_is_created_once_for_all_who_ask_if_they_agree() -> None:
    answered: list[ControllerRequest] = []

    def answer(request: ControllerRequest) -> None:
        answered.append(request)

    async def test(node: Broker, _controller: RunningController) -> None:
        for _ in range(3):
            listing = await node.ask(ApiKey.METADATA, metadata("new", allow_creation=True))
            assert listing.topics[0].error_code is ErrorCode.unknown_topic_or_partition
        await node.ask(ApiKey.METADATA, metadata("not-wanted", allow_creation=False))
        await eventually(lambda: answered)
        assert [[topic.name for topic in request.body.topics] for request in answered] == [["new"]]
        assert answered[0].client_host == "127.0.0.1"

    with_broker(test, answer, auto_create=True)


def test_automatic_creation_can_be_off() -> None:
    async def test(node: Broker, controller: RunningController) -> None:
        await node.ask(ApiKey.METADATA, metadata("new", allow_creation=True))
        await node.ask(ApiKey.CREATE_TOPICS, CREATE)
        assert len(controller.controller.requests) == 1, "only the client's own creation was forwarded"

    with_broker(test, auto_create=False)
