"""Every workload's writes have to succeed again, not only those of one of them."""

from tests.jepsen.checkers.availability import HEAL, Availability
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.history import NEMESIS, History, Op, OpType

WRITES = {"topics-set": {"create", "delete"}, "config-set": {"append"}}


def judged(*after: tuple[str, OpType]) -> Results:
    """What was written after the heal, and how it ended."""
    history = History()

    def did(f: str, kind: OpType, process: int) -> None:
        for each in (OpType.INVOKE, kind):
            history.append(Op(type=each, f=f, process=process, time_ns=len(history) + 1))

    did("create", OpType.OK, 1)
    did("append", OpType.OK, 2)
    did("isolate-leader", OpType.INFO, NEMESIS)
    did(HEAL, OpType.INFO, NEMESIS)
    for process, (f, kind) in enumerate(after, start=3):
        did(f, kind, process)
    return Availability({"create", "delete", "append"}, (), WRITES).check(history)


def test_a_workload_whose_writes_never_succeed_again_is_invalid() -> None:
    results = judged(("create", OpType.OK), ("append", OpType.INFO))
    assert (results[VALID_KEY], results["not_recovered"]) == (Verdict.INVALID, ["config-set"])


def test_one_kind_of_write_is_enough_for_each_workload() -> None:
    results = judged(("delete", OpType.OK), ("append", OpType.OK))
    assert (results[VALID_KEY], results["not_recovered"]) == (Verdict.VALID, [])


def test_a_history_in_which_nobody_tried_leaves_doubt() -> None:
    results = Availability({"create"}, {"list"}).check(History())
    assert results[VALID_KEY] is Verdict.UNKNOWN
    assert results["not_tried"] == ["all"]
