"""How far a majority of the voters is: the high watermark (Raft §5.3, §5.4.2)."""

from raft.messages import UNKNOWN_OFFSET
from raft.replica import Replica
from raft.replication import majority_offset
from raft.roles import Leader
from raft.voters import Voter


def maybe_advance_high_watermark(replica: Replica, leader: Leader) -> None:
    """Commit what a majority has on disk, once that includes a record of this epoch (Raft §5.4.2).

    The leader counts what it has flushed, not what it has written.
    """
    if replica.high_watermark >= replica.log.log_end_offset:
        return
    reached = majority_offset(voter_end_offset(replica, leader, voter) for voter in replica.voters)
    if reached > leader.epoch_start_offset and reached > replica.high_watermark:
        replica.high_watermark = reached


def voter_end_offset(replica: Replica, leader: Leader, voter: Voter) -> int:
    if voter.matches(replica.key):
        return replica.log.flushed_offset
    progress = leader.progress.get(voter.key)
    return UNKNOWN_OFFSET if progress is None else min(progress.end_offset, replica.log.log_end_offset)
