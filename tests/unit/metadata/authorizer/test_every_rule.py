"""The table, row by row: without the right, every version is refused in a form that can be sent; with it, none is.

The requests are random ones, so that lists are empty, long, and full of nonsense.
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from kquorum.broker.apis.registry import FORWARDED_APIS
from kquorum.metadata.adapters.listener import controller_listener_apis
from kquorum.metadata.authorizer.codes import Operation
from kquorum.metadata.controller.refusals import RAFT_APIS
from kquorum.metadata.controller_apis import CONTROLLER_APIS, QUESTIONS
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.acl_worlds import ADMIN, acl
from tests.support.controller_world import CLUSTER_ID
from tests.support.hostile_requests import HostileRequests
from tests.support.kio.codec import encode
from tests.support.metadata.listener_world import ListenerWorld

ACTION, ALTER, DESCRIBE = Operation.CLUSTER_ACTION, Operation.ALTER, Operation.DESCRIBE
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
# What Kafka's ControllerApis and KafkaApis ask of the cluster, as they were read.
ON_CLUSTER = {
    ApiKey.VOTE: ACTION,
    ApiKey.BEGIN_QUORUM_EPOCH: ACTION,
    ApiKey.END_QUORUM_EPOCH: ACTION,
    ApiKey.FETCH: ACTION,
    ApiKey.FETCH_SNAPSHOT: ACTION,
    ApiKey.UPDATE_RAFT_VOTER: ACTION,
    ApiKey.ENVELOPE: ACTION,
    ApiKey.BROKER_REGISTRATION: ACTION,
    ApiKey.BROKER_HEARTBEAT: ACTION,
    ApiKey.CONTROLLER_REGISTRATION: ACTION,
    ApiKey.ALTER_PARTITION: ACTION,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: ACTION,
    ApiKey.ALLOCATE_PRODUCER_IDS: ACTION,
    ApiKey.DESCRIBE_QUORUM: DESCRIBE,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: DESCRIBE,
    ApiKey.DESCRIBE_ACLS: DESCRIBE,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: DESCRIBE,
    ApiKey.ADD_RAFT_VOTER: ALTER,
    ApiKey.REMOVE_RAFT_VOTER: ALTER,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ALTER,
    ApiKey.ELECT_LEADERS: ALTER,
    ApiKey.UNREGISTER_BROKER: ALTER,
    ApiKey.UPDATE_FEATURES: ALTER,
    ApiKey.CREATE_ACLS: ALTER,
    ApiKey.DELETE_ACLS: ALTER,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ALTER,
    ApiKey.DESCRIBE_CLUSTER: ALTER,
    ApiKey.ALTER_CLIENT_QUOTAS: ALTER_CONFIGS,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: DESCRIBE_CONFIGS,
    ApiKey.LIST_CONFIG_RESOURCES: DESCRIBE_CONFIGS,
}
TOKEN_APIS = {
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
}
AUTHORIZATION = {
    ErrorCode.cluster_authorization_failed,
    ErrorCode.topic_authorization_failed,
    ErrorCode.group_authorization_failed,
    ErrorCode.delegation_token_authorization_failed,
}
REQUESTS_PER_VERSION = 2


def versions(api_key: ApiKey) -> range:
    low, high = controller_listener_apis()[api_key]
    return range(max(low, supported_versions(api_key)[0]), high + 1)


def error_codes(entity: Any) -> Iterator[ErrorCode]:
    if isinstance(entity, tuple | list):
        for each in entity:
            yield from error_codes(each)
    elif is_dataclass(entity):
        for field in fields(entity):
            value = getattr(entity, field.name)
            if field.name == "error_code":
                yield value
            else:
                yield from error_codes(value)


def test_every_api_of_a_controller_has_a_rule() -> None:
    assert CONTROLLER_APIS.keys() == controller_listener_apis().keys()
    by_entry = {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.DESCRIBE_CONFIGS,
    }
    assert CONTROLLER_APIS.keys() == ON_CLUSTER.keys() | by_entry | TOKEN_APIS
    # What a broker forwards or tells by itself is judged somewhere.
    assert FORWARDED_APIS | QUESTIONS.keys() <= CONTROLLER_APIS.keys()


@pytest.mark.parametrize("api_key", sorted(CONTROLLER_APIS))
def test_a_client_without_rights_changes_and_learns_nothing(api_key: ApiKey) -> None:
    world = ListenerWorld()
    world.world.create({"name": "t0"}, {"name": "t1"})
    before = world.world.controller.committed_image
    requests = HostileRequests(api_key, CLUSTER_ID, "secret")
    for version in versions(api_key):
        for _ in range(REQUESTS_PER_VERSION):
            body = requests.request(api_key, version, before)
            answer = world.ask(api_key, body, version, principal="User:eve")
            encode(answer)
            if api_key in ON_CLUSTER and api_key is not ApiKey.DESCRIBE_CLUSTER:
                found = set(error_codes(answer))
                assert found <= {ErrorCode.cluster_authorization_failed}, (version, body)
    if api_key not in TOKEN_APIS:
        assert world.world.controller.committed_image is before
        assert not world.raft_requests


@pytest.mark.parametrize("api_key", sorted(ON_CLUSTER))
def test_the_right_on_the_cluster_opens_the_door_and_no_other_does(api_key: ApiKey) -> None:
    wanted = ON_CLUSTER[api_key]
    others = [each for each in Operation if each not in (wanted, Operation.ALL)]
    implies = (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
    others = [
        each
        for each in others
        if not (wanted is DESCRIBE and each in implies)
        and not (wanted is DESCRIBE_CONFIGS and each is ALTER_CONFIGS)
    ]
    without = ListenerWorld().allow(*(acl(each) for each in others))
    with_it = ListenerWorld().allow(acl(wanted))
    requests = HostileRequests(3, CLUSTER_ID, "secret")
    for version in versions(api_key):
        body = requests.request(api_key, version, without.world.controller.image)
        refused = without.ask(api_key, body, version)
        served = with_it.ask(api_key, body, version)
        assert not AUTHORIZATION & set(error_codes(served)), version
        assert set(error_codes(refused)) <= {ErrorCode.cluster_authorization_failed}
    assert any(f"denied {wanted.name} on cluster kafka-cluster" in line for line in without.lines)
    assert not any(f"denied {wanted.name} on cluster" in line for line in with_it.lines)


@pytest.mark.parametrize("api_key", sorted(CONTROLLER_APIS))
def test_before_the_acls_are_read_all_but_super_users_get_a_retriable_error(api_key: ApiKey) -> None:
    world = ListenerWorld(is_loaded=False)
    requests = HostileRequests(5, CLUSTER_ID, "secret")
    for version in versions(api_key):
        body = requests.request(api_key, version, world.world.controller.image)
        answer = world.ask(api_key, body, version)
        encode(answer)
        codes = set(error_codes(answer))
        again = ErrorCode.broker_not_available if api_key in RAFT_APIS else ErrorCode.not_controller
        if api_key in ON_CLUSTER:
            assert codes <= {again}, version
        assert not AUTHORIZATION & codes
        if api_key in ON_CLUSTER:
            assert not AUTHORIZATION & set(error_codes(world.ask(api_key, body, version, principal=ADMIN)))
