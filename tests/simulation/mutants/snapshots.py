"""Safeguards of snapshots: what they may hold, what the log may forget for them, and how they travel.

What the driver and its files must see to is taken out of the simulated ones.
"""

from collections.abc import Callable
from unittest.mock import patch

from kquorum.raft.follower import fetching, snapshot_fetching
from kquorum.raft.inputs import LogStartAdvanced, SnapshotEvent, SnapshotReceived, SnapshotWritten
from kquorum.raft.leader import fetch_handler
from kquorum.raft.log_index import LogIndex
from kquorum.raft.messages import FetchResponse, FetchSnapshotResponse
from kquorum.raft.replica import Replica
from kquorum.raft.roles import Download, Follower, Leader, Role
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from tests.simulation.disk import SimulatedDisk
from tests.simulation.hosts import Host
from tests.simulation.mutants.registry import Patch, all_of, everywhere, getter_of, mutant
from tests.simulation.options import Options
from tests.simulation.snapshot_files import SnapshotFile, next_state
from tests.simulation.snapshots import Snapshots


def _with_snapshots(options: Options) -> bool:
    return options.snapshot_bytes > 0 and options.voters + options.observers >= 2


def _with_short_logs(options: Options) -> bool:
    return _with_snapshots(options) and options.retention_percent > 0


@mutant(schedule="snapshot_of_what_is_committed", worlds=_with_snapshots)
def snapshot_of_uncommitted_state() -> Patch:
    """A snapshot is of what is committed."""
    take = Snapshots.take

    def hasty(self: Snapshots, host: Host) -> None:
        applied = host.applied, host.state, host.applied_epoch
        for batch in host.disk.between(host.applied, host.disk.log_end_offset):
            host.state = next_state(host.state, batch)
            host.applied, host.applied_epoch = batch.next_offset, batch.leader_epoch
        take(self, host)
        host.applied, host.state, host.applied_epoch = applied

    return patch.object(Snapshots, "take", hasty)


def _advance_to(choose: Callable[[Host], int]) -> Patch:
    def bold(self: Snapshots, host: Host) -> None:
        if host.node is None or host.is_installing or host.loading is not None or not host.disk.snapshots:
            return
        offset = choose(host)
        if host.disk.log_start_offset < offset <= host.disk.log_end_offset:
            host.disk.advance_log_start(offset)
            self.world.checkers.snapshots.log_starts(host)
            self.world.deliver(host, host.life, LogStartAdvanced(offset))

    return patch.object(Snapshots, "advance", bold)


@mutant(schedule="log_is_forgotten_below_a_snapshot", worlds=_with_short_logs)
def log_start_past_the_newest_snapshot() -> Patch:
    """The log begins where a snapshot ends, not wherever the state machine is."""
    return _advance_to(lambda host: host.applied)


@mutant(schedule="snapshot_of_what_is_committed", worlds=_with_short_logs)
def log_start_past_the_high_watermark() -> Patch:
    """Nothing is forgotten that is not committed."""
    return _advance_to(lambda host: host.disk.log_end_offset)


@mutant(schedule="snapshot_in_pieces", worlds=_with_short_logs)
def snapshot_received_before_the_log_is_dropped() -> Patch:
    """The core hears of a received snapshot once the log is dropped for it."""

    def early(self: Snapshots, host: Host, life: int, snapshot: SnapshotFile) -> None:
        if host.life == life:
            received = SnapshotReceived(snapshot.snapshot_id, snapshot.quorum_records)
            self.world.tally["snapshots received"] += 1
            self.world.deliver(host, life, received)

    return patch.object(Snapshots, "_drop_log", early)


@mutant(schedule="snapshot_below_a_tail_of_a_later_epoch", worlds=_with_short_logs)
def later_epoch_outweighs_a_snapshot() -> Patch:
    """A snapshot is of what is committed: a log with another record there gives way, whatever its epochs."""

    def by_epoch(self: SimulatedDisk, newest: OffsetAndEpoch) -> bool:
        last_epoch = self.batches[-1].leader_epoch if self.batches else -1
        return (newest.epoch, newest.offset) > (last_epoch, self.log_end_offset)

    return patch.object(SimulatedDisk, "_is_ahead", by_epoch)


@mutant(schedule="snapshot_and_a_new_leader", worlds=_with_short_logs)
def download_goes_on_at_another_leader() -> Patch:
    """Every leader's snapshot is a file of its own: what one has sent is of no use at the next."""
    leave = Replica._leave
    halves: dict[int, Download] = {}

    def thrifty(self: Replica, role: Role, epoch: int, cause: str) -> None:
        if isinstance(self.role, Follower) and self.role.download is not None:
            halves[id(self)] = self.role.download
        leave(self, role, epoch, cause)
        if isinstance(role, Follower):
            role.download = halves.pop(id(self), None)

    return patch.object(Replica, "_leave", thrifty)


@mutant(schedule="snapshot_in_pieces", worlds=_with_short_logs)
def download_resumed_at_a_wrong_position() -> Patch:
    """The next piece begins where the last one ended."""
    take_piece = snapshot_fetching._take_piece

    def skipping(
        replica: Replica, role: Follower, download: Download, response: FetchSnapshotResponse
    ) -> None:
        take_piece(replica, role, download, response)
        if role.download is not None:
            download.position = min(download.position + 1, response.size - 1)

    return everywhere(snapshot_fetching._take_piece, skipping)


@mutant(schedule="piece_of_another_snapshot", worlds=_with_short_logs)
def piece_of_another_snapshot_is_taken() -> Patch:
    """A piece is taken only if it is of the snapshot, and from the place, that was asked for."""

    def trusting(download: Download, response: FetchSnapshotResponse) -> bool:
        return bool(response.data)

    return everywhere(snapshot_fetching._continues, trusting)


@mutant(schedule="snapshot_in_pieces", worlds=_with_short_logs)
def epoch_of_the_snapshot_is_ignored() -> Patch:
    """The last epoch of an empty log is that of the snapshot before it."""

    def forgetful(self: LogIndex) -> int:
        return self._epochs[-1] if self._epochs else 0

    return patch.object(LogIndex, "last_epoch", property(forgetful))


def _begun(replica: Replica, snapshot_id: OffsetAndEpoch) -> SnapshotReceived:
    return SnapshotReceived(snapshot_id, ())


@mutant(schedule="voters_come_with_the_snapshot", worlds=lambda options: options.quorum != "static")
def voters_of_the_snapshot_are_ignored() -> Patch:
    """A replica that starts from a snapshot takes the voters from it."""
    handle = snapshot_fetching.handle_snapshot_event

    def blind(replica: Replica, now_ms: int, event: SnapshotEvent) -> None:
        handle(
            replica,
            now_ms,
            _begun(replica, event.snapshot_id) if isinstance(event, SnapshotReceived) else event,
        )

    return everywhere(snapshot_fetching.handle_snapshot_event, blind)


@mutant(schedule="snapshot_in_pieces", worlds=_with_short_logs)
def high_watermark_stays_below_the_snapshot() -> Patch:
    """All that a received snapshot stands for is committed."""
    handle = snapshot_fetching.handle_snapshot_event

    def doubtful(replica: Replica, now_ms: int, event: SnapshotEvent) -> None:
        high_watermark = replica.high_watermark
        handle(replica, now_ms, event)
        replica.high_watermark = high_watermark

    return everywhere(snapshot_fetching.handle_snapshot_event, doubtful)


@mutant(schedule="leader_dies_while_its_snapshot_is_installed", worlds=_with_short_logs)
def stands_while_installing() -> Patch:
    """A replica whose log is being replaced does not stand for election."""
    may_stand = getter_of(Replica, "may_stand")

    def bold(self: Replica) -> bool:
        installing, self.installing = self.installing, None
        answer = may_stand(self)
        self.installing = installing
        return bool(answer)

    return patch.object(Replica, "may_stand", property(bold))


@mutant(schedule="records_while_a_snapshot_is_installed", worlds=_with_short_logs)
def fetches_while_installing() -> Patch:
    """Nothing is fetched into a log that is being replaced."""
    handle, poll_fetch = fetching.handle_fetch_response, fetching.poll_fetch

    def busy(replica: Replica, now_ms: int) -> None:
        installing, replica.installing = replica.installing, None
        poll_fetch(replica, now_ms)
        replica.installing = installing

    def writing(replica: Replica, now_ms: int, source_id: int, response: FetchResponse) -> None:
        installing, replica.installing = replica.installing, None
        handle(replica, now_ms, source_id, response)
        replica.installing = installing

    return all_of(everywhere(fetching.poll_fetch, busy), everywhere(fetching.handle_fetch_response, writing))


@mutant(schedule="snapshots_are_the_leaders_to_serve")
def snapshot_served_in_any_epoch() -> Patch:
    """Only the leader of the epoch that a request names serves a snapshot."""
    handle = fetch_handler.handle_fetch_snapshot

    def lax(replica: Replica, now_ms: int, request_id: int, request: object) -> None:
        with patch.object(fetch_handler, "_check_epoch", lambda *_: ErrorCode.none):
            handle(replica, now_ms, request_id, request)  # type: ignore[arg-type]

    return everywhere(fetch_handler.handle_fetch_snapshot, lax)


@mutant(schedule="cut_below_the_start")
def log_is_cut_below_its_start() -> Patch:
    """What a snapshot stands for is never cut off the log."""

    def obedient(replica: Replica, diverging: OffsetAndEpoch) -> None:
        replica.outbox.truncate_to = diverging.offset
        replica.log.log_end_offset = diverging.offset

    return everywhere(fetching._truncate, obedient)


@mutant(schedule="fetch_from_what_was_forgotten", worlds=_with_short_logs)
def parked_fetch_is_answered_from_below_the_start() -> Patch:
    """A Fetch that waits is looked at again when the log's start has passed it."""
    complete = fetch_handler.complete_delayed_fetches

    def hasty(replica: Replica, leader: Leader, now_ms: int) -> None:
        start_offset, replica.log.log_start_offset = replica.log.log_start_offset, 0
        complete(replica, leader, now_ms)
        replica.log.log_start_offset = start_offset

    return everywhere(fetch_handler.complete_delayed_fetches, hasty)


@mutant(schedule="snapshot_that_was_overtaken", worlds=_with_short_logs)
def overtaken_snapshot_is_offered() -> Patch:
    """A snapshot below the log's start is not offered to any follower."""
    handle = snapshot_fetching.handle_snapshot_event

    def proud(replica: Replica, now_ms: int, event: SnapshotEvent) -> None:
        if isinstance(event, SnapshotWritten):
            replica.log.add_snapshot(event.snapshot_id)
        else:
            handle(replica, now_ms, event)

    return everywhere(snapshot_fetching.handle_snapshot_event, proud)
