"""Requests that name partitions, groups or producers by the thousand, or one of them a thousand times: a few bytes each
ask for an append, a read, a look into a file, or all that a group committed."""

from collections.abc import Callable
from typing import Any

import pytest

from kquorum.broker.apis import describe_producers
from kquorum.broker.fetch import sessions
from kquorum.broker.fetch.slices import SLICE_MS, Slices
from kquorum.metadata.authorizer.authorizer import Authorizer, AuthorizerConfig
from kquorum.metadata.authorizer.denial_log import DenialLog
from kquorum.metadata.authorizer.gate import RequestAuthorizer
from kquorum.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kquorum.wire.messages.describe_groups import DescribeGroupsRequest
from kquorum.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kquorum.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kquorum.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kquorum.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kquorum.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kquorum.wire.uuids import ZERO_UUID
from tests.support.broker.data_world import ORDERS, ORDERS_ID, Asked, DataWorld
from tests.support.broker.disk_logs import NOW_MS, data
from tests.support.broker.group_world import GROUP, GroupWorld
from tests.support.images import topic_id

ALLOWED = "User:allowed"
EVE = "User:eve"


def fetch(
    *wanted: tuple[int, int], session: tuple[int, int] = (0, -1), named: Any = ORDERS_ID, **how: Any
) -> Any:
    """`wanted` are partitions and offsets."""
    partitions = tuple(
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1_000)
        for index, offset in wanted
    )
    topics = (FetchTopic(topic_id=named, partitions=partitions),) if partitions else ()
    return FetchRequest(
        topics=topics,
        session_id=session[0],
        session_epoch=session[1],
        **{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 100_000} | how,
    )


def produce(*values: tuple[int, str], acks: int = 1) -> ProduceRequest:
    partitions = tuple(PartitionProduceData(index=index, records=data(value)) for index, value in values)
    topic = TopicProduceData(topic_id=ORDERS_ID, partition_data=partitions)
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=(topic,))


def partitions_of(asked: Asked) -> list[Any]:
    return [partition for topic in asked.answer.responses for partition in topic.partitions]


# One partition, often


def test_a_partition_that_a_fetch_names_often_is_read_once_where_the_last_entry_says() -> None:
    world = DataWorld()
    world.append("a", "b")
    world.append("c")
    world.follower_fetches(3)
    [only] = partitions_of(world.ask(fetch(*[(0, 0)] * 5_000, (0, 2), session=(0, 0))))
    assert (only.error_code, len(only.records)) == (ErrorCode.none, len(data("c")))
    assert world.plane.sessions.cached_partitions == 1


def test_a_group_that_is_named_often_is_answered_once() -> None:
    world = GroupWorld()
    world.commit(5)
    groups = (OffsetFetchRequestGroup(group_id=GROUP, topics=None),) * 5_000
    [only] = world.ask(OffsetFetchRequest(groups=groups), 9).answer.groups
    assert [each.committed_offset for each in only.topics[0].partitions] == [5]


def test_a_partition_whose_offset_is_asked_for_often_is_answered_once() -> None:
    world = GroupWorld()
    world.commit(5)
    topics = (OffsetFetchRequestTopics(name=ORDERS, partition_indexes=(0,) * 5_000),)
    groups = (OffsetFetchRequestGroup(group_id=GROUP, topics=topics),)
    [only] = world.ask(OffsetFetchRequest(groups=groups), 9).answer.groups
    assert [each.committed_offset for each in only.topics[0].partitions] == [5]


def test_a_group_that_is_to_be_described_often_is_described_once() -> None:
    world = GroupWorld()
    assert len(world.ask_local(DescribeGroupsRequest(groups=("g",) * 5_000)).groups) == 1
    assert len(world.ask_local(ConsumerGroupDescribeRequest(group_ids=("g",) * 5_000)).groups) == 1


def test_producers_are_told_once_a_partition_and_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    world = DataWorld()
    for producer_id in range(7):
        batch = data("x", producer_id=producer_id, producer_epoch=0, base_sequence=0)
        world.partition().append(world.now_ms, batch, required_acks=1)
    monkeypatch.setattr(describe_producers, "MOST_PRODUCERS", 5)
    request = DescribeProducersRequest(topics=(TopicRequest(name=ORDERS, partition_indexes=(0, 0, 1)),))
    first, again, other = world.ask_now(request).topics[0].partitions
    assert {each.producer_id for each in first.active_producers} == {2, 3, 4, 5, 6}
    assert (again.error_code, again.active_producers) == (ErrorCode.invalid_request, ())
    assert other.error_code is ErrorCode.none


@pytest.mark.parametrize(
    "request_",
    [
        DescribeProducersRequest(topics=(TopicRequest(name=ORDERS, partition_indexes=tuple(range(19_000))),)),
        OffsetForLeaderEpochRequest(
            topics=(
                OffsetForLeaderTopic(
                    topic=ORDERS,
                    partitions=tuple(
                        OffsetForLeaderPartition(partition=index, leader_epoch=0) for index in range(19_000)
                    ),
                ),
            )
        ),
    ],
    ids=["DescribeProducers", "OffsetForLeaderEpoch"],
)
def test_a_question_about_many_partitions_is_answered_in_slices(request_: Any) -> None:
    """They took 65 and 49 ms in one turn."""
    world = DataWorld()
    [topic] = world.ask_now(request_).topics
    assert (world.slices, len(topic.partitions)) == (19_000 // 500 + 1, 19_000)
    assert topic.partitions[0].error_code is ErrorCode.none
    assert topic.partitions[-1].error_code is ErrorCode.unknown_topic_or_partition


# Fetch sessions


def test_an_id_of_zeros_is_no_topics() -> None:
    """Before: it ended the connection, with a traceback in the log."""
    world = DataWorld()
    for session in ((0, -1), (0, 0)):
        [only] = partitions_of(world.ask(fetch((0, 0), session=session, named=ZERO_UUID)))
        assert only.error_code is ErrorCode.unknown_topic_id


def test_sessions_remember_a_bounded_number_of_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before: 40 to 70 MB for each Fetch of 150,000 partitions that did not exist, from any user, for good."""
    monkeypatch.setattr(sessions, "MOST_PARTITIONS", 100)
    world = DataWorld()
    unknown = [(index, 0) for index in range(60)]
    first = world.ask(fetch(*unknown, session=(0, 0))).answer
    assert first.session_id != 0
    refused = world.ask(fetch(*unknown, session=(0, 0))).answer
    assert (refused.session_id, len(refused.responses[0].partitions)) == (0, 60)
    grown = world.ask(fetch(*[(index + 60, 0) for index in range(60)], session=(first.session_id, 1))).answer
    assert grown.error_code is ErrorCode.fetch_session_id_not_found
    assert (len(world.plane.sessions), world.plane.sessions.cached_partitions) == (0, 0)
    assert world.ask(fetch(*unknown, session=(0, 0))).answer.session_id != 0


def test_a_large_session_evicts_no_other_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_PARTITIONS", 100)
    world = DataWorld()
    world.ask(fetch((0, 0), session=(0, 0)))
    world.now_ms += sessions.EVICTABLE_AFTER_MS + 1
    assert world.ask(fetch(*[(index, 0) for index in range(101)], session=(0, 0))).answer.session_id == 0
    assert len(world.plane.sessions) == 1


def test_a_client_that_calls_itself_a_follower_evicts_no_session() -> None:
    """Before: a user without any ACL took all sessions of the broker's consumers."""
    gate = RequestAuthorizer(
        Authorizer(AuthorizerConfig(super_users=frozenset({ALLOWED}))),
        DenialLog(lambda: 0, lambda _line: None),
    )
    world = DataWorld(session_slots=1, authorizer=gate)
    session_id = world.ask(fetch((0, 0), session=(0, 0)), principal=ALLOWED).answer.session_id
    replica = ReplicaState(replica_id=2, replica_epoch=-1)
    spoofed = world.ask(fetch((0, 0), session=(0, 0), replica_state=replica), principal=EVE).answer
    assert (spoofed.session_id, spoofed.responses[0].partitions[0].error_code) == (
        0,
        ErrorCode.topic_authorization_failed,
    )
    follower = world.ask(fetch((0, 0), session=(0, 0), replica_state=replica), principal=ALLOWED).answer
    assert follower.session_id not in (0, session_id)


# Slices


class Turns:
    """A clock that each look at it moves, and turns that the test takes one by one."""

    def __init__(self, world: DataWorld, ms_per_look: int) -> None:
        self.world = world
        self.ms_per_look = ms_per_look
        self.waiting: list[Callable[[], None]] = []
        world.plane.slices = Slices(self.now_ms, self.waiting.append)

    def now_ms(self) -> int:
        self.world.now_ms += self.ms_per_look
        return self.world.now_ms

    def take(self) -> int:
        """How many turns there were."""
        count = 0
        while self.waiting:
            self.waiting.pop(0)()
            self.world.settle()
            count += 1
        return count


@pytest.fixture
def world() -> DataWorld:
    return DataWorld()


def test_a_long_produce_takes_several_turns_and_those_behind_it_wait(world: DataWorld) -> None:
    """Before: 100 batches of 131,072 records took 1.8 s in one turn."""
    turns = Turns(world, SLICE_MS)
    first = world.ask(produce((0, "a"), (1, "b")))
    second = world.ask(produce((0, "c")))
    assert first.is_waiting
    assert second.is_waiting
    assert world.partition(1).log.log_end_offset == 0
    assert turns.take() >= 3
    told = [
        [each.base_offset for each in asked.answer.responses[0].partition_responses]
        for asked in (first, second)
    ]
    assert told == [[0, 0], [1]]
    assert not turns.waiting


def test_a_produce_without_acks_ends_in_its_last_turn(world: DataWorld) -> None:
    turns = Turns(world, SLICE_MS)
    asked = world.ask(produce((0, "a"), (1, "b"), acks=0))
    assert asked.is_waiting
    turns.take()
    assert world.partition(1).log.log_end_offset == 1
    assert not asked.is_waiting


def test_a_produce_that_fails_in_a_later_turn_loses_its_connection(
    world: DataWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = Turns(world, SLICE_MS)
    asked = world.ask(produce((0, "a"), (1, "b")))
    behind = world.ask(produce((0, "c")))

    def fail(*_arguments: Any, **_named: Any) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(type(world.partition(1)), "append", fail)
    turns.waiting.pop(0)()
    monkeypatch.undo()
    turns.take()
    assert asked.raw == [None]
    assert behind.answer.responses[0].partition_responses[0].base_offset == 1


def test_a_long_fetch_takes_several_turns(world: DataWorld) -> None:
    world.append("a")
    world.follower_fetches(1)
    turns = Turns(world, SLICE_MS)
    asked = world.ask(fetch((1, 0), (0, 0)))
    assert asked.is_waiting
    turns.take()
    assert [len(each.records) for each in partitions_of(asked)] == [0, len(data("a"))]


def test_records_that_come_while_a_fetch_is_under_way_are_found(world: DataWorld) -> None:
    turns = Turns(world, SLICE_MS)
    asked = world.ask(fetch((0, 0), (1, 0), max_wait_ms=500_000))
    world.append("a")
    world.follower_fetches(1)
    turns.take()
    assert [len(each.records) for each in partitions_of(asked)] == [len(data("a")), 0]


def test_times_are_looked_up_one_in_a_slice(world: DataWorld) -> None:
    world.append("a")
    world.append("b", index=1)
    world.follower_fetches(1)
    wanted = tuple(ListOffsetsPartition(partition_index=index, timestamp=NOW_MS) for index in (0, 1, 1))
    request = ListOffsetsRequest(replica_id=-2, topics=(ListOffsetsTopic(name=ORDERS, partitions=wanted),))
    told = world.ask_now(request, 11).topics[0].partitions
    assert [(each.partition_index, each.error_code, each.offset) for each in told] == [
        (0, ErrorCode.none, 0),
        (1, ErrorCode.invalid_request, -1),
        (1, ErrorCode.invalid_request, -1),
    ]
    assert world.slices == 2


def test_topics_that_are_not_known_need_no_session() -> None:
    world = DataWorld()
    answer = world.ask(fetch(*[(0, 0)] * 3, named=topic_id(77), session=(0, 0))).answer
    assert [each.error_code for each in answer.responses[0].partitions] == [ErrorCode.unknown_topic_id]
