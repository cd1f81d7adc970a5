"""`Broker.Watch` over real loopback gRPC: what a member's picture becomes."""

import grpc
import pytest

from kquorum.metadata.grpc.broker import watch
from kquorum.wire.metadata_records.cluster import FenceBrokerRecord, UnregisterBrokerRecord
from kquorum.wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
)
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, RemoveTopicRecord
from kquorum.wire.proto import broker_pb2 as pb
from kquorum.wire.uuids import uuid_to_text
from tests.support.controller_world import assigned
from tests.support.grpc_harness import eventually, failure_of, run
from tests.support.grpc_source import FakeSource, partition, topic, topic_id
from tests.support.metadata.grpc_filled_source import change, filled_source
from tests.support.metadata.member_world import member_rig
from tests.support.metadata.watching import Picture, follow, up_to, watching


def test_the_state_is_the_members_part_of_one_image() -> None:
    async def main() -> tuple[Picture, pb.WatchResponse]:
        async with watching(filled_source()) as stub:
            first = await stub.Watch(pb.WatchRequest(broker_id=1)).read()
            return await up_to(stub.Watch(pb.WatchRequest(broker_id=1, all_topics=True)), 6), first

    everything, mine = run(main)
    assert (mine.is_state, mine.is_complete, mine.offset) == (True, True, 6)
    assert [each.topic for each in mine.partitions] == ["orders"]
    assert [each.id for each in mine.brokers] == [1, 2, 3]
    assert everything.leaders() == {"orders-0": 1, "others-0": 2}


def test_only_changes_for_the_member_are_sent() -> None:
    async def main() -> Picture:
        source = filled_source()
        async with watching(source) as stub:
            call = stub.Watch(pb.WatchRequest(broker_id=1))
            picture = await up_to(call, 6)
            source.commit(change(1, leader=2, isr=(2,)), change(2, leader=3))
            source.commit(
                FenceBrokerRecord(id=1, epoch=0), UnregisterBrokerRecord(broker_id=3, broker_epoch=0)
            )
            await up_to(call, 10, picture)
            assert picture.leaders() == {"orders-0": 2}
            assert (picture.brokers[1].fenced, set(picture.brokers)) == (True, {1, 2})
            source.commit(change(2, replicas=(1, 2), isr=(2,)))
            await up_to(call, 11, picture)
            assert picture.leaders() == {"orders-0": 2, "others-0": 3}, "a replica from now on"
            source.commit(change(1, replicas=(2, 3)))
            await up_to(call, 12, picture)
            assert picture.leaders() == {"others-0": 3}, "no replica any more"
            source.commit(RemoveTopicRecord(topic_id=topic_id(2)))
            return await up_to(call, 13, picture)

    assert run(main).partitions == {}


def test_offsets_go_on_when_nothing_changes_for_the_member() -> None:
    async def main() -> Picture:
        source = filled_source()
        async with watching(source) as stub:
            call = stub.Watch(pb.WatchRequest(broker_id=9))
            picture = await up_to(call, 6)
            for _ in range(50):
                source.commit(NoOpRecord())
            return await up_to(call, 56, picture)

    picture = run(main)
    assert picture.partitions == {}
    assert picture.messages < 20, "not one by one"


def test_a_member_resumes_with_what_it_missed() -> None:
    async def main() -> tuple[pb.WatchResponse, pb.WatchResponse]:
        source = filled_source()
        async with watching(source) as stub:
            await up_to(stub.Watch(pb.WatchRequest(broker_id=1)), 6)
            source.commit(change(1, leader=2), change(1, leader=1), change(2, leader=3))
            missed = await stub.Watch(pb.WatchRequest(broker_id=1, from_offset=7)).read()
            nothing = await stub.Watch(pb.WatchRequest(broker_id=1, from_offset=10)).read()
            return missed, nothing

    missed, nothing = run(main)
    assert (missed.is_state, missed.is_complete, missed.offset) == (False, True, 9)
    assert [(each.topic, each.leader, each.leader_epoch) for each in missed.partitions] == [("orders", 1, 2)]
    assert (nothing.is_complete, nothing.offset, len(nothing.partitions)) == (True, 9, 0)


def test_an_offset_that_is_gone_or_never_was_is_refused() -> None:
    source = filled_source()
    source.start = 3

    async def main() -> list[grpc.StatusCode]:
        async with watching(source) as stub:
            calls = [
                stub.Watch(pb.WatchRequest(broker_id=1, from_offset=offset)) for offset in (2, 9_999_999)
            ]
            return [(await failure_of(call.read())).code() for call in calls]

    assert run(main) == [grpc.StatusCode.OUT_OF_RANGE] * 2


def test_a_transaction_is_delivered_whole_or_not_at_all() -> None:
    async def main() -> list[pb.WatchResponse]:
        source = filled_source()
        async with watching(source) as stub:
            call = stub.Watch(pb.WatchRequest(broker_id=1))
            await call.read()
            source.commit(BeginTransactionRecord(name="t"))
            source.commit(change(1, leader=2))
            source.commit(AbortTransactionRecord(reason=None), BeginTransactionRecord(name="t"))
            source.commit(change(1, isr=(2,)))
            source.commit(change(1, leader=2))
            source.commit(EndTransactionRecord())
            told: list[pb.WatchResponse] = []
            while not told or told[-1].offset < 12:
                told.append(await call.read())
            return told

    told = run(main)
    states = [(each.leader, list(each.isr)) for message in told for each in message.partitions]
    assert states == [(2, [2])]


def test_a_large_state_comes_in_messages_of_which_the_last_is_complete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "PARTITIONS_PER_CHUNK", 3)
    monkeypatch.setattr(watch, "PARTITIONS_PER_TURN", 2)

    async def main() -> list[pb.WatchResponse]:
        source = filled_source()
        source.commit(*(partition(1, number) for number in range(1, 8)))
        async with watching(source) as stub:
            call = stub.Watch(pb.WatchRequest(broker_id=1))
            state = [await call.read() for _ in range(3)]
            source.commit(
                *(PartitionChangeRecord(partition_id=n, topic_id=topic_id(1), leader=2) for n in range(8))
            )
            changes: list[pb.WatchResponse] = []
            while len([one for each in changes for one in each.partitions]) < 8:
                changes.append(await call.read())
            return [*state, *(each for each in changes if each.partitions)]

    told = run(main)
    assert [len(each.partitions) for each in told] == [3, 3, 2, 3, 3, 2]
    assert [each.is_state for each in told] == [True] * 3 + [False] * 3
    assert [each.is_complete for each in told] == [False, False, True] * 2


def test_a_member_that_does_not_read_is_cut_off_with_the_offset_to_resume_at() -> None:
    async def main() -> tuple[int, grpc.aio.AioRpcError, Picture]:
        source = FakeSource()
        async with watching(source, watcher_queue_changes=400) as stub:
            call = stub.Watch(pb.WatchRequest(broker_id=1, all_topics=True))
            picture = Picture()
            picture.take(await call.read())
            for first in range(0, 3_000, 500):
                numbers = range(first, first + 500)
                source.commit(
                    # More than the buffers between the two hold: else the member might be waited for until it reads.
                    *(topic(f"{n}-" + "x" * 900, n) for n in numbers),
                    *(partition(n) for n in numbers),
                )
            await eventually(lambda: max(source.reads, default=0) >= 5_000, "the feed has read all")
            error = await failure_of(follow(call, picture, lambda: False))
            reached = picture.offset
            again = stub.Watch(pb.WatchRequest(broker_id=1, all_topics=True, from_offset=reached + 1))
            return reached, error, await up_to(again, source.end - 1, picture)

    reached, error, picture = run(main)
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert int(error.details().rpartition("from_offset=")[2]) >= reached + 1
    assert len(picture.partitions) == 3_000


def test_a_member_that_stops_watching_leaves_nothing_behind() -> None:
    async def main() -> int:
        source = filled_source()
        async with watching(source) as stub:
            for _ in range(3):
                call = stub.Watch(pb.WatchRequest(broker_id=1))
                await call.read()
                call.cancel()
            reads = len(source.reads)
            await eventually(lambda: not _feeds(), "the feed ends")
            source.commit(NoOpRecord())
            return len(source.reads) - reads

    assert run(main) == 0


def _feeds() -> list[str]:
    import asyncio

    return [task.get_name() for task in asyncio.all_tasks() if task.get_name() == "grpc-change-feed"]


def test_when_a_member_fails_its_partitions_are_led_by_another_that_sees_it() -> None:
    async def main() -> dict[str, int]:
        async with member_rig() as rig:
            five, six = await rig.join(5, 6)
            call = rig.stub.Watch(pb.WatchRequest(broker_id=6))
            rig.create(assigned("orders", (5, 6)))
            picture = await up_to(call, rig.source.high_watermark() - 1)
            assert picture.leaders() == {"orders-0": 5}
            rig.world.advance(8_000)
            await rig.heartbeat(6, six)
            rig.world.advance(8_000)
            rig.source.publish()
            await follow(call, picture, lambda: picture.brokers[5].fenced)
            assert (
                await failure_of(rig.heartbeat(5, five - 1))
            ).code() == grpc.StatusCode.FAILED_PRECONDITION
            return picture.leaders()

    assert run(main) == {"orders-0": 6}


def test_topics_are_named_by_kafkas_text_of_their_ids() -> None:
    async def main() -> pb.WatchResponse:
        async with watching(filled_source()) as stub:
            told: pb.WatchResponse = await stub.Watch(pb.WatchRequest(broker_id=1)).read()
            return told

    assert [each.topic_id for each in run(main).partitions] == [uuid_to_text(topic_id(1))]
