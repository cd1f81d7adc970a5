"""What a history tells of each element of a set: when it was known, when it was gone, and who lagged behind."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.jepsen.core.history import Operation, OpType

CREATE, DELETE, LIST = "create", "delete", "list"


@dataclass(frozen=True, slots=True)
class Read:
    """A list that ended as ok; the two indexes are the lines of the history between which it happened."""

    node: int
    invoked: int
    invoked_ns: int
    ended: int
    ended_ns: int
    elements: frozenset[Any]
    duplicated: frozenset[Any]
    final: bool

    @classmethod
    def of(cls, operation: Operation) -> "Read":
        assert operation.end is not None
        assert operation.invoke.node is not None, "a read says which broker answered"
        values = list(operation.end.value)
        elements = frozenset(values)
        twice = (
            {value for value in elements if values.count(value) > 1} if len(elements) < len(values) else ()
        )
        return cls(
            node=operation.invoke.node,
            invoked=operation.invoke.index,
            invoked_ns=operation.invoke.time_ns,
            ended=operation.end.index,
            ended_ns=operation.end.time_ns,
            elements=elements,
            duplicated=frozenset(twice),
            final=operation.invoke.final,
        )


@dataclass(slots=True)
class Life:
    """What clients were told of one element; indexes are lines of the history, None where there is none."""

    element: Any
    create_invoked: int | None = None
    create_kind: OpType | None = None
    acknowledged: int | None = None
    known: int | None = None
    known_ns: int = 0
    delete_invoked: int | None = None
    delete_acknowledged: int | None = None
    delete_acknowledged_ns: int = 0
    absent_after_known: list[Read] = field(default_factory=list)
    present_after_delete: list[Read] = field(default_factory=list)
    is_read: bool = False

    def learn(self, index: int, time_ns: int) -> None:
        if self.known is None or index < self.known:
            self.known, self.known_ns = index, time_ns

    def may_lack(self, read: Read) -> bool:
        """Whether a delete may have had its effect before the read ended."""
        return self.delete_invoked is not None and self.delete_invoked < read.ended


def lives_of(operations: Iterable[Operation], reads: Sequence[Read]) -> dict[Any, Life]:
    lives: dict[Any, Life] = {}

    def life_of(element: Any) -> Life:
        return lives.setdefault(element, Life(element))

    for operation in operations:
        invoke, end = operation.invoke, operation.end
        if invoke.f == CREATE:
            life = life_of(invoke.value)
            assert life.create_invoked is None, f"{invoke.value} is created twice"
            life.create_invoked, life.create_kind = invoke.index, operation.kind
            if operation.is_ok and end is not None:
                life.acknowledged = end.index
                life.learn(end.index, end.time_ns)
        elif invoke.f == DELETE and operation.kind is not OpType.FAIL:
            life = life_of(invoke.value)
            if life.delete_invoked is None:
                life.delete_invoked = invoke.index
            if operation.is_ok and end is not None and life.delete_acknowledged is None:
                life.delete_acknowledged, life.delete_acknowledged_ns = end.index, end.time_ns
    for read in reads:
        for element in read.elements:
            life_of(element).learn(read.ended, read.ended_ns)
    for life in lives.values():
        _observe(life, reads)
    return lives


def _observe(life: Life, reads: Iterable[Read]) -> None:
    """Note the reads that lag behind what was known when they were invoked."""
    for read in reads:
        present = life.element in read.elements
        life.is_read = life.is_read or present
        if not present and life.known is not None and life.known < read.invoked and not life.may_lack(read):
            life.absent_after_known.append(read)
        if present and life.delete_acknowledged is not None and life.delete_acknowledged < read.invoked:
            life.present_after_delete.append(read)


def lag_ms(later_ns: int, earlier_ns: int) -> int:
    return max(0, (later_ns - earlier_ns) // 1_000_000)


def in_sequence(reads: Iterable[Read]) -> dict[int, list[Read]]:
    """For each broker a chain of reads, each invoked after the one before had ended."""
    chains: dict[int, list[Read]] = {}
    for read in sorted(reads, key=lambda each: each.ended):
        chain = chains.setdefault(read.node, [])
        if not chain or chain[-1].ended < read.invoked:
            chain.append(read)
    return chains
