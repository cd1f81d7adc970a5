"""Hands the committed log to the state machine: in order, once, in portions that leave the loop room to breathe."""

from collections.abc import Sequence
from typing import Protocol

from raft.batches import LogBatch
from raft.ports import StateMachine
from raft.ready import LeaderAndEpoch

PORTION_BYTES = 1024 * 1024


class CommittedLog(Protocol):
    def read_batches(
        self, start_offset: int, max_bytes: int, end_offset: int | None = None
    ) -> Sequence[LogBatch]: ...


class CommittedFeed:
    """Leader changes wait until everything committed before them was handed over (see `StateMachine`)."""

    def __init__(self, log: CommittedLog, state_machine: StateMachine, applied_offset: int = 0) -> None:
        self._log = log
        self._state_machine = state_machine
        self._high_watermark = applied_offset
        self._leader: LeaderAndEpoch | None = None
        self.applied_offset = applied_offset

    def advance(self, high_watermark: int | None, leader: LeaderAndEpoch | None) -> None:
        if high_watermark is not None:
            self._high_watermark = max(self._high_watermark, high_watermark)
        if leader is not None:
            self._leader = leader

    def run(self, now_ms: int) -> bool:
        """Hand over one portion; answers whether the state machine was told anything, and so may have more to do."""
        told = self._feed_portion(now_ms)
        if self._leader is not None and self.applied_offset >= self._high_watermark:
            leader, self._leader = self._leader, None
            self._state_machine.handle_leader_change(now_ms, leader.leader_id, leader.epoch)
            told = True
        return told

    def _feed_portion(self, now_ms: int) -> bool:
        if self.applied_offset >= self._high_watermark:
            return False
        batches = self._log.read_batches(self.applied_offset, PORTION_BYTES, self._high_watermark)
        assert batches, f"the log has nothing at {self.applied_offset}, below its high watermark"
        self._state_machine.handle_commit(now_ms, batches)
        self.applied_offset = batches[-1].next_offset
        return True
