"""How the core refuses."""


class NotLeaderError(Exception):
    """This replica does not lead the epoch of the proposal; nothing was appended (definite)."""

    def __init__(self, leader_id: int, leader_epoch: int) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        known = f"node {leader_id} leads" if leader_id >= 0 else "no leader is known"
        super().__init__(f"not the leader: {known} in epoch {leader_epoch}")


class RecordBatchTooLargeError(Exception):
    """The records do not fit one batch; nothing was appended (definite)."""


class LogDivergedBelowHighWatermarkError(Exception):
    """The leader asks to cut what was committed: two logs disagree for good, and going on would lose data (fatal)."""
