"""The changes of the voters as the log has them, beside what the clients were told."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from raft.voters import VoterSet
from tests.jepsen.checkers.node_batches import NodeLog, node_logs
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.checkers.voters import ADD, REMOVE
from tests.jepsen.history import History, OpType
from tests.jepsen.members import Members
from wire.uuids import uuid_to_text

# What was done, the voter's id, its directory.
Step = tuple[str, int, str]


class VoterLogs:
    """The rules:

    - In every log each set of voters differs from the one before by one voter at most: else it is a **leap**. (Of
      none, where a voter told a new address.)
    - The longest log has each acknowledged change as often as it was acknowledged: else one is **missing**; and no
      more often than it was asked for and not refused: else one is **unasked**.

    The second rule is judged by a log that begins with the first record, if there is one: a node that came in by a
    snapshot has no other.
    """

    name = "voter-logs"

    def __init__(self, folder: Path, members: Members) -> None:
        self._folder = folder
        self._members = members

    def check(self, history: History) -> Results:
        logs = node_logs(self._folder, self._members.all)
        longest = max(logs, key=lambda log: (_is_from_the_start(log), log.end))
        leaps = [leap for log in logs for leap in _leaps(log)]
        is_from_the_start = _is_from_the_start(longest)
        made = Counter(step for _, steps in _changes(longest) for step in steps)
        acknowledged = _asked(history, (OpType.OK,))
        possible = _asked(history, (OpType.OK, OpType.INFO))
        reaches_the_end = longest.end >= max((log.voters[-1][0] for log in logs if log.voters), default=0)
        missing = _words(acknowledged - made) if is_from_the_start and reaches_the_end else []
        unasked = _words(made - possible)
        is_violated = bool(leaps or missing or unasked)
        passed = Verdict.VALID if made else Verdict.UNKNOWN
        return {
            VALID_KEY: Verdict.INVALID if is_violated else passed,
            "changes": made.total(),
            "log": longest.node,
            "is_from_the_start": is_from_the_start,
            "leaps": leaps,
            "missing": missing,
            "unasked": unasked,
        }


def _is_from_the_start(log: NodeLog) -> bool:
    return log.start == 0 and log.is_whole


def _changes(log: NodeLog) -> Iterator[tuple[int, list[Step]]]:
    """Each offset at which a set stands that others stood before, and what is different since."""
    for (_, before), (offset, after) in pairwise(log.voters):
        old, new = _voters(before), _voters(after)
        yield (
            offset,
            [
                *((ADD, *voter) for voter in sorted(new - old)),
                *((REMOVE, *voter) for voter in sorted(old - new)),
            ],
        )


def _leaps(log: NodeLog) -> Iterator[Results]:
    for offset, steps in _changes(log):
        if len(steps) > 1:
            yield {"node": log.node, "offset": offset, "changes": _words(Counter(steps))}


def _voters(voters: VoterSet) -> set[tuple[int, str]]:
    return {(key.id, uuid_to_text(key.directory_id)) for key in (each.key for each in voters.voters.values())}


def _asked(history: History, kinds: tuple[OpType, ...]) -> Counter[Step]:
    return Counter(
        (each.invoke.f, each.invoke.value["voter"], each.invoke.value["directory"])
        for each in history.operations()
        if each.invoke.f in (ADD, REMOVE) and each.kind in kinds
    )


def _words(steps: Counter[Step]) -> list[str]:
    return [
        f"{f} {voter} with directory {directory}, {count} times"
        for (f, voter, directory), count in sorted(steps.items())
    ]
