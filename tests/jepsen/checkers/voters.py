"""Judges a history of changing voters (KIP-853): see `Voters` for the rules."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.checkers.voter_attempts import ADD as ADD
from tests.jepsen.checkers.voter_attempts import REMOVE as REMOVE
from tests.jepsen.checkers.voter_attempts import Attempt, attempts_in
from tests.jepsen.checkers.voter_lives import Change, State, course_of
from tests.jepsen.core.history import History, Operation, OpType
from tests.jepsen.core.members import Members

READ = "read-voters"
PUT, LIST = "put-topic", "list-topics"
_SHOWN_MAX = 50
# Ids and directories.
Voting = frozenset[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class View:
    """What one controller told; `voters` (id and directory) only where it led, by its own account, and then with its
    high watermark and the end of its log. Older histories have neither of these."""

    node: int
    leader: int
    epoch: int
    voters: Voting | None
    invoked: int
    ended: int
    final: bool
    high_watermark: int | None
    log_end: int | None


class Voters:
    """The rules:

    - Two controllers never lead in one epoch: **two leaders**.
    - What a leader tells differs from what it told before, and from the voters at the start, by voters that a client
      asked to add or to remove, at a time that fits: else **unexplained**. Each change is of one voter, so more of
      them than there were requests are unexplained too.
    - While a leader commits nothing (one high watermark) it changes one voter at most, as the next change has to wait
      until the last one is committed: else there were **two changes at once**.
    - The acknowledged changes of a voter can all have happened, each in the time that it took: else they are
      **contradictory**. What they left is what the last leader tells: else a change is **lost**.
    - When all is healed there is a leader, whom all controllers name in one epoch: else the quorum is **unsettled**.
      By then it is one of the voters that it tells: else it is a **leader outside**, who ought to have resigned.
    - A topic whose creation was acknowledged is in the last list of every broker: else it is a **lost topic**.
    """

    name = "voters"

    def __init__(self, members: Members) -> None:
        self._members = members

    def check(self, history: History) -> Results:
        operations = history.operations()
        views = views_in(operations)
        last = _last_of(views)
        settled = settled_view(views, self._members)
        attempts = attempts_in(history)
        asked = [each for each in operations if each.invoke.f in (ADD, REMOVE)]
        lists = {each.invoke.node: each for each in operations if _is_final_list(each)}
        violations: dict[str, list[Results]] = {
            "two_leaders": list(_two_leaders(views)),
            "unexplained": list(self._unexplained(attempts, views)),
            "two_changes_at_once": list(_two_changes_at_once(views)),
            **self._lives(attempts, views, settled),
            "unsettled": [] if settled or len(last) < len(self._members.quorum) else [_last_words(last)],
            "leader_outside": list(_leader_outside(settled)),
            "lost_topics": list(_lost_topics(operations, lists)),
        }
        silent = [node for node in self._members.quorum if node not in last]
        unlisted = [node for node in self._members.brokers if node not in lists]
        counts = {f: sum(each.is_ok and each.invoke.f == f for each in asked) for f in (ADD, REMOVE)}
        doubt = bool(silent or unlisted) or not all(counts.values())
        return {
            VALID_KEY: _verdict(any(violations.values()), doubt),
            "added": counts[ADD],
            "removed": counts[REMOVE],
            "in_doubt": sum(each.kind is OpType.INFO for each in asked),
            "voter_sets_seen": len({view.voters for view in views if view.voters is not None}),
            "epochs_seen": len({view.epoch for view in views}),
            "last_voters": None if settled is None else sorted(settled.voters or ()),
            **{f"{name}_count": len(found) for name, found in violations.items()},
            **{name: found[:_SHOWN_MAX] for name, found in violations.items()},
            "controllers_without_final_read": silent,
            "brokers_without_final_list": unlisted,
        }

    def _unexplained(self, attempts: list[Attempt], views: list[View]) -> Iterator[Results]:
        chains: dict[tuple[int, int], list[View]] = defaultdict(list)
        for view in sorted(views, key=lambda view: view.invoked):
            if view.voters is not None:
                chains[view.leader, view.epoch].append(view)
        for chain in chains.values():
            yield from self._unexplained_at_first(chain[0], attempts)
            for before, after in pairwise(chain):
                if before.ended < after.invoked:
                    yield from _leap(before, after, attempts)

    def _unexplained_at_first(self, view: View, attempts: list[Attempt]) -> Iterator[Results]:
        """Of the first voters the directories are not known, only the ids."""
        assert view.voters is not None
        told, first = {voter for voter, _ in view.voters}, set(self._members.controllers)
        for f, voters in ((ADD, told - first), (REMOVE, first - told)):
            for voter in sorted(voters):
                if not _may_have_been(attempts, (f, voter, None), -1, view.ended):
                    yield _told(f, voter, view, "no client had asked for it")

    def _lives(
        self, attempts: list[Attempt], views: list[View], settled: View | None
    ) -> dict[str, list[Results]]:
        contradictory, lost = [], []
        for voter in self._members.quorum:
            changes = _changes(voter, attempts, views)
            course = course_of(self._first_state(voter, changes, views), changes)
            if course.stuck_at is not None:
                contradictory.append(_stuck(voter, course.stuck_at, course.ends))
            elif settled is not None and (told := _state_in(settled, voter)) not in course.ends:
                may_be = sorted(map(_words, course.ends))
                lost.append({"voter": voter, "told": _words(told), "may_be": may_be, "index": settled.ended})
        return {"contradictory": contradictory, "lost": lost}

    def _first_state(self, voter: int, changes: list[Change], views: list[View]) -> State:
        """The directory of an initial voter, when it is reported or removed for the first time."""
        if voter not in self._members.controllers:
            return None
        told = [(view.ended, directory) for view in views if (directory := _state_in(view, voter))]
        removed = [(change.invoked, change.directory) for change in changes if not change.is_add]
        return min([*told, *removed], default=(0, "?"))[1]


def _verdict(violated: bool, doubt: bool) -> Verdict:
    if violated:
        return Verdict.INVALID
    return Verdict.UNKNOWN if doubt else Verdict.VALID


def views_in(operations: Iterable[Operation]) -> list[View]:
    """What the controllers told, in the order in which they were asked."""
    return [_view(each) for each in operations if each.invoke.f == READ and each.is_ok]


def _view(operation: Operation) -> View:
    value, end = operation.value, operation.end
    assert end is not None
    assert end.node is not None
    voters = value.get("voters")
    return View(
        node=end.node,
        leader=value["leader"],
        epoch=value["epoch"],
        voters=None if voters is None else frozenset((int(voter), each) for voter, each in voters.items()),
        invoked=operation.invoke.index,
        ended=end.index,
        final=operation.invoke.final,
        high_watermark=value.get("high_watermark"),
        log_end=value.get("ends", {}).get(str(value["leader"])),
    )


def _state_in(view: View, voter: int) -> State:
    return next((directory for each, directory in view.voters or () if each == voter), None)


def _words(state: State) -> str:
    return "no voter" if state is None else f"a voter with directory {state}"


def _last_of(views: Iterable[View]) -> dict[int, View]:
    return {view.node: view for view in views if view.final}


def settled_view(views: Iterable[View], members: Members) -> View | None:
    """The last view of the newest leader whom all controllers named in the end; who named it early is not asked again,
    and may not know of a leader that came after."""
    final = [view for view in views if view.final and view.leader >= 0]
    named: dict[tuple[int, int], set[int]] = defaultdict(set)
    for view in final:
        named[view.epoch, view.leader].add(view.node)
    agreed = [each for each, nodes in named.items() if nodes.issuperset(members.quorum)]
    epoch, leader = max(agreed, default=(-1, -1))
    told = [view for view in final if (view.epoch, view.leader, view.node) == (epoch, leader, leader)]
    return next((view for view in reversed(told) if view.voters is not None), None)


def _last_words(last: dict[int, View]) -> Results:
    return {str(node): {"leader": view.leader, "epoch": view.epoch} for node, view in sorted(last.items())}


def _two_leaders(views: Iterable[View]) -> Iterator[Results]:
    leaders: dict[int, dict[int, int]] = defaultdict(dict)
    for view in views:
        if view.leader >= 0:
            leaders[view.epoch].setdefault(view.leader, view.ended)
    for epoch, told in sorted(leaders.items()):
        if len(told) > 1:
            yield {"epoch": epoch, "told_at": told}


def _two_changes_at_once(views: Iterable[View]) -> Iterator[Results]:
    """The same sets may be told many times: each pair of them is shown once, by the views that told them first."""
    told: dict[tuple[int, int, int], dict[Voting, View]] = defaultdict(dict)
    for view in views:
        if view.voters is not None and view.high_watermark is not None:
            told[view.leader, view.epoch, view.high_watermark].setdefault(view.voters, view)
    for (leader, epoch, mark), by_voters in told.items():
        for one, other in combinations(by_voters, 2):
            if len(one ^ other) > 1:
                yield {
                    "leader": leader,
                    "epoch": epoch,
                    "high_watermark": mark,
                    "changed": sorted(one ^ other),
                    "indexes": [by_voters[one].ended, by_voters[other].ended],
                }


def _leader_outside(settled: View | None) -> Iterator[Results]:
    if settled is None:
        return
    assert settled.voters is not None
    voters = sorted(voter for voter, _ in settled.voters)
    if settled.leader not in voters:
        yield {"leader": settled.leader, "epoch": settled.epoch, "voters": voters, "index": settled.ended}


def _may_have_been(
    attempts: list[Attempt], what: tuple[str, int, str | None], after: int, before: int
) -> bool:
    return any(each.may_be(*what) and each.may_be_between(after, before) for each in attempts)


def _leap(before: View, after: View, attempts: list[Attempt]) -> Iterator[Results]:
    assert before.voters is not None
    assert after.voters is not None
    for f, difference in ((ADD, after.voters - before.voters), (REMOVE, before.voters - after.voters)):
        for voter, directory in sorted(difference):
            if not _may_have_been(attempts, (f, voter, directory), before.invoked, after.ended):
                yield _told(f, voter, after, f"at {before.ended} it was otherwise, and no request fits")


def _told(f: str, voter: int, view: View, why: str) -> Results:
    return {
        "change": f,
        "voter": voter,
        "leader": view.leader,
        "epoch": view.epoch,
        "index": view.ended,
        "why": why,
    }


def _changes(voter: int, attempts: list[Attempt], views: list[View]) -> list[Change]:
    """Of an attempt whose directory no client wrote down, one for each that is known of this voter."""
    ours = [each for each in attempts if each.voter == voter]
    known = {each.directory for each in ours if each.directory is not None}
    known |= {directory for view in views if (directory := _state_in(view, voter)) is not None}
    return [
        Change(each.f == ADD, directory, each.invoked, each.ended)
        for each in ours
        for directory in ([each.directory] if each.directory is not None else sorted(known))
    ]


def _stuck(voter: int, change: Change, states: Iterable[State]) -> Results:
    return {
        "voter": voter,
        "change": ADD if change.is_add else REMOVE,
        "directory": change.directory,
        "invoked": change.invoked,
        "acknowledged": change.ended,
        "why": f"then it was {' or '.join(sorted(map(_words, states)))}",
    }


def _is_final_list(operation: Operation) -> bool:
    return operation.invoke.f == LIST and operation.invoke.final and operation.is_ok


def _lost_topics(operations: list[Operation], lists: dict[Any, Operation]) -> Iterator[Results]:
    begun = min((each.invoke.index for each in lists.values()), default=-1)
    for each in operations:
        if each.invoke.f != PUT or not each.is_ok or each.end is None or each.end.index > begun:
            continue
        missing_on = sorted(node for node, found in lists.items() if each.invoke.value not in found.value)
        if missing_on:
            yield {"topic": each.invoke.value, "missing_on": missing_on, "acknowledged": each.end.index}
