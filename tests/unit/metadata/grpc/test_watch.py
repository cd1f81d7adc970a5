"""Inspect.Watch over real loopback gRPC."""

import asyncio
from collections.abc import Coroutine
from typing import Any
from uuid import UUID

import grpc
import pytest

from kquorum.metadata.changes import Change, ChangeKind
from kquorum.metadata.grpc.feed import Watcher
from kquorum.wire.control_records import (
    KRaftVersionFeature,
    LeaderChangeMessage,
    LeaderChangeVoter,
    Voter,
    VoterEndpoint,
    VotersRecord,
)
from kquorum.wire.metadata_records.cluster import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from kquorum.wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
)
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, RemoveTopicRecord
from kquorum.wire.proto import inspect_pb2 as pb
from kquorum.wire.schema import MetadataRecord
from kquorum.wire.uuids import uuid_to_text
from tests.support.grpc_harness import Rig, eventually, failure_of, run, serving, take
from tests.support.grpc_source import FakeSource, partition, register_broker, topic, topic_id


def leader_change(number: int, leader: int, isr: tuple[int, ...]) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=topic_id(number), leader=leader, isr=isr)


def filled_source() -> FakeSource:
    """Offsets: 0 and 1 brokers, 2 topic, 3 partition."""
    source = FakeSource()
    source.commit(register_broker(1), register_broker(2))
    source.commit(topic("orders", 1), partition(1))
    return source


def watched(
    count: int,
    *commits: tuple[MetadataRecord, ...],
    request: pb.WatchRequest | None = None,
    source: FakeSource | None = None,
) -> list[pb.Change]:
    """The marker, then `count` changes, when each of `commits` is committed after the marker."""

    async def main() -> list[pb.Change]:
        async with serving(source or filled_source()) as rig:
            call = rig.stub.Watch(request or pb.WatchRequest())
            changes = await take(call, 1)
            for records in commits:
                rig.source.commit(*records)
            return [*changes, *await take(call, count)]

    return run(main)


def kinds(changes: list[pb.Change]) -> list[tuple[int, str]]:
    return [(change.offset, pb.ChangeKind.Name(change.kind)) for change in changes]


def test_the_stream_begins_with_where_it_begins() -> None:
    marker = watched(0)[0]
    assert (marker.kind, marker.offset, marker.epoch) == (pb.INITIAL_STATE, 3, 3)
    assert marker.initial_state == pb.InitialState(
        cluster_id="kquorum-test-cluster-00",
        node_id=7,
        next_offset=4,
        high_watermark=4,
        leader_id=2,
        leader_epoch=3,
    )


def test_a_topic_is_created_led_by_another_and_deleted() -> None:
    changes = watched(
        4,
        (topic("payments", 2), partition(2)),
        (leader_change(2, leader=2, isr=(2,)),),
        (RemoveTopicRecord(topic_id=topic_id(2)),),
    )[1:]
    assert kinds(changes) == [
        (4, "TOPIC_CREATED"),
        (5, "PARTITION_CREATED"),
        (6, "PARTITION_CHANGED"),
        (7, "TOPIC_DELETED"),
    ]
    created, moved, deleted = changes[1], changes[2], changes[3]
    assert created.partition == pb.Partition(
        topic="payments", topic_id=uuid_to_text(topic_id(2)), leader=1, replicas=[1, 2], isr=[1, 2]
    )
    assert not created.HasField("previous")
    assert (moved.partition.leader, list(moved.partition.isr)) == (2, [2])
    assert (moved.partition.leader_epoch, moved.partition.partition_epoch) == (1, 1)
    assert moved.previous == created.partition
    assert deleted.topic == pb.Topic(name="payments", id=uuid_to_text(topic_id(2)))


def test_a_change_of_a_partition_of_the_image_knows_what_it_was_before() -> None:
    change = watched(1, (leader_change(1, leader=-1, isr=(1,)),))[1]
    assert (change.previous.leader, change.partition.leader, change.partition.leader_epoch) == (1, -1, 1)
    assert change.partition.topic == "orders"


def test_two_changes_of_one_partition_in_one_commit_are_both_sent() -> None:
    changes = watched(2, (leader_change(1, leader=2, isr=(2,)), leader_change(1, leader=1, isr=(1,))))[1:]
    assert [(change.previous.leader, change.partition.leader) for change in changes] == [(1, 2), (2, 1)]
    assert [change.partition.leader_epoch for change in changes] == [1, 2]


def test_brokers_come_fall_and_leave() -> None:
    changes = watched(
        7,
        (register_broker(3, epoch=9, fenced=True),),
        (UnfenceBrokerRecord(id=3, epoch=9), FenceBrokerRecord(id=3, epoch=9)),
        (BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=9, fenced=-1),),
        (BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=9, in_controlled_shutdown=1),),
        (BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=9, fenced=1),),
        (UnregisterBrokerRecord(broker_id=3, broker_epoch=9),),
    )[1:]
    assert [kind for _, kind in kinds(changes)] == [
        "BROKER_REGISTERED",
        "BROKER_UNFENCED",
        "BROKER_FENCED",
        "BROKER_UNFENCED",
        "BROKER_IN_CONTROLLED_SHUTDOWN",
        "BROKER_FENCED",
        "BROKER_REMOVED",
    ]
    registered = changes[0].broker
    assert (registered.id, registered.epoch, registered.fenced) == (3, 9, True)
    assert registered.endpoints[0] == pb.Endpoint(name="PLAINTEXT", host="localhost", port=9092)


def test_only_the_kinds_asked_for_come() -> None:
    request = pb.WatchRequest(kinds=[pb.TOPIC_DELETED])
    changes = watched(
        1, (topic("a", 2), partition(2)), (RemoveTopicRecord(topic_id=topic_id(2)),), request=request
    )
    assert kinds(changes) == [(3, "INITIAL_STATE"), (6, "TOPIC_DELETED")]


def test_a_watch_from_an_offset_tells_the_past_and_goes_on() -> None:
    source = filled_source()
    source.commit(leader_change(1, leader=2, isr=(2,)))
    changes = watched(3, (topic("payments", 2),), request=pb.WatchRequest(from_offset=3), source=source)
    assert kinds(changes) == [
        (2, "INITIAL_STATE"),
        (3, "PARTITION_CREATED"),
        (4, "PARTITION_CHANGED"),
        (5, "TOPIC_CREATED"),
    ]
    assert (changes[2].previous.leader, changes[2].partition.leader_epoch) == (1, 1)


def test_a_watcher_resumes_from_a_recent_image_and_not_from_the_start_of_the_log() -> None:
    async def main() -> tuple[list[pb.Change], list[int]]:
        async with serving(filled_source()) as rig:
            rig.source.commit(NoOpRecord())  # the image at offset 5 is kept
            rig.source.commit(leader_change(1, leader=2, isr=(2,)))
            rig.source.reads.clear()
            changes = await take(rig.stub.Watch(pb.WatchRequest(from_offset=5)), 2)
            return changes, rig.source.reads

    changes, reads = run(main)
    assert kinds(changes) == [(4, "INITIAL_STATE"), (5, "PARTITION_CHANGED")]
    assert changes[1].previous.leader == 1
    assert reads == [5]


def test_a_transaction_is_shown_when_it_ends_and_an_aborted_one_never() -> None:
    async def main() -> tuple[list[pb.Change], list[pb.Change]]:
        async with serving(filled_source()) as rig:
            call = rig.stub.Watch(pb.WatchRequest())
            await take(call, 1)
            rig.source.append(BeginTransactionRecord(), leader_change(1, leader=-1, isr=(1,)))
            rig.source.append(AbortTransactionRecord())
            rig.source.append(BeginTransactionRecord(), leader_change(1, leader=2, isr=(2,)))
            rig.source.commit_all()
            during = await take(rig.stub.Watch(pb.WatchRequest(from_offset=4)), 1)
            rig.source.append(EndTransactionRecord())
            rig.source.commit_all()
            return during, await take(call, 1)

    during, after = run(main)
    assert kinds(during) == [(3, "INITIAL_STATE")]
    assert kinds(after) == [(8, "PARTITION_CHANGED")]
    assert (after[0].previous.leader, after[0].partition.leader, after[0].partition.leader_epoch) == (1, 2, 1)


def test_an_offset_that_the_log_no_longer_explains_is_out_of_range() -> None:
    source = filled_source()
    source.start = 2

    async def main() -> list[grpc.aio.AioRpcError]:
        async with serving(source) as rig:
            return [
                await failure_of(take(rig.stub.Watch(pb.WatchRequest(from_offset=offset)), 1))
                for offset in (1, 3, 9_999_999)
            ]

    below, unexplained, above = run(main)
    assert {error.code() for error in (below, unexplained, above)} == {grpc.StatusCode.OUT_OF_RANGE}
    assert "2 to 4" in below.details()
    assert "earliest offset to watch from is 4" in unexplained.details()
    assert "high watermark of node 7, 4" in above.details()


def test_a_watcher_that_does_not_read_is_cut_off_with_the_offset_to_resume_at() -> None:
    async def main() -> tuple[list[int], grpc.aio.AioRpcError, list[int]]:
        async with serving(filled_source(), watcher_queue_changes=600) as rig:
            call = rig.stub.Watch(pb.WatchRequest())
            await take(call, 1)
            commit_topics(rig.source, turns=10)
            await eventually(lambda: 4 + 500 * 9 in rig.source.reads, "the feed has read all")
            seen: list[int] = []
            error = await failure_of(_drain(call, seen))
            resume = int(error.details().rpartition("from_offset=")[2])
            again = await take(rig.stub.Watch(pb.WatchRequest(from_offset=resume)), 2)
            return seen, error, [change.offset for change in again]

    seen, error, again = run(main)
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "too slow" in error.details()
    assert 0 < len(seen) < 5000
    assert seen == list(range(4, 4 + len(seen)))
    assert again == [seen[-1], seen[-1] + 1]  # the marker stands at the last change seen: nothing is lost


def test_a_burst_larger_than_the_queue_does_not_cut_off_a_watcher_that_reads() -> None:
    async def main() -> list[int]:
        async with serving(filled_source(), watcher_queue_changes=50) as rig:
            call = rig.stub.Watch(pb.WatchRequest())
            await take(call, 1)
            commit_topics(rig.source, turns=10)
            return [change.offset for change in await take(call, 5000)]

    assert run(main) == list(range(4, 5004))


def test_a_watcher_that_reads_is_not_held_up_for_long_by_one_that_does_not() -> None:
    async def main() -> list[int]:
        async with serving(filled_source(), watcher_queue_changes=600) as rig:
            stuck = rig.stub.Watch(pb.WatchRequest())
            await take(stuck, 1)
            call = rig.stub.Watch(pb.WatchRequest())
            await take(call, 1)
            commit_topics(rig.source, turns=10)
            return [change.offset for change in await take(call, 5000)]

    assert run(main) == list(range(4, 5004))


def commit_topics(source: FakeSource, *, turns: int) -> None:
    """500 topics in each turn, with names that fill gRPC's own buffers soon."""
    for first in range(10, 10 + 500 * turns, 500):
        source.commit(*(topic(f"{number}-" + "x" * 200, number) for number in range(first, first + 500)))


async def _drain(call: grpc.aio.UnaryStreamCall, seen: list[int]) -> None:
    while True:
        seen.append((await call.read()).offset)


def test_a_watcher_that_goes_away_leaves_nothing_behind() -> None:
    async def main() -> int:
        async with serving(filled_source()) as rig:
            for _ in range(3):
                call = rig.stub.Watch(pb.WatchRequest())
                await take(call, 1)
                call.cancel()
            await eventually(lambda: not _feed_is_running(), "the feed ends with its last watcher")
            rig.source.reads.clear()
            rig.source.commit(NoOpRecord())
            return len(rig.source.reads)

    assert run(main) == 0


def _feed_is_running() -> bool:
    import asyncio

    return any(task.get_name() == "grpc-change-feed" for task in asyncio.all_tasks())


def test_a_record_that_contradicts_the_state_ends_the_stream_with_its_offset() -> None:
    async def main() -> grpc.aio.AioRpcError:
        async with serving(filled_source()) as rig:
            call = rig.stub.Watch(pb.WatchRequest())
            await take(call, 1)
            rig.source.append(leader_change(99, leader=1, isr=(1,)))
            rig.source.commit_all()
            return await failure_of(take(call, 1))

    error = run(main)
    assert error.code() == grpc.StatusCode.DATA_LOSS
    assert "4" in error.details()
    assert uuid_to_text(topic_id(99)) in error.details()


@pytest.mark.parametrize("request_type", [pb.WatchRequest(), pb.WatchRequest(from_offset=4)])
def test_a_stopping_node_ends_its_streams(request_type: pb.WatchRequest) -> None:
    async def main() -> grpc.aio.AioRpcError:
        rig: Rig
        async with serving(filled_source()) as rig:
            call = rig.stub.Watch(request_type)
            await take(call, 1)
            await rig.server.stop(5.0)
            return await failure_of(take(call, 1))

    error = run(main)
    assert error.code() == grpc.StatusCode.UNAVAILABLE
    assert "node 7 is stopping" in error.details()


def test_a_stopping_server_closes_its_connections_when_its_streams_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A connection that is closed earlier may lose the status of a stream."""
    open_at_stop: list[int] = []

    async def main() -> None:
        rig: Rig
        async with serving(filled_source()) as rig:
            server = rig.server._server
            stop = server.stop

            async def noting_stop(grace: float | None) -> None:
                open_at_stop.append(rig.server._calls.open)
                await stop(grace)

            monkeypatch.setattr(server, "stop", noting_stop)
            call = rig.stub.Watch(pb.WatchRequest())
            await take(call, 1)
            await rig.server.stop(5.0)
            assert (await failure_of(take(call, 1))).code() == grpc.StatusCode.UNAVAILABLE

    run(main)
    assert open_at_stop[0] == 0


def test_a_node_that_has_just_started_says_so_instead_of_telling_old_news() -> None:
    unknowing, loading, behind = filled_source(), filled_source(), filled_source()
    unknowing.committed = -1
    loading.start, loading.image = 2, FakeSource().image
    behind.image = FakeSource().image

    async def refusal(source: FakeSource) -> grpc.aio.AioRpcError:
        async with serving(source) as rig:
            return await failure_of(take(rig.stub.Watch(pb.WatchRequest()), 1))

    async def news(source: FakeSource) -> list[pb.Change]:
        async with serving(source) as rig:
            call = rig.stub.Watch(pb.WatchRequest())
            marker = await take(call, 1)
            source.append(leader_change(1, leader=2, isr=(2,)))
            source.commit_all()
            return [*marker, *await take(call, 1)]

    errors = [run(lambda source=source: refusal(source)) for source in (unknowing, loading)]  # type: ignore[misc]
    assert {error.code() for error in errors} == {grpc.StatusCode.UNAVAILABLE}
    assert "does not know yet what is committed" in errors[0].details()
    assert "loading its snapshot" in errors[1].details()
    assert kinds(run(lambda: news(behind))) == [(3, "INITIAL_STATE"), (4, "PARTITION_CHANGED")]


@pytest.mark.parametrize(("taken_in_time", "all_taken"), [(30, True), (29, False)])
def test_a_watcher_that_reads_slowly_is_waited_for_and_one_that_hardly_reads_is_not(
    monkeypatch: pytest.MonkeyPatch, taken_in_time: int, all_taken: bool
) -> None:
    """A queue of 600: a twentieth of it is expected within the feed's patience."""

    async def main() -> int:
        watcher = Watcher((), 0, 600)
        subject: Any = None
        watcher.offer(Change(ChangeKind.TOPIC_CREATED, offset, 1, 0, subject) for offset in range(500))
        changes = watcher.changes()
        taken = 0

        async def wait_for(room: Coroutine[Any, Any, bool], _patience: float) -> None:
            nonlocal taken
            room.close()
            for _ in range(taken_in_time):
                await anext(changes)
                taken += 1
            raise TimeoutError

        monkeypatch.setattr(asyncio, "wait_for", wait_for)
        await watcher.wait_for_room()
        monkeypatch.undo()
        return taken

    assert (run(main) >= 200) is all_taken


DIRECTORY = UUID(int=77)
ELECTED = LeaderChangeMessage(
    leader_id=3,
    voters=tuple(LeaderChangeVoter(voter_id=voter) for voter in (1, 2, 3)),
    granting_voters=tuple(LeaderChangeVoter(voter_id=voter) for voter in (2, 3)),
)
VOTERS = VotersRecord(
    voters=(
        Voter(
            voter_id=3,
            voter_directory_id=DIRECTORY,
            endpoints=(VoterEndpoint(name="CONTROLLER", host="localhost", port=9193),),
            k_raft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
        ),
    )
)


def quorum_changes(*requested: pb.ChangeKind) -> list[pb.Change]:
    """A leader, a topic, other voters: told live, and again to a watch from an offset."""

    async def main() -> list[pb.Change]:
        source = filled_source()
        async with serving(source) as rig:
            call = rig.stub.Watch(pb.WatchRequest(kinds=list(requested)))
            await take(call, 1)
            source.append_control(ELECTED)
            source.commit_all()
            source.commit(topic("payments", 2))
            source.append_control(VOTERS)
            source.commit(topic("later", 3))
            live = await take(call, 2 if requested else 4)
            again = rig.stub.Watch(pb.WatchRequest(from_offset=4, kinds=list(requested)))
            await take(again, 1)
            assert await take(again, len(live)) == live
            return live

    return run(main)


def test_a_new_leader_and_other_voters_are_reported() -> None:
    changes = quorum_changes()
    assert kinds(changes) == [
        (4, "LEADER_ELECTED"),
        (5, "TOPIC_CREATED"),
        (6, "VOTERS_CHANGED"),
        (7, "TOPIC_CREATED"),
    ]
    elected, voters = changes[0], changes[2]
    assert elected.epoch == 3
    assert elected.leader == pb.Leader(id=3, voters=[1, 2, 3], granting_voters=[2, 3])
    (voter,) = voters.voters.voters
    assert (voter.id, voter.directory_id, voter.endpoints[0].port) == (3, uuid_to_text(DIRECTORY), 9193)


def test_they_can_be_asked_for_alone() -> None:
    assert kinds(quorum_changes(pb.LEADER_ELECTED, pb.VOTERS_CHANGED)) == [
        (4, "LEADER_ELECTED"),
        (6, "VOTERS_CHANGED"),
    ]
