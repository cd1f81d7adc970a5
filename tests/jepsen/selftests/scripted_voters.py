"""Histories of voter changes, written by hand."""

import itertools
from typing import Any

from tests.jepsen.checkers.verdicts import Results
from tests.jepsen.checkers.voters import ADD, LIST, PUT, READ, REMOVE, Voters
from tests.jepsen.core.history import History, Op, OpType
from tests.jepsen.core.members import Members

MEMBERS = Members.of(controllers=3, brokers=1, spares=1)


BROKER = 11


def directory(voter: int) -> str:
    return f"disk-{voter}"


class ScriptedHistory:
    """A history of a quorum, told one operation after the other."""

    def __init__(self) -> None:
        self.history = History()
        self._processes = itertools.count()

    def invoke(self, f: str, value: Any = None, **more: Any) -> Op:
        op = Op(type=OpType.INVOKE, f=f, value=value, process=next(self._processes), **more)
        return self.history.append(op)

    def end(self, invoked: Op, value: Any = None, kind: OpType = OpType.OK) -> "ScriptedHistory":
        self.history.append(invoked.ended(kind, invoked.value if value is None else value))
        return self

    def asked(self, f: str, voter: int, on: str = "") -> Op:
        return self.invoke(f, {"voter": voter, "directory": on or directory(voter), "via": 1})

    def add(self, voter: int, kind: OpType = OpType.OK, on: str = "") -> "ScriptedHistory":
        return self.end(self.asked(ADD, voter, on), kind=kind)

    def remove(self, voter: int, kind: OpType = OpType.OK) -> "ScriptedHistory":
        return self.end(self.asked(REMOVE, voter), kind=kind)

    def read(
        self,
        *voters: int,
        node: int = 1,
        leader: int = 1,
        epoch: int = 1,
        final: bool = False,
        mark: int | None = None,
    ) -> "ScriptedHistory":
        """Without voters it is the answer of a node that does not lead; without a mark that of an older history."""
        value: dict[str, Any] = {"leader": leader, "epoch": epoch}
        if voters:
            value["voters"] = {str(voter): directory(voter) for voter in voters}
        if mark is not None:
            value["high_watermark"] = mark
        return self.end(self.invoke(READ, node=node, final=final), value)

    def put(self, topic: int) -> "ScriptedHistory":
        return self.end(self.invoke(PUT, topic, node=BROKER))

    def judged(self, *voters: int, topics: tuple[int, ...] = (), epoch: int = 1) -> Results:
        """With final reads in which all agree on these voters."""
        self.read(*voters, epoch=epoch, final=True)
        for node in (2, 3, 4):
            self.read(node=node, epoch=epoch, final=True)
        self.end(self.invoke(LIST, node=BROKER, final=True), list(topics))
        return self.verdict()

    def verdict(self) -> Results:
        return Voters(MEMBERS).check(self.history)
