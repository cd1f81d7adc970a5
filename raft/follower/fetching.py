"""The fetching side: finding the leader, taking its records, cutting what diverged."""

from typing import Final

from kquorum.raft.elections import may_be_leader
from kquorum.raft.errors import LogDivergedBelowHighWatermarkError
from kquorum.raft.follower.snapshot_fetching import is_helpful, next_request, sign_of_life, takes_nothing
from kquorum.raft.log_index import truncation_target
from kquorum.raft.membership import maybe_ask_leader
from kquorum.raft.messages import (
    NO_LEADER,
    UNKNOWN_OFFSET,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    LeaderNaming,
)
from kquorum.raft.ready import LeaderAndEpoch
from kquorum.raft.recovery import (
    ask_for_end,
    fetching_key,
    hear_end,
    hear_of_nothing_more,
    leader_confirmations_wanted,
    maybe_regain_trust,
    must_ask_for_end,
)
from kquorum.raft.replica import FIRST_BOOTSTRAP_ID, Replica
from kquorum.raft.roles import (
    FETCH_TIMEOUT,
    LEADER_LEFT,
    NO_LEADER_HEARD,
    Candidate,
    Download,
    Follower,
    Prospective,
    Unattached,
)
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch, parse_batches
from kquorum.wire.record_batch import MAX_DECOMPRESSED_BYTES

_PLAIN_BYTES_AT_ONCE: Final = 2 * MAX_DECOMPRESSED_BYTES


def poll_fetch(replica: Replica, now_ms: int) -> None:
    """Send the next Fetch, unless one is out or the last records are not on disk yet.

    The offset of a Fetch is the acknowledgement of all below it, so a replica that may vote fetches only what
    follows its flushed log (rule R3.3).
    """
    if replica.installing is not None:
        _show_life(replica, replica.installing, now_ms)
        return
    if not _may_fetch(replica) or _leader_is_being_asked(replica, now_ms):
        return
    if _is_fetch_in_flight(replica, now_ms):
        return
    destination = _pick_destination(replica, now_ms)
    if destination is not None:
        request = _request_to_leader(replica) if destination == replica.leader_id else fetch_request(replica)
        replica.send(destination, request, now_ms)
        replica.fetch_destination = destination


def _show_life(replica: Replica, installing: Download, now_ms: int) -> None:
    """Nothing may be fetched now, but the leader has to hear of this replica, and this replica of the leader."""
    if not isinstance(replica.role, Follower) or _leader_is_being_asked(replica, now_ms):
        return
    if replica.connections.is_ready(replica.leader_id, now_ms):
        replica.send(replica.leader_id, sign_of_life(replica, installing), now_ms)
        replica.fetch_destination = replica.leader_id


def _request_to_leader(replica: Replica) -> FetchRequest | FetchSnapshotRequest:
    role = replica.role
    if isinstance(role, Follower):
        role.asks_for_end = must_ask_for_end(replica)
        if role.asks_for_end:
            return ask_for_end(replica, fetch_request(replica))
    return next_request(replica) or fetch_request(replica)


def _may_fetch(replica: Replica) -> bool:
    if replica.installing is not None:
        return False
    # A voter's Fetch acknowledges everything below its offset, so that has to be flushed first. An observer
    # acknowledges nothing.
    return not replica.config.can_be_voter or replica.log.flushed_offset >= replica.log.log_end_offset


def _leader_is_being_asked(replica: Replica, now_ms: int) -> bool:
    """Whether a change of the voters is under way to the leader: the Fetch comes after it, and goes nowhere else."""
    role = replica.role
    if not isinstance(role, Follower) or not role.asks_leader:
        return False
    role.asks_leader = not replica.connections.is_ready(replica.leader_id, now_ms)
    return role.asks_leader


def _silent_leader_id(replica: Replica) -> int:
    """The leader that this replica gave up, also in later epochs, while it looks for one; it is asked separately."""
    silent = replica.silent_leader
    if silent is None or not isinstance(replica.role, Unattached):
        return NO_LEADER
    return silent.leader_id


def _is_fetch_in_flight(replica: Replica, now_ms: int) -> bool:
    """Whether a Fetch may still be answered. One to the leader that ran into the request timeout says that the leader
    is silent: the next goes elsewhere."""
    destination = replica.fetch_destination
    if destination is None:
        return False
    if not replica.connections.is_ready(destination, now_ms):
        return True
    replica.fetch_destination = None
    replica.leader_is_silent = replica.leader_is_silent or destination == replica.leader_id
    return False


def _pick_destination(replica: Replica, now_ms: int) -> int | None:
    """The leader; without one, or while it does not answer, any voter or bootstrap server: it will name the leader."""
    leader_id = replica.leader_id
    following = isinstance(replica.role, Follower)
    if following and replica.connections.is_ready(leader_id, now_ms) and not replica.leader_is_silent:
        return leader_id
    if _keeps_to_leader(replica):
        return None
    silent_id = _silent_leader_id(replica)
    ready = [
        voter_id
        for voter_id in _who_may_know(replica)
        if voter_id != silent_id and replica.connections.is_ready(voter_id, now_ms)
    ]
    if not ready:
        return None
    return ready[replica.random_source.randint(0, len(ready) - 1)]


def _keeps_to_leader(replica: Replica) -> bool:
    """True while this replica can take nothing and its leader responds: no other node has more for it."""
    return takes_nothing(replica) and isinstance(replica.role, Follower) and not replica.leader_is_silent


def _who_may_know(replica: Replica) -> tuple[int, ...]:
    """Whom to ask for the leader. The voters known here may all have been replaced, so the bootstrap servers are
    asked beside them."""
    servers = tuple(
        FIRST_BOOTSTRAP_ID - index
        for index, server in enumerate(replica.config.bootstrap_servers)
        if server not in replica.config.endpoints
    )
    return replica.other_voters + servers


def next_fetch_at_ms(replica: Replica) -> int | None:
    """When the next Fetch can go out, were nothing to be heard before; None if a flush must come first. While a
    snapshot is put in the place of the log, it is when the next sign of life can."""
    if replica.installing is not None:
        is_following = isinstance(replica.role, Follower)
        return replica.connections.ready_at_ms(replica.leader_id) if is_following else None
    if not _may_fetch(replica):
        return None
    if isinstance(replica.role, Follower) and replica.role.asks_leader:
        return replica.connections.ready_at_ms(replica.leader_id)
    if replica.fetch_destination is not None:
        return replica.connections.ready_at_ms(replica.fetch_destination)
    if _keeps_to_leader(replica):
        return replica.connections.ready_at_ms(replica.leader_id)
    return min((replica.connections.ready_at_ms(node_id) for node_id in _who_may_know(replica)), default=None)


def fetch_request(replica: Replica) -> FetchRequest:
    return FetchRequest(
        cluster_id=replica.config.cluster_id,
        replica=fetching_key(replica),
        current_leader_epoch=replica.epoch,
        fetch_offset=replica.log.log_end_offset,
        last_fetched_epoch=replica.log.last_epoch,
        max_wait_ms=replica.config.fetch_max_wait_ms,
        # What cannot be taken is asked for only to be known to follow; one batch comes nevertheless.
        max_bytes=1 if replica.writes_are_paused else replica.config.max_fetch_bytes,
        high_watermark=replica.high_watermark,
    )


def handle_fetch_response(replica: Replica, now_ms: int, source_id: int, response: FetchResponse) -> None:
    """Take over what the leader of this epoch sent; the answer of any other node only names the leader."""
    role = replica.role
    if not isinstance(role, Follower) or source_id != replica.leader_id:
        replica.connections.back_off(source_id, now_ms)
        return
    is_senseless = (
        response.diverging is not None and min(response.diverging.offset, response.diverging.epoch) < 0
    )
    if replica.installing is not None:
        return
    snapshot_id = response.snapshot_id
    if is_senseless or (snapshot_id is not None and not is_helpful(replica, snapshot_id)):
        replica.connections.back_off(source_id, now_ms)
        return
    role.hear_of_leader(now_ms)
    replica.leader_is_silent = False
    if role.asks_for_end:
        role.asks_for_end = False
        hear_end(replica, response)
        return
    if snapshot_id is not None:
        # The first piece is fetched next, or a sign of life sent in its place.
        role.download = Download(snapshot_id)
        return
    if response.diverging is not None:
        end_offset = replica.log.log_end_offset
        _truncate(replica, response.diverging)
        if replica.log.log_end_offset == end_offset:
            # No leader of ours says so, and the next Fetch would be answered with the same.
            replica.connections.back_off(source_id, now_ms)
        return
    assert isinstance(response.records, bytes), "a received response carries bytes"
    maybe_regain_trust(replica, role, response)
    if not response.records:
        hear_of_nothing_more(replica)
    is_taken = not replica.writes_are_paused and _take_records(replica, response.records)
    if response.records and not is_taken:
        # Asking at once for what cannot be taken would be a busy loop.
        wait_ms = replica.config.paused_fetch_interval_ms if replica.writes_are_paused else None
        replica.connections.back_off(source_id, now_ms, wait_ms)
    # After the records: the high watermark stays within this log.
    _maybe_advance_high_watermark(replica, response.high_watermark)


def _take_records(replica: Replica, records: bytes) -> bool:
    """Append what continues the log; answers whether there was any."""
    batches = _appendable(replica, parse_batches(records))
    for batch in batches:
        replica.append(batch)
    return bool(batches)


def _truncate(replica: Replica, diverging: OffsetAndEpoch) -> None:
    """Cut what the leader does not have (rules R8.1, R8.2). An elected leader has all that was committed, so it never
    names a point below the high watermark, nor below the start of the log, where a snapshot stands for the rest."""
    committed = max(replica.high_watermark, replica.log.log_start_offset)
    end_offset = truncation_target(replica.log, diverging)
    if end_offset < committed or diverging.offset < replica.log.log_start_offset:
        raise LogDivergedBelowHighWatermarkError(
            f"node {replica.leader_id}, leader of epoch {replica.epoch}, asks to cut the log at offset {end_offset}, "
            f"but everything below {committed} was committed; one of the two logs has lost data. Nothing was cut: "
            "keep both folders, and compare them (`kquorum log verify`, `kquorum log diff`) before a node starts again"
        )
    if end_offset < replica.log.log_end_offset:
        replica.truncate_to(end_offset)


def _appendable(replica: Replica, batches: tuple[LogBatch, ...]) -> list[LogBatch]:
    """The batches that continue this log. The first that does not, and all behind it, are dropped (rule R8.1;
    KAFKA-19012).

    The leader of this epoch cannot have written a batch of a later epoch. A batch that unpacks to more than a batch may
    hold is dropped too: a few KiB of it would take all memory when it is replayed. So is one with more offsets than
    records: recovery would take it for damage when the log is opened. Batches behind much compressed data are left to
    the next Fetch, because checking all of them at once would hold up the event loop.
    """
    taken: list[LogBatch] = []
    plain_bytes = 0
    end_offset, epoch = replica.log.log_end_offset, replica.log.last_epoch
    for batch in batches:
        if batch.base_offset != end_offset or not epoch <= batch.leader_epoch <= replica.epoch:
            break
        if plain_bytes >= _PLAIN_BYTES_AT_ONCE:
            break
        try:
            plain_bytes += batch.plain_bytes
        except DecodeError:
            break
        if not batch.has_all_offsets:
            break
        if batch.is_control and not replica.voter_history.accepts(taken, batch):
            break
        taken.append(batch)
        end_offset, epoch = batch.next_offset, batch.leader_epoch
    return taken


def _maybe_advance_high_watermark(replica: Replica, leader_high_watermark: int) -> None:
    """Take the leader's high watermark, at most this log's end (rule R7.7)."""
    if leader_high_watermark == UNKNOWN_OFFSET:
        return
    reached = min(leader_high_watermark, replica.log.log_end_offset)
    replica.high_watermark = max(replica.high_watermark, reached)


def handle_fetch_failure(replica: Replica, source_id: int) -> None:
    """The leader could not be asked: the next Fetch looks for a leader elsewhere."""
    if source_id == replica.leader_id:
        replica.leader_is_silent = True


def poll_follower(replica: Replica, role: Follower, now_ms: int) -> None:
    if replica.is_shutting_down:
        return
    if now_ms >= role.fetch_deadline_ms:
        if replica.may_stand:
            cause = LEADER_LEFT if role.leader_left else FETCH_TIMEOUT
            replica.become_prospective(now_ms, cause)
        else:
            replica.silent_leader = LeaderAndEpoch(replica.leader_id, replica.epoch)
            replica.become_unattached(replica.epoch, now_ms, FETCH_TIMEOUT, replica.leader_id)
        return
    for voter_id in leader_confirmations_wanted(replica, role):
        if replica.connections.is_ready(voter_id, now_ms):
            replica.send(voter_id, fetch_request(replica), now_ms)
    maybe_ask_leader(replica, role, now_ms)
    poll_fetch(replica, now_ms)


def poll_unattached(replica: Replica, role: Unattached, now_ms: int) -> None:
    if replica.is_shutting_down:
        return
    if role.election_deadline_ms is not None and now_ms >= role.election_deadline_ms:
        replica.become_prospective(now_ms, NO_LEADER_HEARD)
        return
    _maybe_probe_silent_leader(replica, now_ms)
    poll_fetch(replica, now_ms)


def _maybe_probe_silent_leader(replica: Replica, now_ms: int) -> None:
    """Ask the silent leader itself as well, beside the others: it may only have been slow. Should it hang, the
    Fetch to it holds up no other; should both be answered, `_appendable` takes the records once."""
    silent_id = _silent_leader_id(replica)
    if silent_id != NO_LEADER and _may_fetch(replica) and replica.connections.is_ready(silent_id, now_ms):
        replica.send(silent_id, fetch_request(replica), now_ms)


def learns_leader(replica: Replica, source_id: int, response: LeaderNaming) -> bool:
    """Whether a response of this epoch names the leader that this replica was looking for.

    Hearsay of a leader that has fallen silent here does not count: that node has only not noticed yet. News of another
    address does: it was tried in vain where it no longer is.
    """
    leader_id, leader_epoch = response.leader_id, response.leader_epoch
    if leader_epoch != replica.epoch or not may_be_leader(replica, leader_id, response.leader_endpoints):
        return False
    if replica.leader_id not in (NO_LEADER, leader_id):
        return False
    is_hearsay = replica.silent_leader == LeaderAndEpoch(leader_id, leader_epoch) and source_id != leader_id
    if is_hearsay and not replica.is_new_address(response.leader_endpoints):
        return False
    if isinstance(replica.role, Unattached):
        return True
    return isinstance(replica.role, Prospective | Candidate) and replica.leader_id == NO_LEADER


def note_moved_leader(replica: Replica, source_id: int, response: LeaderNaming) -> None:
    """A follower that cannot reach its leader hears from another node, or from the leader itself by way of a bootstrap
    server, where that leader listens now: the voter set may be too old to know."""
    if (
        not isinstance(replica.role, Follower)
        or source_id == replica.leader_id
        or not replica.leader_is_silent
    ):
        return
    is_its_leader = (response.leader_id, response.leader_epoch) == (replica.leader_id, replica.epoch)
    if is_its_leader and replica.is_new_address(response.leader_endpoints):
        replica.leader_endpoints = response.leader_endpoints
        replica.leader_is_silent = False
