"""What a controller acknowledged is there in the end, also where no observer saw its place."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.jepsen.checkers.lease_writes import LIST_WRITES, UNPLACED, LeaseWrites
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.errors import ClientError
from tests.jepsen.core.history import History, Op, OpType
from tests.jepsen.workloads.lease_workers import check_elected, check_reassigned

OK, INFO, FAIL = OpType.OK, OpType.INFO, OpType.FAIL


class ScriptedHistory:
    def __init__(self) -> None:
        self.ops: list[Op] = []

    def write(self, marker: str, kind: OpType = OK, error: str | None = None) -> "ScriptedHistory":
        value = {"controller": 1, "marker": marker}
        told = {**value, "offset": len(self.ops), "epoch": 1} if kind is OK else value
        return self._did("write-at", value, told, kind, 1, error)

    def list(self, broker: int, *markers: str, kind: OpType = OK) -> "ScriptedHistory":
        return self._did(LIST_WRITES, None, list(markers) if kind is OK else None, kind, broker)

    def _did(
        self, f: str, asked: Any, told: Any, kind: OpType, node: int, error: str | None = None
    ) -> "ScriptedHistory":
        process = len(self.ops)
        self.ops.append(Op(type=OpType.INVOKE, f=f, value=asked, process=process, node=node))
        self.ops.append(Op(type=kind, f=f, value=told, process=process, node=node, error=error))
        return self

    def judged(self) -> Results:
        return LeaseWrites((11, 12)).check(History(self.ops))


def test_what_was_acknowledged_and_is_listed_by_all_is_valid() -> None:
    results = (
        ScriptedHistory().write("a").write("b", INFO, "EOFError").list(11, "a", "b").list(12, "a").judged()
    )
    assert (results[VALID_KEY], results["acknowledged"]) == (Verdict.VALID, 1)


def test_an_acknowledged_write_that_one_broker_lacks_is_lost() -> None:
    results = ScriptedHistory().write("a").list(11, "a").list(12).judged()
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["lost"] == [{"marker": "a", "missing_on": [12], "index": 1}]


def test_an_acknowledged_write_without_a_place_in_the_log_is_lost_as_well() -> None:
    results = ScriptedHistory().write("a").write("b", INFO, UNPLACED).list(11, "a").judged()
    assert (results[VALID_KEY], results["unplaced"]) == (Verdict.INVALID, 1)
    assert [row["marker"] for row in results["lost"]] == ["b"]


def test_a_write_that_surely_failed_and_is_there_is_a_phantom() -> None:
    results = ScriptedHistory().write("a").write("b", FAIL, "INVALID_REQUEST").list(11, "a", "b").judged()
    assert results[VALID_KEY] is Verdict.INVALID
    assert [row["marker"] for row in results["phantom"]] == ["b"]


def test_only_a_brokers_last_list_counts() -> None:
    assert (
        ScriptedHistory().write("a").list(11).list(11, "a").list(12, "a").judged()[VALID_KEY] is Verdict.VALID
    )


@pytest.mark.parametrize("listed", [("a", "unknown"), ("a", "a")])
def test_an_unwritten_or_repeated_marker_is_a_phantom(listed: tuple[str, ...]) -> None:
    results = ScriptedHistory().write("a").list(11, "a").list(12, *listed).judged()
    assert (results[VALID_KEY], results["phantom_count"]) == (Verdict.INVALID, 1)


def test_a_broker_that_was_never_asked_leaves_doubt() -> None:
    results = ScriptedHistory().write("a").list(11, "a").judged()
    assert (results[VALID_KEY], results["brokers_without_list"]) == (Verdict.UNKNOWN, [12])


def test_a_write_after_the_first_list_may_be_missing() -> None:
    scripted = ScriptedHistory().write("a").list(11, "a").write("b").list(12, "a")
    assert scripted.judged()[VALID_KEY] is Verdict.VALID


def test_a_broker_that_gave_no_list_leaves_doubt() -> None:
    results = ScriptedHistory().write("a").list(11, "a").list(12, kind=FAIL).judged()
    assert (results[VALID_KEY], results["brokers_without_list"]) == (Verdict.UNKNOWN, [12])
    assert ScriptedHistory().list(11).judged()[VALID_KEY] is Verdict.UNKNOWN


def outcome(code: int, name: str = "error", **more: Any) -> Any:
    class Code(int):
        pass

    error = Code(code)
    error.name = name  # type: ignore[attr-defined]
    return SimpleNamespace(error_code=error, error_message=None, **more)


def test_a_swap_of_a_topic_that_is_not_there_is_no_success() -> None:
    """The request as a whole succeeds."""
    topic = SimpleNamespace(partitions=[outcome(3, "unknown_topic_or_partition")])
    with pytest.raises(ClientError, match="UNKNOWN_TOPIC"):
        check_reassigned(outcome(0, responses=[topic]))
    check_reassigned(outcome(0, responses=[SimpleNamespace(partitions=[outcome(0)])]))


def test_a_preferred_leader_that_leads_already_needs_no_election() -> None:
    def elected(code: int) -> Any:
        return outcome(0, replica_election_results=[SimpleNamespace(partition_result=[outcome(code)])])

    check_elected(elected(0))
    check_elected(elected(84))
    with pytest.raises(ClientError) as raised:
        check_elected(elected(80))
    assert not raised.value.definite
