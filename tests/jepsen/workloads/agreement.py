"""A last phase that waits until all controllers follow one leader and hold what it had committed."""

from collections.abc import Callable, Sequence
from typing import Any

from tests.jepsen.core.generator import Context, Generator, Next, OncePerNode, TimeLimit
from tests.jepsen.core.history import Op, OpType
from tests.jepsen.workloads.workload import RECOVERY_NS


class OfSeats:
    """The inner generator, asked with some of the seats alone; it hears of everything."""

    def __init__(self, keep: Callable[[int], bool], inner: Generator) -> None:
        self._keep = keep
        self._inner = inner

    def next(self, context: Context) -> Next:
        return self._inner.next(context.only(lambda turn: self._keep(turn.seat)))

    def update(self, op: Op) -> None:
        self._inner.update(op)


class Agreement:
    """Asks each controller by `f` what DescribeQuorum tells, from the seat of a `VotersReader` that is its own."""

    def __init__(self, quorum: Sequence[int], f: str) -> None:
        self._quorum = tuple(quorum)
        self._f = f
        self._last_views: dict[int, dict[str, Any]] = {}
        self._mark: int | None = None
        self._is_reached = False

    def phase(self) -> Generator:
        """It gives up after RECOVERY_NS; a checker sees what is missing then."""
        reads = OncePerNode(self._quorum, lambda turn: turn.invoke(self._f, final=True), self.is_reached_with)
        return TimeLimit(RECOVERY_NS, reads)

    def is_reached_with(self, op: Op) -> bool:
        """All name one leader, and it knows that all hold what it had committed when it was first named by all. Once
        that was so it is enough: who was asked before is not asked about a leader that came after."""
        self._is_reached = self._is_reached or self._is_shown_with(op)
        return self._is_reached

    def _is_shown_with(self, op: Op) -> bool:
        if op.type is not OpType.OK or op.node is None:
            return False
        self._last_views[op.node] = op.value
        leaders = {(view["leader"], view["epoch"]) for view in self._last_views.values()}
        told = self._last_views.get(op.value["leader"], {})
        if len(self._last_views) < len(self._quorum) or len(leaders) > 1 or "voters" not in told:
            return False
        if self._mark is None:
            self._mark = told["high_watermark"]
        return all(told["ends"].get(str(node), -1) >= self._mark for node in self._quorum)
