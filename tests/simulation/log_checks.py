"""What must be true of the logs: one history, nothing committed lost, and every high watermark well founded."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kquorum.raft.node import RaftNode
from kquorum.raft.roles import Leader
from kquorum.raft.voters import Voter
from kquorum.wire.log_batch import LogBatch
from tests.simulation.committed import CommittedLog
from tests.simulation.disk import SimulatedDisk
from tests.simulation.errors import InvariantBroken
from tests.simulation.hosts import Host
from tests.simulation.membership_checks import check_new_voters

if TYPE_CHECKING:
    from tests.simulation.world import World


class LogChecks:
    """Knows what was committed, and by whom; a log that begins above 0 goes on from a snapshot."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.committed = CommittedLog()
        self.high_watermarks: dict[int, int] = {}
        # Up to which offset the batches of each replica were compared with what is committed.
        self.checked: dict[int, int] = {}
        self.written: dict[tuple[int, int], tuple[LogBatch, int]] = {}
        self.newest_leader = (0, -1)

    def forget_life(self, host: Host) -> None:
        self.high_watermarks.pop(host.node_id, None)
        self.checked.pop(host.node_id, None)

    # Changes of the log

    def before_append(self, host: Host, batches: Sequence[LogBatch]) -> None:
        """Log matching: an epoch and an offset name one batch, with one history before it."""
        if host.is_installing:
            raise InvariantBroken(f"node {host.node_id} writes to a log that is being replaced")
        check_new_voters(host, batches, self.committed.end_offset)
        epoch_before = _last_epoch(host.disk)
        for batch in batches:
            known = self.written.setdefault((batch.leader_epoch, batch.base_offset), (batch, epoch_before))
            if known[1] != epoch_before or (known[0] is not batch and known[0] != batch):
                raise InvariantBroken(
                    f"node {host.node_id} appends another batch at offset {batch.base_offset} of epoch "
                    f"{batch.leader_epoch} than another node has there, or after another one"
                )
            epoch_before = batch.leader_epoch

    def unknown(self, batches: Sequence[LogBatch]) -> list[LogBatch]:
        """Those of these batches that no replica has written before."""
        return [batch for batch in batches if (batch.leader_epoch, batch.base_offset) not in self.written]

    def forget_lost(self, host: Host, batches: Sequence[LogBatch]) -> None:
        """A process died in its turn before it said anything: of these batches, those that are not on its disk were
        never anywhere. A sole voter leads the same epoch once more then, as the epoch was not on its disk either."""
        for batch in batches:
            if batch not in host.disk.batches:
                del self.written[batch.leader_epoch, batch.base_offset]

    def before_truncation(self, host: Host, end_offset: int) -> None:
        if host.is_installing:
            raise InvariantBroken(f"node {host.node_id} cuts a log that is being replaced")
        if end_offset < host.disk.log_start_offset:
            raise InvariantBroken(
                f"node {host.node_id} cut its log at {end_offset}, but it begins at {host.disk.log_start_offset}"
            )
        if end_offset < self.high_watermarks.get(host.node_id, 0):
            raise InvariantBroken(
                f"node {host.node_id} cut its log at {end_offset}, below its high watermark"
            )
        if end_offset >= self.committed.end_offset:
            return
        lost = host.disk.between(end_offset, self.committed.end_offset)
        if lost and lost[0].base_offset >= end_offset and lost[0] in self.committed.batches:
            raise InvariantBroken(
                f"node {host.node_id} cut its log at {end_offset} and with it what was committed"
            )

    def before_dropping(self, host: Host, end_offset: int) -> None:
        """The log goes, for a snapshot that ends at this offset: nothing committed may be only in the log."""
        lost = host.disk.between(end_offset, self.committed.end_offset)
        if lost and lost[0].base_offset >= end_offset and lost[0] in self.committed.batches:
            raise InvariantBroken(
                f"node {host.node_id} drops its log for a snapshot at {end_offset}, and what was committed with it"
            )

    # Leaders

    def leader_begins(self, host: Host, node: RaftNode) -> None:
        """It has all that was committed, in its log or in the snapshot at its start.

        A candidate may win late, when a newer epoch has long had its leader and its commits: it lacks those by right,
        can commit nothing, and gives way to the first it hears of."""
        committed, disk = self.committed, host.disk
        count = committed.position_before_epoch(node.leader_epoch)
        first = committed.position_of(disk.log_start_offset)
        own_first = bisect_right(disk.ends, disk.log_start_offset)
        # A snapshot may stand for more than what was committed before this epoch.
        if (
            first < count
            and disk.batches[own_first : own_first + count - first] != committed.batches[first:count]
        ):
            raise InvariantBroken(
                f"node {host.node_id} leads epoch {node.leader_epoch} without all that was committed before"
            )

    # Commits

    def commits(self, host: Host, node: RaftNode, high_watermark: int) -> None:
        before = self.high_watermarks.get(host.node_id, -1)
        if high_watermark < before:
            raise InvariantBroken(
                f"the high watermark of node {host.node_id} fell from {before} to {high_watermark}"
            )
        self.high_watermarks[host.node_id] = high_watermark
        if isinstance(node.replica.role, Leader):
            self._check_leader_commit(host, node, node.replica.role, high_watermark)
        self._check_committed_batches(host, high_watermark)

    def _check_leader_commit(self, host: Host, node: RaftNode, role: Leader, high_watermark: int) -> None:
        if high_watermark <= role.epoch_start_offset:
            return
        epoch, offset = self.newest_leader
        if node.leader_epoch >= epoch:
            if high_watermark < offset:
                raise InvariantBroken(
                    f"leader {host.node_id} of epoch {node.leader_epoch} commits {high_watermark}, "
                    f"the leader of epoch {epoch} had committed {offset}"
                )
            self.newest_leader = (node.leader_epoch, high_watermark)
        self._check_majority(host, node, high_watermark)

    def _check_majority(self, host: Host, node: RaftNode, high_watermark: int) -> None:
        """The high watermark rests on flushed logs of a majority of the voters in force."""
        mine = host.disk.between(host.disk.log_start_offset, high_watermark)[-1]
        holders = 0
        for voter in node.replica.voters:
            holders += any(_holds(disk, mine, high_watermark) for disk in self._disks_of(voter))
        if holders < node.replica.voters.majority:
            raise InvariantBroken(
                f"leader {host.node_id} committed {high_watermark} with {holders} durable copies "
                f"among {len(node.replica.voters)} voters"
            )

    def _disks_of(self, voter: Voter) -> Iterator[SimulatedDisk]:
        """The disk of a voter, and those which it had before: a leader may have counted what has since been lost."""
        host = self.world.hosts[voter.key.id]
        if voter.matches(host.key):
            yield host.disk
        for key, disks in self.world.operator.former_disks.items():
            if voter.matches(key):
                yield from disks

    def _check_committed_batches(self, host: Host, high_watermark: int) -> None:
        committed, disk = self.committed, host.disk
        checked = max(self.checked.get(host.node_id, 0), disk.log_start_offset)
        position = committed.position_of(checked)
        for batch in disk.between(checked, high_watermark):
            if position == len(committed.batches):
                assert host.node is not None
                committed.add(batch, host.node.leader_epoch)
            elif batch is not committed.batches[position] and batch != committed.batches[position]:
                raise InvariantBroken(
                    f"node {host.node_id} committed another batch at offset {batch.base_offset} "
                    f"(epoch {batch.leader_epoch}) than was committed before"
                )
            position += 1
            checked = batch.last_offset + 1
        self.checked[host.node_id] = checked
        # A damaged log may end below a snapshot; what is committed there is known by that.
        if high_watermark not in (checked, *(each.offset for each in disk.snapshots)):
            raise InvariantBroken(
                f"the high watermark {high_watermark} of node {host.node_id} is not the end of a batch it has"
            )

    # The end

    def held_by(self, disk: SimulatedDisk) -> int:
        """Up to where a disk keeps what was committed, by now at least."""
        committed = self.committed
        first, own_first = committed.position_of(disk.log_start_offset), self._first_durable(disk)
        end_offset = disk.log_start_offset
        for own, batch in zip(disk.durable[own_first:], committed.batches[first:], strict=False):
            if own is not batch and own != batch:
                break
            end_offset = batch.next_offset
        return end_offset

    def _first_durable(self, disk: SimulatedDisk) -> int:
        return bisect_right(disk.durable_ends, disk.log_start_offset)

    def is_as_committed(self, disk: SimulatedDisk) -> bool:
        """Whether a log holds, from its start on, what was committed, and no more."""
        committed = self.committed
        own_first = bisect_right(disk.ends, disk.log_start_offset)
        return disk.batches[own_first:] == committed.batches[committed.position_of(disk.log_start_offset) :]


def _last_epoch(disk: SimulatedDisk) -> int:
    if disk.ends and disk.ends[-1] > disk.log_start_offset:
        return disk.batches[-1].leader_epoch
    at_start = disk.snapshot_at(disk.log_start_offset)
    return -1 if at_start is None else at_start.snapshot_id.epoch


def _holds(disk: SimulatedDisk, batch: LogBatch, end_offset: int) -> bool:
    """Whether a disk keeps all up to this batch, in its log or in a snapshot, over a loss of power."""
    durable = disk.durable_batch_before(end_offset)
    return durable is batch or durable == batch or any(each.offset >= end_offset for each in disk.snapshots)
