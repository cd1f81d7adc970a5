"""Judges a history of changing voters (KIP-853): see `Voters` for the rules."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.checkers.voter_lives import Change, State, course_of
from tests.jepsen.history import History, Operation, OpType
from tests.jepsen.members import Members

ADD, REMOVE, READ = "add-voter", "remove-voter", "read-voters"
PUT, LIST = "put-topic", "list-topics"
_SHOWN_MAX = 50


@dataclass(frozen=True, slots=True)
class View:
    """What one controller told; `voters` (id and directory) only where it led, by its own account."""

    node: int
    leader: int
    epoch: int
    voters: frozenset[tuple[int, str]] | None
    invoked: int
    ended: int
    final: bool


class Voters:
    """The rules:

    - Two controllers never lead in one epoch: **two leaders**.
    - What a leader tells differs from what it told before, and from the voters at the start, by voters that somebody
      asked to add or to remove, at a time that fits: else **unexplained**. Each change is of one voter, so more of
      them than there were requests are unexplained too.
    - The acknowledged changes of a voter can all have happened, each in the time that it took: else they are
      **contradictory**. What they left is what the last leader tells: else a change is **lost**.
    - When all is healed there is a leader, whom all controllers name in one epoch: else the quorum is **unsettled**.
    - A topic whose creation was acknowledged is in the last list of every broker: else it is a **lost topic**.
    """

    name = "voters"

    def __init__(self, members: Members) -> None:
        self._members = members

    def check(self, history: History) -> Results:
        operations = history.operations()
        views = [_view(each) for each in operations if each.invoke.f == READ and each.is_ok]
        last = {view.node: view for view in views if view.final}
        settled = _settled(last, self._members)
        acknowledged = [each for each in operations if each.invoke.f in (ADD, REMOVE) and each.is_ok]
        lists = {each.invoke.node: each for each in operations if _is_final_list(each)}
        violations: dict[str, list[Results]] = {
            "two_leaders": list(_two_leaders(views)),
            "unexplained": list(self._unexplained(operations, views)),
            **self._lives(operations, views, settled),
            "unsettled": [] if settled or len(last) < len(self._members.quorum) else [_last_words(last)],
            "lost_topics": list(_lost_topics(operations, lists)),
        }
        silent = [node for node in self._members.quorum if node not in last]
        unlisted = [node for node in self._members.brokers if node not in lists]
        counts = {f: sum(each.invoke.f == f for each in acknowledged) for f in (ADD, REMOVE)}
        doubt = bool(silent or unlisted) or not all(counts.values())
        return {
            VALID_KEY: _verdict(any(violations.values()), doubt),
            "added": counts[ADD],
            "removed": counts[REMOVE],
            "in_doubt": sum(
                each.invoke.f in (ADD, REMOVE) and each.kind is OpType.INFO for each in operations
            ),
            "voter_sets_seen": len({view.voters for view in views if view.voters is not None}),
            "epochs_seen": len({view.epoch for view in views}),
            "last_voters": None if settled is None else sorted(settled.voters or ()),
            **{f"{name}_count": len(found) for name, found in violations.items()},
            **{name: found[:_SHOWN_MAX] for name, found in violations.items()},
            "controllers_without_final_read": silent,
            "brokers_without_final_list": unlisted,
        }

    def _unexplained(self, operations: list[Operation], views: list[View]) -> Iterator[Results]:
        changes = [
            each for each in operations if each.invoke.f in (ADD, REMOVE) and each.kind is not OpType.FAIL
        ]
        chains: dict[tuple[int, int], list[View]] = defaultdict(list)
        for view in sorted(views, key=lambda view: view.invoked):
            if view.voters is not None:
                chains[view.leader, view.epoch].append(view)
        for chain in chains.values():
            yield from self._unexplained_at_first(chain[0], changes)
            for before, after in pairwise(chain):
                if before.ended < after.invoked:
                    yield from _leap(before, after, changes)

    def _unexplained_at_first(self, view: View, changes: list[Operation]) -> Iterator[Results]:
        """Of the first voters the directories are not known, only the ids."""
        assert view.voters is not None
        told, first = {voter for voter, _ in view.voters}, set(self._members.controllers)
        for f, voters in ((ADD, told - first), (REMOVE, first - told)):
            for voter in sorted(voters):
                if not any(_may_have(each, f, voter, -1, view.ended) for each in changes):
                    yield _told(f, voter, view, "nobody had asked for it")

    def _lives(
        self, operations: list[Operation], views: list[View], settled: View | None
    ) -> dict[str, list[Results]]:
        contradictory, lost = [], []
        for voter in self._members.quorum:
            changes = [change for each in operations if (change := _change(each, voter)) is not None]
            first = self._first_state(voter, changes, views)
            course = course_of(first, changes)
            if course.stuck_at is not None:
                contradictory.append(_stuck(voter, course.stuck_at, course.ends))
            elif settled is not None and (told := _state_in(settled, voter)) not in course.ends:
                may_be = sorted(map(_words, course.ends))
                lost.append({"voter": voter, "told": _words(told), "may_be": may_be, "index": settled.ended})
        return {"contradictory": contradictory, "lost": lost}

    def _first_state(self, voter: int, changes: list[Change], views: list[View]) -> State:
        """The directory of a voter of the beginning, as it is told or removed for the first time."""
        if voter not in self._members.controllers:
            return None
        told = [(view.ended, directory) for view in views if (directory := _state_in(view, voter))]
        removed = [(change.invoked, change.directory) for change in changes if not change.is_add]
        return min([*told, *removed], default=(0, "?"))[1]


def _verdict(violated: bool, doubt: bool) -> Verdict:
    if violated:
        return Verdict.INVALID
    return Verdict.UNKNOWN if doubt else Verdict.VALID


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
    )


def _state_in(view: View, voter: int) -> State:
    return next((directory for each, directory in view.voters or () if each == voter), None)


def _words(state: State) -> str:
    return "no voter" if state is None else f"a voter with directory {state}"


def _settled(last: dict[int, View], members: Members) -> View | None:
    """The leader's last view, if all controllers named it in the same epoch."""
    if any(node not in last for node in members.quorum):
        return None
    if len({(view.leader, view.epoch) for view in last.values()}) != 1:
        return None
    told = last.get(next(iter(last.values())).leader)
    return told if told is not None and told.voters is not None else None


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


def _may_have(operation: Operation, f: str, voter: int, after: int, before: int) -> bool:
    """Whether it can have made this change between two lines of the history."""
    asked = operation.invoke
    if (asked.f, asked.value["voter"]) != (f, voter) or asked.index > before:
        return False
    return not operation.is_ok or operation.end is None or operation.end.index > after


def _leap(before: View, after: View, changes: list[Operation]) -> Iterator[Results]:
    assert before.voters is not None
    assert after.voters is not None
    for f, difference in ((ADD, after.voters - before.voters), (REMOVE, before.voters - after.voters)):
        for voter, directory in sorted(difference):
            fitting = [each for each in changes if each.invoke.value["directory"] == directory]
            if not any(_may_have(each, f, voter, before.invoked, after.ended) for each in fitting):
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


def _change(operation: Operation, voter: int) -> Change | None:
    asked = operation.invoke
    if asked.f not in (ADD, REMOVE) or asked.value["voter"] != voter or operation.kind is OpType.FAIL:
        return None
    ended = operation.end.index if operation.is_ok and operation.end is not None else None
    return Change(asked.f == ADD, asked.value["directory"], asked.index, ended)


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
