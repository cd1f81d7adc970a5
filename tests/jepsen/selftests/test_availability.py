"""Every workload's writes have to succeed again, not only those of one of them."""

from tests.jepsen.checkers.availability import HEAL, Availability
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.generator import SECOND_NS
from tests.jepsen.core.history import NEMESIS, History, Op, OpType

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


def test_a_history_without_attempts_leaves_doubt() -> None:
    results = Availability({"create"}, {"list"}).check(History())
    assert results[VALID_KEY] is Verdict.UNKNOWN
    assert results["not_tried"] == ["all"]


def last_writes(*tries: tuple[int, float, OpType]) -> Results:
    """Of the last phase: the broker, the second and how it ended; after a heal, at second 0."""
    history = History()
    history.append(Op(type=OpType.INVOKE, f=HEAL, process=NEMESIS))
    history.append(Op(type=OpType.INFO, f=HEAL, process=NEMESIS))
    for process, (node, second, kind) in enumerate(tries):
        for each in (OpType.INVOKE, kind):
            at_ns = round(second * SECOND_NS) + 1
            history.append(
                Op(type=each, f="create", process=process, time_ns=at_ns, node=node, final=True, error="slow")
            )
    return Availability({"create"}, ()).check(history)


def test_a_node_that_never_serves_again_while_others_do_is_stuck() -> None:
    results = last_writes((11, 1, OpType.OK), (12, 2, OpType.FAIL), (12, 40, OpType.FAIL))
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["stuck"] == [{"node": 12, "f": "create", "error": "slow", "refused_for_ms": 39_000}]


def test_a_node_that_serves_in_the_end_or_is_not_asked_for_long_is_not_stuck() -> None:
    in_the_end = last_writes((11, 1, OpType.OK), (12, 40, OpType.FAIL), (12, 41, OpType.OK))
    once = last_writes((12, 1, OpType.FAIL), (12, 38, OpType.FAIL), (11, 40, OpType.OK))
    assert [each[VALID_KEY] for each in (in_the_end, once)] == [Verdict.VALID, Verdict.VALID]
