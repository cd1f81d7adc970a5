"""Writes at controllers are topics, and what was acknowledged is there in the end, whichever node leads by then.

`write-at` ends as `info` also when a controller acknowledged it and did not show its place in the log in time. That is
an acknowledgement all the same: a controller that answers before a majority has the record, and then loses it, never
shows any place. `list-writes` is what a broker shows when all is healed: every topic of ours.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tests.jepsen.checkers.lease import WRITE_AT
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History, Operation, OpType

LIST_WRITES = "list-writes"
UNPLACED = "acknowledged, but the controller did not show its place"
_SHOWN_MAX = 50


class LeaseWrites:
    """An acknowledged write that a final list lacks is **lost**; one that surely failed, or that no client asked for,
    and is in one, is a **phantom**, as is one that stands in it twice.

    In doubt when one of the brokers gave no list.
    """

    name = "lease-writes"

    def __init__(self, brokers: Collection[int]) -> None:
        self._brokers = frozenset(brokers)

    def check(self, history: History) -> Results:
        operations = history.operations()
        writes = [each for each in operations if each.invoke.f == WRITE_AT]
        lists = {each.invoke.node: each for each in operations if each.invoke.f == LIST_WRITES and each.is_ok}
        begun = min((each.invoke.index for each in lists.values()), default=-1)
        acknowledged = [each for each in writes if _acknowledged_by(each, begun)]
        lost = _missing(acknowledged, lists)
        phantoms = _shown([each for each in writes if each.kind is OpType.FAIL], lists)
        phantoms += _odd({each.invoke.value["marker"] for each in writes}, lists)
        silent = sorted(self._brokers - lists.keys())
        doubt = bool(silent) or not acknowledged
        passed = Verdict.UNKNOWN if doubt else Verdict.VALID
        return {
            VALID_KEY: Verdict.INVALID if lost or phantoms else passed,
            "acknowledged": len(acknowledged),
            "unplaced": sum(each.kind is OpType.INFO for each in acknowledged),
            "lost_count": len(lost),
            "lost": lost[:_SHOWN_MAX],
            "phantom_count": len(phantoms),
            "phantom": phantoms[:_SHOWN_MAX],
            "brokers_without_list": silent,
        }


def _acknowledged_by(write: Operation, line: int) -> bool:
    end = write.end
    if end is None or end.index > line:
        return False
    return write.is_ok or (write.kind is OpType.INFO and end.error == UNPLACED)


def _missing(writes: Sequence[Operation], lists: dict[Any, Operation]) -> list[Results]:
    rows = []
    for write in writes:
        marker = write.invoke.value["marker"]
        assert write.end is not None
        if missing_on := sorted(node for node, each in lists.items() if marker not in each.value):
            rows.append({"marker": marker, "missing_on": missing_on, "index": write.end.index})
    return rows


def _odd(asked: Collection[str], lists: Mapping[Any, Operation]) -> list[Results]:
    rows: list[Results] = []
    for node, each in lists.items():
        counts = Counter(each.value)
        assert each.end is not None
        rows += [
            {"marker": marker, "shown_on": [node], "times": count, "index": each.end.index}
            for marker, count in counts.items()
            if count > 1 or marker not in asked
        ]
    return rows


def _shown(writes: Sequence[Operation], lists: dict[Any, Operation]) -> list[Results]:
    rows = []
    for write in writes:
        marker = write.invoke.value["marker"]
        if shown_on := sorted(node for node, each in lists.items() if marker in each.value):
            rows.append({"marker": marker, "shown_on": shown_on, "index": write.invoke.index})
    return rows
