"""ListOffsets by Kafka's behaviours: ends, times, who may read how far, and what is not available after an election."""

from typing import Any

import pytest

from kquorum.broker.log.partition_log import TimestampedOffset
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from tests.support.broker.data_world import ORDERS, ORDERS_ID, DataWorld
from tests.support.broker.disk_logs import NOW_MS
from tests.support.memory_partition_log import MemoryPartitionLog

VERSIONS = range(1, 12)
LATEST, EARLIEST, MAX_TIME = -1, -2, -3


@pytest.fixture
def world() -> DataWorld:
    """orders-0 has the offsets 0 to 3; 0 to 2 are committed."""
    made = DataWorld()
    made.append("a", "b", "c")
    made.follower_fetches(3)
    made.append("d")
    return made


def listed(
    world: DataWorld, timestamp: int, *, index: int = 0, topic: str = ORDERS, version: int = 11, **how: Any
) -> Any:
    epoch = how.pop("current_leader_epoch", -1)
    asked = ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)
    partitions = (asked,) * how.pop("times", 1)
    request = ListOffsetsRequest(
        topics=(ListOffsetsTopic(name=topic, partitions=partitions),), **{"replica_id": -1} | how
    )
    return world.ask_now(request, version).topics[0].partitions[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_log_has_its_ends_in_every_version(world: DataWorld, version: int) -> None:
    assert (
        listed(world, EARLIEST, version=version).offset,
        listed(world, LATEST, version=version).offset,
    ) == (0, 3)


def test_replicas_see_the_end_of_the_log(world: DataWorld) -> None:
    assert [listed(world, LATEST, replica_id=each).offset for each in (-1, 2, -2)] == [3, 4, 4]


@pytest.mark.parametrize(("after_ms", "offset"), [(-1, 0), (1, 1), (2, 2), (9_999, -1)])
def test_a_time_gives_the_first_record_that_is_not_older(
    world: DataWorld, after_ms: int, offset: int
) -> None:
    told = listed(world, NOW_MS + after_ms)
    assert (told.error_code, told.offset) == (ErrorCode.none, offset)


def test_a_long_search_goes_on_in_other_slices(world: DataWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def in_parts(_log: object, _timestamp_ms: int, from_offset: int) -> TimestampedOffset | int:
        asked.append(from_offset)
        return from_offset + 1 if from_offset < 2 else TimestampedOffset(NOW_MS, 2, 0)

    monkeypatch.setattr(MemoryPartitionLog, "search_time", in_parts)
    assert listed(world, NOW_MS).offset == 2
    assert (asked, world.slices >= 3) == ([0, 1, 2], True)


def test_a_search_ends_at_the_bound(world: DataWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryPartitionLog, "search_time", lambda *_: 3)
    assert listed(world, NOW_MS).offset == -1


def test_the_greatest_timestamp_is_found_and_none_beyond_the_bound(world: DataWorld) -> None:
    told = listed(world, MAX_TIME)
    assert (told.offset, told.timestamp) == (2, NOW_MS + 2)


def test_there_is_no_tiered_storage(world: DataWorld) -> None:
    for timestamp in (-5, -6):
        told = listed(world, timestamp)
        assert (told.error_code, told.offset) == (ErrorCode.none, -1)


@pytest.mark.parametrize(("timestamp", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11)])
def test_a_question_that_came_with_a_later_version_is_unsupported(
    world: DataWorld, timestamp: int, since: int
) -> None:
    before = listed(world, timestamp, version=since - 1).error_code
    assert (before, listed(world, timestamp, version=since).error_code) == (
        ErrorCode.unsupported_version,
        ErrorCode.none,
    )


@pytest.mark.parametrize(
    ("index", "topic", "expected"),
    [
        (2, ORDERS, "not_leader_or_follower"),
        (3, ORDERS, "not_leader_or_follower"),
        (9, ORDERS, "unknown_topic_or_partition"),
        (0, "none", "unknown_topic_or_partition"),
    ],
)
def test_only_a_leader_answers(world: DataWorld, index: int, topic: str, expected: str) -> None:
    assert listed(world, LATEST, index=index, topic=topic).error_code.name == expected


def test_a_debugging_tool_may_ask_a_follower(world: DataWorld) -> None:
    assert listed(world, LATEST, index=2, replica_id=-2).error_code is ErrorCode.none


def test_the_leader_epoch_is_checked(world: DataWorld) -> None:
    codes = [listed(world, LATEST, current_leader_epoch=each).error_code.name for each in (2, 3, 4)]
    assert codes == ["fenced_leader_epoch", "none", "unknown_leader_epoch"]


def test_a_partition_that_is_named_twice_is_refused(world: DataWorld) -> None:
    assert listed(world, LATEST, times=2).error_code is ErrorCode.invalid_request


def test_a_new_leader_does_not_tell_an_end_that_may_be_behind_the_former_ones(world: DataWorld) -> None:
    """Until its high watermark has reached the start of its epoch (KIP-207)."""
    world.change(PartitionChangeRecord(partition_id=0, topic_id=ORDERS_ID, leader=2))
    world.change(PartitionChangeRecord(partition_id=0, topic_id=ORDERS_ID, leader=1))
    assert listed(world, LATEST).error_code is ErrorCode.offset_not_available
    assert listed(world, LATEST, version=4).error_code is ErrorCode.leader_not_available
    assert listed(world, EARLIEST).error_code is ErrorCode.none
    assert listed(world, LATEST, replica_id=2).offset == 4
    world.follower_fetches(4)
    told = listed(world, LATEST)
    assert (told.error_code, told.offset, told.leader_epoch) == (ErrorCode.none, 4, 5)
