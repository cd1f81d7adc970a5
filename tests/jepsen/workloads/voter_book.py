"""Which change of the voters to ask for next, from what the controllers told last."""

from dataclasses import dataclass
from random import Random
from typing import Any

from tests.jepsen.checkers.voters import ADD, READ, REMOVE
from tests.jepsen.core.generator import SECOND_NS
from tests.jepsen.core.history import Op, OpType
from tests.jepsen.core.members import Members

_FAULTLESS = 3
_IN_DOUBT_NS = 10 * SECOND_NS


@dataclass(frozen=True, slots=True)
class Change:
    f: str
    voter: int
    directory: str


@dataclass(frozen=True, slots=True)
class _Told:
    """A leader's answer; `asked` is the line of the history in which it was asked."""

    value: dict[str, Any]
    asked: int

    def ids(self, key: str) -> dict[int, str]:
        return {int(node_id): directory for node_id, directory in self.value[key].items()}


class VoterBook:
    """Keeps enough voters for the faults of a run.

    Never fewer than one below those that the quorum began with, nor than three: a majority of two that lose a disk is
    gone for good, and lawfully so. The clients race with each other, so each voter counts as gone once a client began
    to remove it, and as there only when nothing about it is in doubt.
    """

    def __init__(self, members: Members) -> None:
        self._quorum = members.quorum
        first = len(members.controllers)
        self._least = max(first - 1, min(first, _FAULTLESS))
        self._told: _Told | None = None
        self._asked_at: dict[int, int] = {}
        self._leaving: dict[int, int] = {}
        self._left_at: dict[int, int] = {}
        self._doubted_at_ns: dict[int, int] = {}
        self._now_ns = 0

    @property
    def leader(self) -> int | None:
        return None if self._told is None else self._told.value["leader"]

    def hear(self, op: Op) -> None:
        self._now_ns = op.time_ns
        if op.f == READ:
            self._hear_read(op)
        elif op.f == REMOVE:
            self._hear_remove(op)
        elif op.f == ADD:
            self._hear_add(op)

    def choose(self, random_source: Random) -> Change | None:
        """None while the voters are unknown."""
        if self._told is None:
            return None
        voters, observers = self._told.ids("voters"), self._told.ids("observers")
        gone = {voter for voter, left_at in self._left_at.items() if left_at > self._told.asked}
        gone |= set(self._leaving.values())
        doubted = {voter for voter, at in self._doubted_at_ns.items() if self._now_ns - at < _IN_DOUBT_NS}
        sure = set(voters) - gone - doubted
        choices = [Change(ADD, node_id, observers[node_id]) for node_id in self._candidates(voters)]
        if len(sure) > self._least:
            choices += [Change(REMOVE, node_id, voters[node_id]) for node_id in sorted(voters)]
        return random_source.choice(choices) if choices else None

    def _candidates(self, voters: dict[int, str]) -> list[int]:
        assert self._told is not None
        observers = self._told.ids("observers")
        return [node_id for node_id in self._quorum if node_id in observers and node_id not in voters]

    def _hear_read(self, op: Op) -> None:
        if op.type is OpType.INVOKE:
            self._asked_at[op.process] = op.index
            return
        asked = self._asked_at.pop(op.process)
        if op.type is not OpType.OK or "voters" not in op.value:
            return
        known = -1 if self._told is None else self._told.value["epoch"]
        if op.value["epoch"] >= known:
            self._told = _Told(op.value, asked)

    def _hear_remove(self, op: Op) -> None:
        if op.type is OpType.INVOKE:
            self._leaving[op.process] = op.value["voter"]
            return
        voter = self._leaving.pop(op.process)
        if op.type is not OpType.FAIL:
            self._left_at[voter] = op.index
        if op.type is OpType.INFO:
            self._doubted_at_ns[voter] = op.time_ns

    def _hear_add(self, op: Op) -> None:
        """Until it is acknowledged, the next leader may not know of it."""
        if op.type is OpType.OK:
            self._doubted_at_ns.pop(op.value["voter"], None)
        elif op.type is not OpType.FAIL:
            self._doubted_at_ns[op.value["voter"]] = op.time_ns
