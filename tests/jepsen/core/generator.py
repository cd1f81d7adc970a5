"""What to do next: generators answer with an operation, a time to wait for, or nothing more.

They are asked by one thread (tests.jepsen.core.interpreter) and hear of every operation that enters the history, so
they need no locks and never block. The time and a random source are arguments; two runs with one seed differ
only in what the cluster answered when.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Protocol

from tests.jepsen.core.history import NEMESIS, Op, OpType

SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Turn:
    """A free process, its place among the seats (NEMESIS for the nemesis) and the node that it speaks to."""

    process: int
    seat: int
    node: int | None

    def invoke(self, f: str, value: Any = None, *, final: bool = False) -> Op:
        return Op(type=OpType.INVOKE, f=f, value=value, process=self.process, node=self.node, final=final)


@dataclass(frozen=True, slots=True)
class Context:
    """The moment of asking, and whose turn it may be: who had none for longest comes first."""

    time_ns: int
    free: tuple[Turn, ...]

    def only(self, keep: Callable[[Turn], bool]) -> "Context":
        return Context(self.time_ns, tuple(turn for turn in self.free if keep(turn)))


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
    """Operations made by a function, one each time a process is free; it never ends by itself.

    The function may answer Wait when there is nothing to do now.
    """

    def __init__(
        self, make: Callable[[Turn], Op | Wait], heard: Callable[[Op], None] = lambda _: None
    ) -> None:
        self._make = make
        self._heard = heard

    def next(self, context: Context) -> Next:
        return self._make(context.free[0]) if context.free else Wait()

    def update(self, op: Op) -> None:
        self._heard(op)


class Stagger:
    """Spaces operations at random, `rate` a second on average; they do not queue up while all are busy."""

    def __init__(self, rate: float, inner: Generator, random_source: Random) -> None:
        assert rate > 0, f"a rate of {rate} operations a second"
        self._mean_ns = SECOND_NS / rate
        self._inner = inner
        self._random_source = random_source
        self._due_ns = 0

    def next(self, context: Context) -> Next:
        if context.time_ns < self._due_ns:
            return Wait(self._due_ns)
        op = self._inner.next(context)
        if isinstance(op, Op):
            self._due_ns = context.time_ns + round(self._random_source.expovariate(1) * self._mean_ns)
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
        fault = self._nemesis.next(context.only(lambda turn: turn.process == NEMESIS))
        if isinstance(fault, Op):
            return fault
        answer = self._clients.next(context.only(lambda turn: turn.process != NEMESIS))
        if isinstance(answer, Wait) and fault is not None:
            times = [wait.until_ns for wait in (answer, fault) if wait.until_ns is not None]
            return Wait(min(times, default=None))
        return answer

    def update(self, op: Op) -> None:
        (self._clients if op.is_client else self._nemesis).update(op)


class OnSeats:
    """A part's generator, for the seats `first` to `first + count - 1` of `total`; it sees them numbered from 0."""

    def __init__(self, first: int, count: int, total: int, inner: Generator) -> None:
        self._first = first
        self._count = count
        self._total = total
        self._inner = inner

    def next(self, context: Context) -> Next:
        ours = [
            replace(turn, seat=turn.seat - self._first)
            for turn in context.free
            if self._first <= turn.seat < self._first + self._count
        ]
        return self._inner.next(Context(context.time_ns, tuple(ours)))

    def update(self, op: Op) -> None:
        if op.is_client and self._first <= op.process % self._total < self._first + self._count:
            self._inner.update(op)


class Only:
    """The inner generator is offered only the turns that a function keeps; it hears of everything."""

    def __init__(self, keep: Callable[[Turn], bool], inner: Generator) -> None:
        self._keep = keep
        self._inner = inner

    def next(self, context: Context) -> Next:
        return self._inner.next(context.only(self._keep))

    def update(self, op: Op) -> None:
        self._inner.update(op)


class SideBySide:
    """Parts that go on at the same time, each on seats of its own; ends when all of them have ended."""

    def __init__(self, *parts: Generator) -> None:
        self._parts = list(parts)

    def next(self, context: Context) -> Next:
        """The part that was served goes to the end of the row, so that none starves."""
        waits: list[Wait] = []
        for part in list(self._parts):
            answer = part.next(context)
            if isinstance(answer, Op):
                self._parts.remove(part)
                self._parts.append(part)
                return answer
            if answer is None:
                self._parts.remove(part)
            else:
                waits.append(answer)
        if not waits:
            return None
        times = [wait.until_ns for wait in waits if wait.until_ns is not None]
        return Wait(min(times, default=None))

    def update(self, op: Op) -> None:
        for part in self._parts:
            part.update(op)


@dataclass(frozen=True, slots=True)
class Step:
    """What the nemesis does `delay_s` seconds after the end of the step before."""

    delay_s: float
    f: str
    value: Any = None


class Schedule:
    """The nemesis' plan, step after step."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self._steps = list(steps)
        self._due_ns: int | None = None

    def next(self, context: Context) -> Next:
        if not self._steps:
            return None
        step = self._steps[0]
        turn = next((turn for turn in context.free if turn.process == NEMESIS), None)
        if turn is None:
            return Wait()  # the time counts from the end of the step before
        if self._due_ns is None:
            self._due_ns = context.time_ns + round(step.delay_s * SECOND_NS)
        if context.time_ns < self._due_ns:
            return Wait(self._due_ns)
        self._steps.pop(0)
        self._due_ns = None
        return turn.invoke(step.f, step.value)

    def update(self, op: Op) -> None:
        pass


class UntilOk:
    """One operation at a time until one ends as ok."""

    def __init__(self, make: Callable[[Turn], Op], pause_ns: int = SECOND_NS // 20) -> None:
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
        turn = context.free[0]
        self._process = turn.process
        return self._make(turn)

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
        make: Callable[[Turn], Op],
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
        for turn in context.free:
            node = turn.node
            if node is None or node in self._busy:
                continue
            if self._due_ns.get(node, context.time_ns + 1) <= context.time_ns:
                self._busy.add(node)
                return self._make(turn)
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
