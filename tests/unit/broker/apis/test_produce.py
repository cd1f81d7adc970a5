"""Produce by Kafka's behaviours: which error a partition gets, when acks=all is answered, and what acks=0 hears."""

from typing import Any

import pytest

from kquorum.wire.compression import CompressionCodec
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.protocol.headers import NoAnswer
from tests.support.broker.data_world import ORDERS, ORDERS_ID, Asked, DataWorld
from tests.support.broker.disk_logs import data
from tests.support.images import topic_id

VERSIONS = range(3, 14)


def produce(
    world: DataWorld,
    *records: tuple[int, bytes | None],
    topic: str = ORDERS,
    named: Any = ORDERS_ID,
    acks: int = -1,
    timeout_ms: int = 1_000,
    version: int = 13,
) -> Asked:
    partitions = tuple(PartitionProduceData(index=index, records=each) for index, each in records)
    request = ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=(TopicProduceData(name=topic, topic_id=named, partition_data=partitions),),
    )
    return world.ask(request, version)


def outcomes(asked: Asked) -> dict[int, Any]:
    return {
        partition.index: partition
        for topic in asked.answer.responses
        for partition in topic.partition_responses
    }


def error(asked: Asked, index: int = 0) -> ErrorCode:
    code: ErrorCode = outcomes(asked)[index].error_code
    return code


@pytest.mark.parametrize("version", VERSIONS)
def test_offsets_follow_each_other_in_every_version(version: int) -> None:
    world = DataWorld()
    first = outcomes(produce(world, (0, data("a", "b")), acks=1, version=version))[0]
    second = outcomes(produce(world, (0, data("c")), acks=1, version=version))[0]
    assert [(each.error_code, each.base_offset, each.log_append_time_ms) for each in (first, second)] == [
        (ErrorCode.none, 0, -1),
        (ErrorCode.none, 2, -1),
    ]


def test_with_all_acks_the_answer_waits_for_the_followers() -> None:
    world = DataWorld()
    asked = produce(world, (0, data("a")), (1, data("b")))
    world.settle()
    assert asked.is_waiting
    world.follower_fetches(1, index=0)
    assert asked.is_waiting
    world.follower_fetches(1, index=1)
    assert {index: each.error_code for index, each in outcomes(asked).items()} == {
        0: ErrorCode.none,
        1: ErrorCode.none,
    }
    assert len(world.plane.waits) == 0


def test_without_other_replicas_all_acks_are_there_at_once() -> None:
    world = DataWorld()
    asked = produce(world, (0, data("a")), topic="single", named=topic_id(2))
    assert error(asked) is ErrorCode.none


def test_followers_that_are_too_late_leave_the_records_where_they_are() -> None:
    world = DataWorld()
    asked = produce(world, (0, data("a")), timeout_ms=100)
    world.pass_time(99)
    assert asked.is_waiting
    world.pass_time(1)
    assert error(asked) is ErrorCode.request_timed_out
    assert world.partition().log.log_end_offset == 1


def test_a_producer_hears_at_once_that_the_leader_changed() -> None:
    world = DataWorld()
    asked = produce(world, (0, data("a")))
    world.change(PartitionChangeRecord(partition_id=0, topic_id=ORDERS_ID, leader=2))
    assert error(asked) is ErrorCode.not_leader_or_follower
    told = outcomes(asked)[0].current_leader
    assert (told.leader_id, told.leader_epoch) == (2, 4)
    assert [(each.node_id, each.host, each.port) for each in asked.answer.node_endpoints] == [(2, "b2", 9002)]


def test_below_min_insync_replicas_nothing_is_written() -> None:
    world = DataWorld(min_insync_replicas=2)
    world.change(PartitionChangeRecord(partition_id=0, topic_id=ORDERS_ID, isr=(1,)))
    assert error(produce(world, (0, data("a")))) is ErrorCode.not_enough_replicas
    assert world.partition().log.log_end_offset == 0
    assert error(produce(world, (0, data("a")), acks=1)) is ErrorCode.none


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (2, ErrorCode.not_leader_or_follower),
        (3, ErrorCode.not_leader_or_follower),
        (9, ErrorCode.unknown_topic_or_partition),
    ],
)
def test_an_error_concerns_its_partition_alone(index: int, expected: ErrorCode) -> None:
    world = DataWorld()
    asked = produce(world, (index, data("a")), (0, data("b")), acks=1)
    assert error(asked, index) is expected
    assert (outcomes(asked)[index].base_offset, outcomes(asked)[index].log_start_offset) == (-1, -1)
    assert error(asked, 0) is ErrorCode.none


def test_a_topic_id_that_no_topic_has_is_unknown() -> None:
    assert (
        error(produce(DataWorld(), (0, data("a")), named=topic_id(77), acks=1)) is ErrorCode.unknown_topic_id
    )


def test_only_three_kinds_of_acks_are_lawful() -> None:
    world = DataWorld()
    assert error(produce(world, (0, data("a")), acks=3)) is ErrorCode.invalid_required_acks
    assert world.partition().log.log_end_offset == 0


class TestShape:
    """One batch of magic 2 for each partition."""

    @pytest.mark.parametrize(
        "records", [None, b"", b"\0" * 20, data("a")[:-1], data("a") + data("b")], ids=range(5)
    )
    def test_anything_else_is_an_invalid_record(self, records: bytes | None) -> None:
        world = DataWorld()
        asked = produce(world, (0, records), acks=1)
        assert error(asked) is ErrorCode.invalid_record
        assert outcomes(asked)[0].error_message
        assert world.partition().log.log_end_offset == 0

    def test_a_cut_tail_is_no_second_batch(self) -> None:
        world = DataWorld()
        assert error(produce(world, (0, data("a") + data("b")[:65]), acks=1)) is ErrorCode.none
        assert world.partition().log.log_end_offset == 1

    def test_an_older_format_is_refused(self) -> None:
        older = bytearray(data("a"))
        older[16] = 1
        assert error(produce(DataWorld(), (0, bytes(older)), acks=1)) is ErrorCode.invalid_record

    @pytest.mark.parametrize(("version", "expected"), [(6, "unsupported_compression_type"), (7, "none")])
    def test_zstd_comes_with_version_7(self, version: int, expected: str) -> None:
        records = data("a", codec=CompressionCodec.ZSTD)
        assert error(produce(DataWorld(), (0, records), acks=1, version=version)).name == expected


def test_a_transactional_batch_of_no_transactional_id_refuses_the_whole_request() -> None:
    records = data("a", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    world = DataWorld()
    asked = produce(world, (0, records), (1, data("b")), acks=1)
    assert {each.error_code for each in outcomes(asked).values()} == {
        ErrorCode.transactional_id_authorization_failed
    }
    assert world.partition(1).log.log_end_offset == 0


def test_without_acks_there_is_no_answer_and_an_error_ends_the_connection() -> None:
    world = DataWorld()
    assert isinstance(produce(world, (0, data("a")), acks=0).raw[0], NoAnswer)
    assert world.partition().log.log_end_offset == 1
    assert produce(world, (0, data("a")), (9, data("b")), acks=0).raw == [None]


def test_a_client_that_leaves_is_waited_for_no_more() -> None:
    world = DataWorld()
    asked = produce(world, (0, data("a")))
    asked.leave()
    assert len(world.plane.waits) == 0
    world.follower_fetches(1)
    assert asked.raw == [None]


def test_a_broker_that_stops_ends_the_connections_of_those_who_wait() -> None:
    world = DataWorld()
    asked = produce(world, (0, data("a")))
    world.plane.waits.close()
    assert asked.raw == [None]
    assert produce(world, (0, data("b"))).raw == [None]
