"""What is committed, handed to the state machine in log order, each batch once; and who leads, in its place."""

from raft.adapters.driver_ports import BatchLog
from raft.ports import StateMachine
from raft.ready import LeaderAndEpoch

CHUNK_BYTES = 1024 * 1024


class CommitFeed:
    """Delivers in pieces of at most a mebibyte, so that catching up never holds the loop for long.

    "You lead" waits until all that was committed when the core said so has been handed over; that another node
    or nobody leads is told at once, for a state machine must stop deciding even if it lags behind.
    """

    def __init__(self, log: BatchLog, state_machine: StateMachine, node_id: int, applied_offset: int) -> None:
        self._log = log
        self._state_machine = state_machine
        self._node_id = node_id
        self._high_watermark = applied_offset
        self._own_leadership: LeaderAndEpoch | None = None
        self._own_leadership_offset = 0
        self.applied_offset = applied_offset

    @property
    def has_more(self) -> bool:
        return self.applied_offset < self._high_watermark

    def advance(self, high_watermark: int) -> None:
        """All below `high_watermark` is committed."""
        self._high_watermark = max(self._high_watermark, high_watermark)

    def lead_changed(self, now_ms: int, leader: LeaderAndEpoch) -> None:
        """Tell who leads, now or when the state machine has caught up."""
        self._own_leadership = None
        if leader.leader_id == self._node_id and self.has_more:
            self._own_leadership = leader
            self._own_leadership_offset = self._high_watermark
        else:
            self._state_machine.handle_leader_change(now_ms, leader.leader_id, leader.epoch)

    def deliver(self, now_ms: int) -> None:
        """Hand over the next piece, if there is one, and then the leadership that waited for it."""
        if self.has_more:
            batches = self._log.read_batches(self.applied_offset, CHUNK_BYTES, self._high_watermark)
            if not batches:
                # A high watermark inside a batch, as a follower with a senseless offset can bring about: the batch
                # is committed when all of it is.
                self._high_watermark = self.applied_offset
                return
            assert batches[0].base_offset == self.applied_offset, batches[0].base_offset
            self._state_machine.handle_commit(now_ms, batches)
            self.applied_offset = batches[-1].next_offset
        leader = self._own_leadership
        if leader is not None and self.applied_offset >= self._own_leadership_offset:
            self._own_leadership = None
            self._state_machine.handle_leader_change(now_ms, leader.leader_id, leader.epoch)
