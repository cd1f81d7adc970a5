"""The rights that the requests of transactions need, and the coordinator that is found."""

from dataclasses import replace
from uuid import UUID

import pytest

from kquorum.broker.apis.registry import BROKER_APIS
from kquorum.broker.coordinators.partitioning import TRANSACTIONS_TOPIC
from kquorum.broker.log.producer_state import ProducerEpoch
from kquorum.metadata.authorizer.authorizer import Authorizer, AuthorizerConfig
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.metadata.authorizer.denial_log import DenialLog
from kquorum.metadata.authorizer.gate import RequestAuthorizer
from kquorum.wire.messages.describe_transactions import DescribeTransactionsRequest
from kquorum.wire.messages.find_coordinator import FindCoordinatorRequest
from kquorum.wire.messages.list_transactions import ListTransactionsRequest
from kquorum.wire.metadata_records.security import AccessControlEntryRecord
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.broker.data_world import ORDERS, DataWorld
from tests.support.broker.group_world import GROUP
from tests.support.broker.transaction_world import (
    FIRST_PRODUCER,
    MINE,
    PLACE,
    TransactionWorld,
    error_of_offsets,
    error_of_produce,
    errors_of,
)

Grant = tuple[ResourceType, str, Operation]
ID_WRITE: Grant = (ResourceType.TRANSACTIONAL_ID, MINE, Operation.WRITE)
ID_DESCRIBE: Grant = (ResourceType.TRANSACTIONAL_ID, MINE, Operation.DESCRIBE)
TOPIC_WRITE: Grant = (ResourceType.TOPIC, ORDERS, Operation.WRITE)
TOPIC_READ: Grant = (ResourceType.TOPIC, ORDERS, Operation.READ)
GROUP_READ: Grant = (ResourceType.GROUP, GROUP, Operation.READ)
FIRST = ProducerEpoch(FIRST_PRODUCER, 0)
OF_BROKERS: Grant = (ResourceType.CLUSTER, "kafka-cluster", Operation.CLUSTER_ACTION)


def restricted(*grants: Grant) -> TransactionWorld:
    """An open transaction of a producer that has these rights alone."""
    world = TransactionWorld()
    world.produce(world.producer())
    world.change(
        *[
            AccessControlEntryRecord(
                id=UUID(int=number + 1),
                resource_type=resource_type,
                resource_name=name,
                pattern_type=3,
                principal="User:*",
                host="*",
                operation=operation,
                permission_type=3,
            )
            for number, (resource_type, name, operation) in enumerate(grants)
        ]
    )
    gate = RequestAuthorizer(Authorizer(AuthorizerConfig()), DenialLog(lambda: 0, lambda _line: None))
    world.services = replace(world.services, authorizer=gate)
    return world


def found(world: DataWorld, version: int = 6, key: str = MINE) -> tuple[str, int]:
    if version < 4:
        answer = world.ask_now(FindCoordinatorRequest(key=key, key_type=1), version)
    else:
        request = FindCoordinatorRequest(coordinator_keys=(key,), key_type=1)
        [answer] = world.ask_now(request, version).coordinators
    return answer.error_code.name, answer.node_id


@pytest.mark.parametrize("version", range(1, BROKER_APIS[ApiKey.FIND_COORDINATOR].versions[1] + 1))
def test_the_leader_of_the_partition_coordinates(version: int) -> None:
    world = TransactionWorld(txn_follower=True)
    assert found(world, version) == ("none", 1)
    world.elect_state(2)
    assert found(world, version) == ("none", 2)


def test_the_first_question_creates_the_topic() -> None:
    created: list[str] = []
    assert found(DataWorld(create_internal_topic=created.append)) == ("coordinator_not_available", -1)
    assert created == [TRANSACTIONS_TOPIC]


@pytest.mark.parametrize(
    ("grants", "expected"),
    [((), "transactional_id_authorization_failed"), ((ID_DESCRIBE,), "none"), ((ID_WRITE,), "none")],
)
def test_to_find_the_coordinator(grants: tuple[Grant, ...], expected: str) -> None:
    assert found(restricted(*grants))[0] == expected


@pytest.mark.parametrize("is_allowed", [False, True])
def test_to_take_over_an_id_and_to_end_its_transaction(is_allowed: bool) -> None:
    world = restricted(*[ID_WRITE] * is_allowed)
    refused = "transactional_id_authorization_failed"
    ended = world.end(FIRST).answer.error_code.name
    assert ended == ("none" if is_allowed else refused)
    assert world.init().error_code.name == ("none" if is_allowed else refused)


@pytest.mark.parametrize(
    ("grants", "expected"),
    [
        ((), "transactional_id_authorization_failed"),
        ((ID_WRITE,), "topic_authorization_failed"),
        ((ID_WRITE, TOPIC_WRITE), "none"),
    ],
)
def test_to_add_partitions(grants: tuple[Grant, ...], expected: str) -> None:
    world = restricted(*grants)
    assert errors_of(world.add(FIRST).answer) == {PLACE: expected}
    assert error_of_produce(world.produce(FIRST, sequence=1).answer) == expected


@pytest.mark.parametrize("is_allowed", [False, True])
def test_to_verify_as_a_broker(is_allowed: bool) -> None:
    world = restricted(*[OF_BROKERS] * is_allowed)
    answer = world.add_as_broker(FIRST, verify_only=True).answer
    assert answer.error_code.name == ("none" if is_allowed else "cluster_authorization_failed")
    assert bool(answer.results_by_transaction) is is_allowed


@pytest.mark.parametrize(
    ("grants", "expected"),
    [
        ((), "transactional_id_authorization_failed"),
        ((ID_WRITE,), "group_authorization_failed"),
        ((ID_WRITE, GROUP_READ), "none"),
    ],
)
def test_to_add_offsets(grants: tuple[Grant, ...], expected: str) -> None:
    assert restricted(*grants).add_offsets(FIRST) == expected


@pytest.mark.parametrize(
    ("grants", "expected"),
    [
        ((), "transactional_id_authorization_failed"),
        ((ID_WRITE,), "group_authorization_failed"),
        ((ID_WRITE, GROUP_READ), "topic_authorization_failed"),
        ((ID_WRITE, GROUP_READ, TOPIC_READ), "none"),
    ],
)
def test_to_commit_offsets(grants: tuple[Grant, ...], expected: str) -> None:
    asked = restricted(*grants).commit_in_transaction(FIRST, 7)
    assert error_of_offsets(asked.answer) == expected


@pytest.mark.parametrize(
    ("grants", "listed", "described", "topics"),
    [
        ((), 0, "transactional_id_authorization_failed", 0),
        ((ID_DESCRIBE,), 1, "none", 0),
        ((ID_DESCRIBE, TOPIC_READ), 1, "none", 1),
    ],
)
def test_to_see_transactions(grants: tuple[Grant, ...], listed: int, described: str, topics: int) -> None:
    world = restricted(*grants)
    assert len(world.ask_local(ListTransactionsRequest()).transaction_states) == listed
    request = DescribeTransactionsRequest(transactional_ids=(MINE,))
    [answer] = world.ask_local(request).transaction_states
    assert (answer.error_code.name, len(answer.topics)) == (described, topics)


def test_a_client_that_may_not_write_brings_no_marker_into_a_topic() -> None:
    """With transaction.version 2 the leader adds the partitions of a Produce to the transaction. A client with an id of
    its own and no right to the topic had them added before it was refused, and each end of its transaction wrote a
    marker into the topic."""
    world = restricted(ID_WRITE)
    before = world.transaction().partitions
    asked = world.produce(FIRST, index=1)
    assert error_of_produce(asked.answer) == "topic_authorization_failed"
    assert world.transaction().partitions == before
    world.end(FIRST)
    world.settle()
    assert world.partition(1).log.log_end_offset == 0


def test_a_client_brings_no_marker_into_the_topics_of_coordinators() -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.produce(producer)
    before = world.transaction().partitions
    asked = world.produce(producer, topic=TRANSACTIONS_TOPIC)
    assert error_of_produce(asked.answer) == "invalid_topic_exception"
    assert world.transaction().partitions == before
