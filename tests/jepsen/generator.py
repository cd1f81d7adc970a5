"""What to do next: generators answer with an operation, a time to wait for, or nothing more.

They are asked by one thread (tests.jepsen.interpreter) and hear of every operation that enters the history, so
they need no locks and never block. Time and dice are given to them; two runs with one seed differ only in what
the cluster answered when.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from tests.jepsen.history import NEMESIS, Op, OpType

SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Context:
    """The moment of asking: which processes are free, and which broker each speaks to."""

    time_ns: int
    free: tuple[int, ...]
    node_of: Callable[[int], int]

    def only(self, keep: Callable[[int], bool]) -> "Context":
        return Context(self.time_ns, tuple(process for process in self.free if keep(process)), self.node_of)


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing now: ask again at `until_ns`, or when an operation has ended if that comes first."""

    until_ns: int | None = None


Next = Op | Wait | None


class Generator(Protocol):
    def next(self, context: Context) -> Next:
        """The operation to invoke now, a Wait, or None when there will be nothing more."""
        ...

    def update(self, op: Op) -> None:
        """Hear of an operation which entered the history."""
        ...


class Ops:
    """Operations made by a function, one each time a process is free; it never ends by itself."""

    def __init__(self, make: Callable[[int], Op], heard: Callable[[Op], None] = lambda _: None) -> None:
        self._make = make
        self._heard = heard

    def next(self, context: Context) -> Next:
        return self._make(context.free[0]) if context.free else Wait()

    def update(self, op: Op) -> None:
        self._heard(op)


class Stagger:
    """Spaces operations at random, `rate` a second on average; they do not queue up while all are busy."""

    def __init__(self, rate: float, inner: Generator, dice: Random) -> None:
        assert rate > 0, f"a rate of {rate} operations a second"
        self._mean_ns = SECOND_NS / rate
        self._inner = inner
        self._dice = dice
        self._due_ns = 0

    def next(self, context: Context) -> Next:
        if context.time_ns < self._due_ns:
            return Wait(self._due_ns)
        op = self._inner.next(context)
        if isinstance(op, Op):
            self._due_ns = context.time_ns + round(self._dice.expovariate(1) * self._mean_ns)
        return op

    def update(self, op: Op) -> None:
        self._inner.update(op)


class TimeLimit:
    """The inner generator for so long, counted from when it was first asked."""

    def __init__(self, limit_ns: int, inner: Generator) -> None:
        self._limit_ns = limit_ns
        self._inner = inner
        self._end_ns: int | None = None

    def next(self, context: Context) -> Next:
        if self._end_ns is None:
            self._end_ns = context.time_ns + self._limit_ns
        if context.time_ns >= self._end_ns:
            return None
        answer = self._inner.next(context)
        if isinstance(answer, Wait):
            until_ns = self._end_ns if answer.until_ns is None else min(answer.until_ns, self._end_ns)
            return Wait(until_ns)
        return answer

    def update(self, op: Op) -> None:
        self._inner.update(op)


class Phases:
    """One generator after the other; the next one starts when all operations of the one before have ended."""

    def __init__(self, *phases: Generator) -> None:
        self._phases = list(phases)
        self._open: set[int] = set()

    def next(self, context: Context) -> Next:
        while self._phases:
            answer = self._phases[0].next(context)
            if answer is not None:
                return answer
            if self._open:
                return Wait()
            self._phases.pop(0)
        return None

    def update(self, op: Op) -> None:
        if op.type is OpType.INVOKE:
            self._open.add(op.process)
        else:
            self._open.discard(op.process)
        for phase in self._phases:
            phase.update(op)


class Together:
    """Clients and nemesis side by side, each asked with its own processes; ends when the clients' part ends."""

    def __init__(self, clients: Generator, nemesis: Generator) -> None:
        self._clients = clients
        self._nemesis = nemesis

    def next(self, context: Context) -> Next:
        fault = self._nemesis.next(context.only(lambda process: process == NEMESIS))
        if isinstance(fault, Op):
            return fault
        answer = self._clients.next(context.only(lambda process: process != NEMESIS))
        if isinstance(answer, Wait) and fault is not None:
            times = [wait.until_ns for wait in (answer, fault) if wait.until_ns is not None]
            return Wait(min(times, default=None))
        return answer

    def update(self, op: Op) -> None:
        (self._clients if op.is_client else self._nemesis).update(op)


class Schedule:
    """The nemesis' plan: (seconds to wait after the op before, f), in a row."""

    def __init__(self, steps: Iterable[tuple[float, str]]) -> None:
        self._steps = list(steps)
        self._due_ns: int | None = None

    def next(self, context: Context) -> Next:
        if not self._steps:
            return None
        delay_s, f = self._steps[0]
        if self._due_ns is None:
            self._due_ns = context.time_ns + round(delay_s * SECOND_NS)
        if context.time_ns < self._due_ns:
            return Wait(self._due_ns)
        if NEMESIS not in context.free:
            return Wait()
        self._steps.pop(0)
        self._due_ns = None
        return Op(type=OpType.INVOKE, f=f, process=NEMESIS)

    def update(self, op: Op) -> None:
        pass


class UntilOk:
    """One operation at a time until one ends as ok."""

    def __init__(self, make: Callable[[int], Op], pause_ns: int = SECOND_NS // 20) -> None:
        self._make = make
        self._pause_ns = pause_ns
        self._process: int | None = None
        self._due_ns = 0
        self._is_done = False

    def next(self, context: Context) -> Next:
        if self._is_done:
            return None
        if self._process is not None or not context.free:
            return Wait()
        if context.time_ns < self._due_ns:
            return Wait(self._due_ns)
        self._process = context.free[0]
        return self._make(self._process)

    def update(self, op: Op) -> None:
        if op.type is OpType.INVOKE or op.process != self._process:
            return
        self._process = None
        self._is_done = op.type is OpType.OK
        self._due_ns = op.time_ns + self._pause_ns


class OncePerNode:
    """On each node: the operation again and again until `is_done` says so of one that ended, or time is up."""

    def __init__(
        self,
        nodes: Sequence[int],
        make: Callable[[int], Op],
        is_done: Callable[[Op], bool],
        pause_ns: int = SECOND_NS // 20,
    ) -> None:
        self._due_ns = dict.fromkeys(nodes, 0)
        self._busy: set[int] = set()
        self._make = make
        self._is_done = is_done
        self._pause_ns = pause_ns

    def next(self, context: Context) -> Next:
        if not self._due_ns:
            return None
        for process in context.free:
            node = context.node_of(process)
            if node not in self._busy and self._due_ns.get(node, context.time_ns + 1) <= context.time_ns:
                self._busy.add(node)
                return self._make(process)
        waiting = [due for node, due in self._due_ns.items() if node not in self._busy]
        return Wait(min((due for due in waiting if due > context.time_ns), default=None))

    def update(self, op: Op) -> None:
        if op.type is OpType.INVOKE or op.node not in self._busy:
            return
        self._busy.discard(op.node)
        if self._is_done(op):
            self._due_ns.pop(op.node, None)
        elif op.node in self._due_ns:
            self._due_ns[op.node] = op.time_ns + self._pause_ns
