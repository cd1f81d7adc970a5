"""What must be true of snapshots: each is the replay of what was committed, and nothing that it stands for is lost."""

from kquorum.raft.node import RaftNode
from kquorum.wire.log_batch import OffsetAndEpoch
from tests.simulation.committed import CommittedLog
from tests.simulation.errors import InvariantBroken
from tests.simulation.hosts import Host
from tests.simulation.snapshot_files import SnapshotFile


class SnapshotChecks:
    def __init__(self, committed: CommittedLog) -> None:
        self.committed = committed

    def put(self, host: Host, snapshot: SnapshotFile) -> None:
        """A snapshot got its name, written or fetched."""
        snapshot_id = snapshot.snapshot_id
        if snapshot_id.offset > self.committed.end_offset:
            raise InvariantBroken(
                f"node {host.node_id} has a snapshot at {snapshot_id.offset}, "
                f"but only {self.committed.end_offset} is committed"
            )
        if snapshot_id != self.committed.id_at(snapshot_id.offset):
            raise InvariantBroken(f"node {host.node_id} has {snapshot_id}, but another epoch ends there")
        if snapshot.state != self.committed.state_at(snapshot_id.offset):
            raise InvariantBroken(
                f"the snapshot of node {host.node_id} at {snapshot_id.offset} is not what was committed up to there"
            )
        if snapshot.quorum_records != self.committed.quorum_at(snapshot_id.offset):
            raise InvariantBroken(
                f"the snapshot of node {host.node_id} at {snapshot_id.offset} names other voters than were in force"
            )

    def log_starts(self, host: Host) -> None:
        """A replica without the beginning of the log has a snapshot that ends exactly where its log begins."""
        start_offset = host.disk.log_start_offset
        if start_offset > 0 and host.disk.snapshot_at(start_offset) is None:
            raise InvariantBroken(
                f"the log of node {host.node_id} begins at {start_offset}, and no snapshot ends there"
            )
        if start_offset > self.committed.end_offset:
            raise InvariantBroken(
                f"the log of node {host.node_id} begins at {start_offset}, "
                f"but only {self.committed.end_offset} is committed"
            )

    def core_knows(self, node: RaftNode) -> None:
        """What a core holds of its snapshots fits its log, and all that they stand for is committed."""
        log = node.replica.log
        if log.snapshots and log.snapshots[0].offset < log.log_start_offset:
            raise InvariantBroken(
                f"node {node.node_id} offers {log.snapshots[0]}, but its log begins at {log.log_start_offset}"
            )
        if node.high_watermark < log.log_start_offset > 0:
            raise InvariantBroken(
                f"the log of node {node.node_id} begins at {log.log_start_offset}, "
                f"above its high watermark {node.high_watermark}"
            )

    def loaded(self, host: Host, snapshot_id: OffsetAndEpoch) -> None:
        """A state machine never shows what it was before."""
        if snapshot_id.offset < host.applied:
            raise InvariantBroken(
                f"node {host.node_id} goes back from {host.applied} to its snapshot at {snapshot_id.offset}"
            )

    def state_of(self, host: Host) -> None:
        """What the state machine became by snapshots and batches is what the batches alone would have made it."""
        if host.state != self.committed.state_at(host.applied):
            raise InvariantBroken(
                f"the state machine of node {host.node_id} is not what was committed up to {host.applied}"
            )
