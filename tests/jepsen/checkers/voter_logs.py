"""The changes of the voters as the log has them, beside what the clients were told."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from kquorum.raft.voters import VoterSet
from kquorum.wire.uuids import uuid_to_text
from tests.jepsen.checkers.node_batches import NodeLog, node_logs
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.checkers.voter_attempts import ADD, REMOVE, attempts_in
from tests.jepsen.checkers.voters import View, Voting, settled_view, views_in
from tests.jepsen.core.history import History, OpType
from tests.jepsen.core.members import Members

# What was done, the voter's id, its directory.
Step = tuple[str, int, str]


class VoterLogs:
    """The rules:

    - In every log each set of voters differs from the one before by one voter at most: else it is a **leap**. (Of
      none, where a voter told a new address.)
    - The longest log has each acknowledged change as often as it was acknowledged: else one is **missing**; and no
      more often than it was asked for and not refused: else one is **unasked**.
    - The voters that the last leader tells when all is healed are those of the last record of them in that log, as far
      as the leader's log went then: else they are **untrue**.

    The second and third rules are judged by a log that begins with the first record, if there is one: a node that came
    in by a snapshot has no other.
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
        unasked = [step for step in made - possible if not _is_of_nemesis(step, history)]
        reaches_the_end = longest.end >= max((log.voters[-1][0] for log in logs if log.voters), default=0)
        missing = _words(acknowledged - made) if is_from_the_start and reaches_the_end else []
        untrue = list(_untrue(longest, settled_view(views_in(history.operations()), self._members)))
        is_violated = bool(leaps or missing or unasked or untrue)
        passed = Verdict.VALID if made else Verdict.UNKNOWN
        return {
            VALID_KEY: Verdict.INVALID if is_violated else passed,
            "changes": made.total(),
            "log": longest.node,
            "is_from_the_start": is_from_the_start,
            "leaps": leaps,
            "missing": missing,
            "unasked": _words(Counter(unasked)),
            "untrue": untrue,
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


def _untrue(log: NodeLog, settled: View | None) -> Iterator[Results]:
    """Judged where the log has a record of the voters, and reaches as far as the leader's did when it told them."""
    if settled is None or settled.voters is None or settled.log_end is None or log.end < settled.log_end:
        return
    records = [(offset, voters) for offset, voters in log.voters if offset < settled.log_end]
    for offset, voters in records[-1:]:
        if settled.voters != _voters(voters):
            yield {
                "leader": settled.leader,
                "index": settled.ended,
                "told": sorted(settled.voters),
                "offset": offset,
                "in_the_log": sorted(_voters(voters)),
            }


def _voters(voters: VoterSet) -> Voting:
    return frozenset(
        (key.id, uuid_to_text(key.directory_id)) for key in (each.key for each in voters.voters.values())
    )


def _asked(history: History, kinds: tuple[OpType, ...]) -> Counter[Step]:
    return Counter(
        (each.invoke.f, each.invoke.value["voter"], each.invoke.value["directory"])
        for each in history.operations()
        if each.invoke.f in (ADD, REMOVE) and each.kind in kinds
    )


def _is_of_nemesis(step: Step, history: History) -> bool:
    """Whether the nemesis, too, changed this voter; it does not write down by which directory."""
    f, voter, _ = step
    return any(each.directory is None and each.may_be(f, voter, None) for each in attempts_in(history))


def _words(steps: Counter[Step]) -> list[str]:
    return [
        f"{f} {voter} with directory {directory}, {count} times"
        for (f, voter, directory), count in sorted(steps.items())
    ]
