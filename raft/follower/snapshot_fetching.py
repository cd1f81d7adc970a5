"""Coming in through a snapshot: a follower whose next record is gone from its leader's log (KIP-630).

The leader's answer to a Fetch names a snapshot. The follower fetches its file in pieces by FetchSnapshot, in the place
of Fetch. With the last piece the adapter takes over: it verifies the whole, puts it under its name and drops the log.
Until the adapter reports the outcome, the follower appends nothing, cuts nothing and does not stand for election: the
log on the disk is about to be another one. It does not fetch either, as a Fetch acknowledges what the log holds. That
may take many seconds, because the snapshot is loaded meanwhile; a disk that is behind with the pieces, or has no space
for them, may take as long. During all this time the follower asks for a single byte of the file at intervals. A leader
counts that as a sign of life (rule R10.4), Kafka's as well; it does not count a Fetch that it answers with a snapshot.
"""

from typing import assert_never

from kquorum.raft.inputs import (
    LogStartAdvanced,
    SnapshotEvent,
    SnapshotPieceWritten,
    SnapshotReceived,
    SnapshotRefused,
    SnapshotWritten,
)
from kquorum.raft.messages import MAX_OFFSET, FetchSnapshotRequest, FetchSnapshotResponse
from kquorum.raft.ready import SnapshotChunk
from kquorum.raft.recovery import fetching_key
from kquorum.raft.replica import Replica
from kquorum.raft.roles import Download, Follower
from kquorum.raft.voters import QuorumRecord, VoterHistory
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode

# One is written while the next one is fetched.
_UNWRITTEN_PIECES_MAX = 1


def waits_for_disk(replica: Replica) -> bool:
    """Whether a snapshot is under way, and its next piece has to wait until those before it are written."""
    role = replica.role
    is_under_way = isinstance(role, Follower) and role.download is not None
    return is_under_way and replica.unwritten_pieces > _UNWRITTEN_PIECES_MAX


def takes_nothing(replica: Replica) -> bool:
    """Whether there is no space for what the leader has, or the disk is behind with it."""
    return replica.writes_are_paused or waits_for_disk(replica)


def is_helpful(replica: Replica, snapshot_id: OffsetAndEpoch) -> bool:
    """Whether it can be, is not here already, and reaches beyond what this replica knows to be committed."""
    if not 0 <= snapshot_id.offset <= MAX_OFFSET or not 0 <= snapshot_id.epoch <= replica.epoch:
        return False
    # A damaged log may end below a snapshot that is here; then it cannot go on from its end by that one's help.
    log = replica.log
    is_here = snapshot_id in log.snapshots and snapshot_id.offset <= log.log_end_offset
    return not is_here and snapshot_id.offset > min(replica.high_watermark, log.log_end_offset)


def next_request(replica: Replica) -> FetchSnapshotRequest | None:
    """What to ask the leader for in the place of records; None while no snapshot is under way."""
    role = replica.role
    if not isinstance(role, Follower) or role.download is None:
        return None
    download = role.download
    download.only_shows_life = takes_nothing(replica)
    if download.only_shows_life:
        return sign_of_life(replica, download)
    return _request_for(replica, download.snapshot_id, download.position, replica.config.max_fetch_bytes)


def sign_of_life(replica: Replica, download: Download) -> FetchSnapshotRequest:
    """What tells the leader that this replica follows it, while it can take no piece. It asks for the last byte that is
    here, or the first: a position beyond the file's end does not count at Kafka's leader."""
    return _request_for(replica, download.snapshot_id, max(0, download.position - 1), 1)


def _request_for(
    replica: Replica, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int
) -> FetchSnapshotRequest:
    return FetchSnapshotRequest(
        cluster_id=replica.config.cluster_id,
        replica=fetching_key(replica),
        current_leader_epoch=replica.epoch,
        snapshot_id=snapshot_id,
        position=position,
        max_bytes=max_bytes,
    )


def handle_snapshot_response(
    replica: Replica, now_ms: int, source_id: int, response: FetchSnapshotResponse
) -> None:
    """A piece came, or the snapshot is gone at the leader: then a Fetch will name another."""
    role = replica.role
    if not isinstance(role, Follower) or source_id != replica.leader_id:
        return
    if replica.installing is not None:
        # Also an error: the leader may have given the snapshot up for a newer one.
        role.hear_of_leader(now_ms)
        replica.leader_is_silent = False
        replica.connections.back_off(source_id, now_ms, replica.config.paused_fetch_interval_ms)
        return
    if role.download is None:
        return
    download = role.download
    is_piece = response.error is ErrorCode.none and not download.only_shows_life
    if is_piece and not _continues(download, response):
        role.download = None
        replica.connections.back_off(source_id, now_ms)
        return
    role.hear_of_leader(now_ms)
    replica.leader_is_silent = False
    if response.error is not ErrorCode.none:
        role.download = None
        replica.connections.back_off(source_id, now_ms)
        return
    if is_piece:
        _take_piece(replica, role, download, response)
    must_wait = download.position >= response.size if is_piece else takes_nothing(replica)
    if must_wait:
        replica.connections.back_off(source_id, now_ms, replica.config.paused_fetch_interval_ms)


def _continues(download: Download, response: FetchSnapshotResponse) -> bool:
    if response.snapshot_id != download.snapshot_id or response.position != download.position:
        return False
    return bool(response.data) and download.size in (None, response.size)


def _take_piece(
    replica: Replica, role: Follower, download: Download, response: FetchSnapshotResponse
) -> None:
    assert isinstance(response.data, bytes), "a received response carries bytes"
    end = download.position + len(response.data)
    is_last = end >= response.size
    chunk = SnapshotChunk(download.snapshot_id, download.position, response.data, is_last, response.size)
    replica.outbox.snapshot_chunks.append(chunk)
    replica.unwritten_pieces += 1
    download.position, download.size = end, response.size
    if is_last:
        role.download = None
        replica.installing = download


def handle_snapshot_event(replica: Replica, now_ms: int, event: SnapshotEvent) -> None:
    """What the adapter did with snapshot files, the replica's own among them, and with the log below them."""
    match event:
        case SnapshotReceived(snapshot_id, records):
            _begin_at(replica, now_ms, snapshot_id, records)
        case SnapshotPieceWritten():
            assert replica.unwritten_pieces > 0, "more pieces were written than came in"
            was_waiting = waits_for_disk(replica)
            replica.unwritten_pieces -= 1
            if was_waiting and not waits_for_disk(replica):
                replica.connections.end_back_off(replica.leader_id)
        case SnapshotRefused(snapshot_id):
            _give_up(replica, now_ms, snapshot_id)
        case SnapshotWritten(snapshot_id):
            if snapshot_id.offset >= replica.log.log_start_offset:
                # Otherwise one that came from the leader has overtaken it.
                replica.log.add_snapshot(snapshot_id)
        case LogStartAdvanced(log_start_offset):
            assert log_start_offset <= replica.high_watermark, (log_start_offset, replica.high_watermark)
            replica.log.advance_start(log_start_offset)
            replica.voter_history.trim_to(log_start_offset)
        case _:
            assert_never(event)


def _give_up(replica: Replica, now_ms: int, snapshot_id: OffsetAndEpoch) -> None:
    """The adapter could not keep what came in, whether all of it had come or not; another may be under way by now."""
    role = replica.role
    if replica.installing is not None and replica.installing.snapshot_id == snapshot_id:
        replica.installing = None
        replica.maybe_await_election(now_ms)
    elif (
        isinstance(role, Follower) and role.download is not None and role.download.snapshot_id == snapshot_id
    ):
        role.download = None
    else:
        return
    replica.connections.back_off(replica.leader_id, now_ms)


def _begin_at(
    replica: Replica, now_ms: int, snapshot_id: OffsetAndEpoch, records: tuple[QuorumRecord, ...]
) -> None:
    """The log now begins where the snapshot ends; all in the snapshot is committed."""
    installing, replica.installing = replica.installing, None
    assert installing is not None, snapshot_id
    assert installing.snapshot_id == snapshot_id, (installing, snapshot_id)
    replica.connections.end_back_off(replica.leader_id)
    replica.log.begin_at(snapshot_id)
    replica.voter_history = VoterHistory.of(replica.voter_history.static, records)
    if snapshot_id.offset > replica.high_watermark:
        # Otherwise the state machine has begun with a later snapshot, up to which the log was damaged.
        replica.high_watermark = snapshot_id.offset
        replica.outbox.load_snapshot = snapshot_id
    replica.maybe_await_election(now_ms)
