"""What a node records of its state machine: commits in slices reach the keeper of the snapshots whole."""

from types import SimpleNamespace
from typing import Any

from kquorum.node.observed_state_machine import ObservedStateMachine
from kquorum.wire.log_batch import LogBatch

BATCHES = (LogBatch(0, 0, 1, False, b""), LogBatch(1, 1, 1, False, b""))


def test_a_commit_in_slices_is_passed_to_the_snapshots_with_the_last_one() -> None:
    slices = iter((False, False, True))
    kept: list[tuple[int, Any]] = []
    inner: Any = SimpleNamespace(handle_commit_slice=lambda _now_ms, _batches: next(slices))
    snapshots: Any = SimpleNamespace(handle_commit=lambda now_ms, batches: kept.append((now_ms, batches)))
    machine = ObservedStateMachine(inner, (), snapshots)
    assert [machine.handle_commit_slice(now_ms, BATCHES) for now_ms in (1, 2, 3)] == [False, False, True]
    assert kept == [(3, BATCHES)]
    assert machine.last_commit_ms == 3
