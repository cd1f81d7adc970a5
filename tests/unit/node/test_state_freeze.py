"""The state of a node is frozen as it grows by committed records, and by nothing else."""

import gc
from typing import Any

from kquorum.node.observed_state_machine import ObservedStateMachine
from kquorum.node.state_freeze import RECORDS_FOR_A_FREEZE, StateFreeze
from kquorum.wire.log_batch import LogBatch


def batch(records: int, base_offset: int = 0) -> LogBatch:
    return LogBatch(base_offset, base_offset + records - 1, 1, False, b"")


def test_each_ten_thousand_records_freeze_once() -> None:
    freezes = list[int]()
    state = StateFreeze(lambda: freezes.append(committed))
    committed = 0
    for _ in range(25):
        size = RECORDS_FOR_A_FREEZE // 10
        committed += size
        state.note([batch(size // 2, committed), batch(size - size // 2, committed)])
    assert freezes == [RECORDS_FOR_A_FREEZE, 2 * RECORDS_FOR_A_FREEZE]


def test_a_batch_of_more_freezes_once() -> None:
    freezes = list[bool]()
    StateFreeze(lambda: freezes.append(True)).note([batch(5 * RECORDS_FOR_A_FREEZE)])
    assert freezes == [True]


class Nothing:
    """Of a state machine and of snapshots: takes commits."""

    def handle_commit(self, now_ms: int, batches: Any) -> None: ...
    def handle_commit_slice(self, now_ms: int, batches: Any) -> bool:
        return len(batches) > 1


def test_what_a_machine_was_given_is_no_matter_of_the_collector() -> None:
    nothing: Any = Nothing()
    machine = ObservedStateMachine(nothing, (), nothing)
    before = gc.get_freeze_count()
    try:
        machine.handle_commit_slice(0, [batch(RECORDS_FOR_A_FREEZE)])
        assert gc.get_freeze_count() == before, "the slice was not the last one"
        kept = [[number] for number in range(1_000)]
        machine.handle_commit(0, [batch(RECORDS_FOR_A_FREEZE)])
        assert gc.get_freeze_count() >= before + len(kept)
    finally:
        gc.unfreeze()
