"""What the driver does with snapshots: in, out, installed and loaded, beside everything else."""

import asyncio
from dataclasses import dataclass, field
from errno import ENOSPC
from pathlib import Path

import pytest

from kquorum.raft.adapters.driver import RaftDriver
from kquorum.raft.adapters.snapshot_files import SnapshotDamaged, SnapshotGone, SnapshotUnsound
from kquorum.raft.inputs import (
    LogStartAdvanced,
    ResponseReceived,
    SnapshotReceived,
    SnapshotRefused,
    SnapshotWritten,
)
from kquorum.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    SnapshotSlice,
)
from kquorum.raft.ready import LeaderAndEpoch, OutboundRequest, Ready, SnapshotChunk
from kquorum.storage.errors import StorageFull
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.driver_parts import (
    PausePoint,
    RecordingNetwork,
    batch,
    follower_of,
    run,
    until,
)
from tests.support.raft.snapshot_rig import ID, FakeStore, SnapshotRig

NEWER = OffsetAndEpoch(9, 1)
CHUNKS = (
    SnapshotChunk(ID, 0, b"abc", is_last=False, size=5),
    SnapshotChunk(ID, 3, b"de", is_last=True, size=5),
)


def test_a_fetched_snapshot_takes_the_place_of_the_log_and_then_of_the_state() -> None:
    async def scenario() -> None:
        rig = SnapshotRig()
        rig.log.append([batch(0), batch(1)])
        await rig.start()
        rig.store.finished = rig.log.add_snapshot
        await rig.carry_out(Ready(snapshot_chunks=CHUNKS[:1]), Ready(snapshot_chunks=CHUNKS[1:]))
        await until(lambda: rig.script.inputs_of(SnapshotReceived))
        assert b"".join(rig.store.pieces) == b"abcde"
        assert (rig.log.log_start_offset, rig.log.end_offset) == (5, 5)
        rig.load_pause.hold()
        await rig.carry_out(Ready(load_snapshot=ID, append=(batch(5), batch(6)), high_watermark=7))
        await rig.carry_out(Ready(leader=LeaderAndEpoch(1, 2)))
        assert not {"snapshot", "commit", "leader"} & set(rig.journal.kinds()), "nothing overtakes the state"
        rig.load_pause.release()
        await until(lambda: "leader" in rig.journal.kinds())
        told = [entry for entry in rig.journal if entry[0] in ("snapshot", "commit", "leader")]
        assert told == [("snapshot", "state at 5"), ("commit", 5, 6), ("leader", 1, 2)]
        assert rig.driver.applied_offset == 7
        await rig.driver.stop(1000)

    run(scenario())


def test_a_snapshot_that_the_state_is_past_is_not_waited_for() -> None:
    """A damaged log is dropped for a snapshot that the node had loaded when it started."""

    async def scenario() -> None:
        rig = SnapshotRig()
        rig.log.append([batch(offset) for offset in range(9)])
        rig.log.add_snapshot(ID)
        await rig.start()
        await until(lambda: "snapshot" in rig.journal.kinds())
        await rig.carry_out(Ready(snapshot_chunks=CHUNKS))
        await until(lambda: rig.script.inputs_of(SnapshotReceived))
        await rig.carry_out(Ready(append=(batch(5),), high_watermark=6))
        await until(lambda: "commit" in rig.journal.kinds())
        assert ("commit", 5) in rig.journal
        assert rig.journal.kinds().count("snapshot") == 1
        await until(lambda: rig.forgotten == 1)
        await rig.driver.stop(1000)

    run(scenario())


def test_the_log_is_dropped_only_when_nothing_else_is_under_way() -> None:
    async def scenario() -> None:
        rig = SnapshotRig()
        rig.log.append([batch(0), batch(1)])
        await rig.start()
        rig.log.add_snapshot(ID)
        rig.log.flush_pause.hold()
        await rig.carry_out(Ready(append=(batch(2),)), Ready(truncate_to=2, snapshot_chunks=CHUNKS))
        assert rig.log.end_offset == 3, "the cut waits for the flush"
        rig.log.flush_pause.release()
        await until(lambda: rig.script.inputs_of(SnapshotReceived))
        assert ("truncate", 2) in rig.journal
        assert rig.log.end_offset == 5
        await rig.driver.stop(1000)

    run(scenario())


@pytest.mark.parametrize(
    "refusal",
    [SnapshotUnsound("it is not whole"), StorageFull("rename", Path("x.part"), OSError(ENOSPC, "no space"))],
    ids=["unsound", "full"],
)
def test_an_incomplete_snapshot_is_reported_to_the_core_and_the_log_stays(
    refusal: SnapshotUnsound | StorageFull,
) -> None:
    async def scenario() -> None:
        rig = SnapshotRig()
        rig.log.append([batch(0)])
        await rig.start()

        def refuse(_: OffsetAndEpoch) -> None:
            raise refusal

        rig.store.finished = refuse
        await rig.carry_out(Ready(snapshot_chunks=CHUNKS))
        await until(lambda: rig.script.inputs_of(SnapshotRefused))
        assert rig.log.end_offset == 1
        assert rig.forgotten == 1
        assert rig.fatal == []
        await rig.driver.stop(1000)

    run(scenario())


def test_a_node_begins_with_its_newest_snapshot() -> None:
    async def scenario() -> None:
        rig = SnapshotRig()
        rig.log.append([batch(offset) for offset in range(9)])
        rig.log.add_snapshot(ID)
        await rig.start()
        await rig.carry_out(Ready(high_watermark=7))
        await until(lambda: "commit" in rig.journal.kinds())
        told = [entry for entry in rig.journal if entry[0] in ("snapshot", "commit")]
        assert told == [("snapshot", "state at 5"), ("commit", 5, 6)]
        await rig.driver.stop(1000)

    run(scenario())


def test_of_two_snapshots_under_way_only_the_newer_becomes_the_state() -> None:
    async def scenario() -> None:
        rig = SnapshotRig()
        await rig.start()
        rig.load_pause.hold()
        await rig.carry_out(Ready(load_snapshot=ID), Ready(load_snapshot=NEWER))
        rig.load_pause.release()
        await until(lambda: "snapshot" in rig.journal.kinds())
        assert rig.journal == [("snapshot", "state at 9")]
        await rig.driver.stop(1000)

    run(scenario())


def test_pieces_are_read_off_the_file() -> None:
    async def scenario() -> None:
        rig = SnapshotRig()
        await rig.start()
        wanted = FetchSnapshotResponse(snapshot_id=ID, position=4, data=SnapshotSlice(ID, 4, 3))
        beyond = FetchSnapshotResponse(snapshot_id=ID, position=10, data=SnapshotSlice(ID, 10, 3))
        await rig.carry_out(rig.answered(wanted, beyond))
        await until(lambda: len(rig.network.responses) == 2)
        first, second = (answer.response for answer in rig.network.responses)
        assert isinstance(first, FetchSnapshotResponse)
        assert (first.data, first.size, first.position) == (b"456", 10, 4)
        assert isinstance(second, FetchSnapshotResponse)
        assert (second.error, second.data) == (ErrorCode.position_out_of_range, b"")
        await rig.driver.stop(1000)

    run(scenario())


@pytest.mark.parametrize("error", [SnapshotDamaged, SnapshotGone])
def test_one_that_cannot_be_served_is_reported_to_the_client_and_if_damaged_to_the_node(
    error: type[SnapshotGone],
) -> None:
    async def scenario() -> None:
        rig = SnapshotRig()
        rig.store.content, rig.store.error = None, error
        await rig.start()
        await rig.carry_out(rig.answered(FetchSnapshotResponse(snapshot_id=ID, data=SnapshotSlice(ID, 0, 3))))
        await until(lambda: rig.network.responses)
        answer = rig.network.responses[0].response
        assert isinstance(answer, FetchSnapshotResponse)
        assert (answer.error, answer.data) == (ErrorCode.snapshot_not_found, b"")
        assert rig.unsound == ([ID] if error is SnapshotDamaged else [])
        await rig.driver.stop(1000)

    run(scenario())


def test_the_log_start_advances_once_and_the_core_hears_of_it() -> None:
    async def scenario() -> None:
        rig = SnapshotRig()
        rig.log.append([batch(offset) for offset in range(9)])
        await rig.start()
        rig.log.add_snapshot(ID)
        rig.driver.receive(SnapshotWritten(ID))
        rig.driver.advance_log_start(5)
        rig.driver.advance_log_start(5)
        await until(lambda: rig.script.inputs_of(LogStartAdvanced))
        await until(lambda: "flush" in rig.journal.kinds())
        assert rig.script.inputs_of(SnapshotWritten) == [SnapshotWritten(ID)]
        assert rig.log.log_start_offset == 5
        await rig.driver.stop(1000)
        assert rig.script.inputs_of(LogStartAdvanced) == [LogStartAdvanced(5)]

    run(scenario())


# A disk that is slower than the leader


PIECE = b"a piece of a snapshot"
PIECES = 40


@dataclass
class SlowStore(FakeStore):
    pause: PausePoint = field(default_factory=PausePoint)

    def write_chunk(self, chunk: SnapshotChunk) -> None:
        self.pause.pass_through()
        super().write_chunk(chunk)


class QuickLeader:
    """Answers every Fetch with the name of a snapshot, and every FetchSnapshot with its next piece, at once."""

    def __init__(self, follower: RaftDriver) -> None:
        self._follower = follower
        self.pieces_sent = 0
        self.signs_of_life = 0

    def send(self, outbound: OutboundRequest) -> None:
        request = outbound.request
        response: FetchResponse | FetchSnapshotResponse | None = None
        if isinstance(request, FetchSnapshotRequest):
            self.pieces_sent += request.max_bytes > 1
            self.signs_of_life += request.max_bytes == 1
            response = FetchSnapshotResponse(
                leader_id=2,
                leader_epoch=1,
                snapshot_id=ID,
                size=PIECES * len(PIECE),
                position=request.position,
                data=PIECE,
            )
        elif isinstance(request, FetchRequest) and request.fetch_offset == 0:
            response = FetchResponse(leader_id=2, leader_epoch=1, snapshot_id=ID, records=b"")
        if response is not None:
            answered = ResponseReceived(outbound.correlation_id, outbound.destination_id, response)
            asyncio.get_running_loop().call_soon(self._follower.receive, answered)


def test_a_slow_disk_holds_two_pieces_in_memory_and_no_more() -> None:
    """The leader could send them all at once; the follower goes on following it meanwhile."""

    async def scenario() -> None:
        node = follower_of(2)
        store = SlowStore()
        rig = SnapshotRig(node, store)
        store.finished = rig.log.add_snapshot
        leader = QuickLeader(rig.driver)
        store.pause.hold()
        rig.driver.start(rig.state_machine, leader, RecordingNetwork(rig.journal))
        await until(lambda: leader.signs_of_life > 3)
        assert leader.pieces_sent == 2
        assert node.role == "follower"
        store.pause.release()
        await until(lambda: rig.log.log_start_offset == ID.offset)
        assert b"".join(store.pieces) == PIECES * PIECE
        assert leader.pieces_sent == PIECES
        await until(lambda: "snapshot" in rig.journal.kinds())
        assert rig.forgotten == 0, "what was made of it before is what is loaded"
        assert not rig.fatal
        await rig.driver.stop(1000)

    run(scenario())
