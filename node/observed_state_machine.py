"""A state machine whose commits, leader changes and snapshots the node records."""

import logging
from collections.abc import Callable, Sequence

from kquorum.metadata.adapters.snapshot_manager import SnapshotManager
from kquorum.metadata.snapshot import LoadedSnapshot
from kquorum.node.state_freeze import StateFreeze
from kquorum.raft.ports import StateMachine
from kquorum.wire.log_batch import LogBatch

log = logging.getLogger("node.quorum_member")

LeaderObserver = Callable[[int, int], object]
"""Takes the id of a new leader, -1 while there is none, and its epoch."""


class ObservedStateMachine:
    """Passes each call on to a state machine, and afterwards to the keeper of the snapshots and to the observers of
    leader changes."""

    def __init__(
        self, inner: StateMachine, leader_observers: Sequence[LeaderObserver], snapshots: SnapshotManager
    ) -> None:
        self._inner = inner
        self._leader_observers = leader_observers
        self._snapshots = snapshots
        self._state_freeze = StateFreeze()
        self.last_commit_ms: int | None = None
        self.leaders_seen = 0
        self.snapshots_loaded = 0

    @property
    def is_in_transaction(self) -> bool:
        return self._inner.is_in_transaction

    def handle_commit(self, now_ms: int, batches: Sequence[LogBatch]) -> None:
        self.last_commit_ms = now_ms
        self._inner.handle_commit(now_ms, batches)
        self._handle_committed(now_ms, batches)

    def handle_commit_slice(self, now_ms: int, batches: Sequence[LogBatch]) -> bool:
        self.last_commit_ms = now_ms
        is_done = self._inner.handle_commit_slice(now_ms, batches)
        if is_done:
            self._handle_committed(now_ms, batches)
        return is_done

    def _handle_committed(self, now_ms: int, batches: Sequence[LogBatch]) -> None:
        self._snapshots.handle_commit(now_ms, batches)
        self._state_freeze.note(batches)

    def handle_snapshot(self, now_ms: int, state: object) -> None:
        """No commit: it may be this node's own, which says nothing of the quorum of today."""
        self.snapshots_loaded += 1
        self._inner.handle_snapshot(now_ms, state)
        assert isinstance(state, LoadedSnapshot), state
        self._snapshots.handle_snapshot(now_ms, state.image, state.last_audit_note)

    def handle_leader_change(self, now_ms: int, leader_id: int, leader_epoch: int) -> None:
        log.info("the active controller of epoch %d is %d", leader_epoch, leader_id)
        self.leaders_seen += leader_id >= 0
        self._inner.handle_leader_change(now_ms, leader_id, leader_epoch)
        for observe in self._leader_observers:
            observe(leader_id, leader_epoch)

    def handle_time(self, now_ms: int) -> None:
        self._inner.handle_time(now_ms)

    def next_deadline_ms(self) -> int | None:
        return self._inner.next_deadline_ms()
