"""Whether acknowledged changes of one voter can have happened, in some order, in the time that each of them took.

A voter is in the set, with one directory, or it is not. An add takes hold where it is not, a remove where it is, with
that directory: the leader refuses all else. So the acknowledged changes must have a place each, between their
invocation and their end, in a row of such steps; a change in doubt may have happened at any time after its invocation,
or never. The search goes through the history once and keeps every state that is possible by then.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

Outside = None
State = str | None  # the directory of a voter; None where it is none


@dataclass(frozen=True, slots=True)
class Change:
    """`ended` is None where its end is in doubt; both are lines of the history."""

    is_add: bool
    directory: str
    invoked: int
    ended: int | None

    def step(self, state: State) -> tuple[bool, State]:
        """Whether it can take hold in this state, and the next one."""
        if self.is_add:
            return state is Outside, self.directory
        return state == self.directory, Outside


@dataclass(frozen=True, slots=True)
class _World:
    """A possible course: `done` are acknowledged changes that are still open and have happened already; `spent`
    counts the changes in doubt that have happened, by kind."""

    state: State
    done: frozenset[int]
    spent: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Course:
    """`stuck_at` is the acknowledged change that has no place; otherwise `ends` are the states that may be left."""

    stuck_at: Change | None
    ends: frozenset[State]


def course_of(first: State, changes: Iterable[Change]) -> Course:
    """The search; `ends` includes what changes in doubt may have done up to now."""
    return _Search(sorted(changes, key=lambda change: change.invoked)).run(first)


class _Search:
    def __init__(self, changes: Sequence[Change]) -> None:
        self._acknowledged = [change for change in changes if change.ended is not None]
        doubts = [change for change in changes if change.ended is None]
        self._kinds = sorted({(change.is_add, change.directory) for change in doubts})
        self._doubts_from = [
            [change for change in doubts if (change.is_add, change.directory) == kind] for kind in self._kinds
        ]

    def run(self, first: State) -> Course:
        worlds = [_World(first, frozenset(), (0,) * len(self._kinds))]
        for place in sorted(range(len(self._acknowledged)), key=self._ended):
            now = self._ended(place)
            reached = self._reachable(worlds, now)
            worlds = [replace(world, done=world.done - {place}) for world in reached if place in world.done]
            if not worlds:
                return Course(self._acknowledged[place], frozenset(world.state for world in reached))
        last = self._reachable(worlds, None)
        return Course(None, frozenset(world.state for world in last))

    def _ended(self, place: int) -> int:
        ended = self._acknowledged[place].ended
        assert ended is not None
        return ended

    def _reachable(self, worlds: Iterable[_World], now: int | None) -> list[_World]:
        """These, and those to which changes lead that were invoked before `now` (None: all of them)."""
        found = _Thriftiest()
        fresh = [world for world in worlds if found.add(world)]
        while fresh:
            fresh += [world for world in self._next(fresh.pop(), now) if found.add(world)]
        return found.all()

    def _next(self, world: _World, now: int | None) -> Iterable[_World]:
        for place, change in enumerate(self._acknowledged):
            if now is None or not change.invoked < now <= self._ended(place) or place in world.done:
                continue
            fits, state = change.step(world.state)
            if fits:
                yield _World(state, world.done | {place}, world.spent)
        for kind, doubts in enumerate(self._doubts_from):
            begun = sum(1 for change in doubts if now is None or change.invoked < now)
            fits, state = doubts[0].step(world.state)
            if fits and world.spent[kind] < begun:
                spent = tuple(count + (each == kind) for each, count in enumerate(world.spent))
                yield _World(state, world.done, spent)


class _Thriftiest:
    """Of worlds that are alike, only those that spent least: whatever the others can become, these can as well."""

    def __init__(self) -> None:
        self._alike: dict[tuple[State, frozenset[int]], list[_World]] = {}

    def add(self, world: _World) -> bool:
        """Whether it is news."""
        alike = self._alike.setdefault((world.state, world.done), [])
        if any(_is_no_dearer(each, world) for each in alike):
            return False
        alike[:] = [each for each in alike if not _is_no_dearer(world, each)]
        alike.append(world)
        return True

    def all(self) -> list[_World]:
        return [world for alike in self._alike.values() for world in alike]


def _is_no_dearer(world: _World, other: _World) -> bool:
    return all(less <= more for less, more in zip(world.spent, other.spent, strict=True))
