"""Asks the generator, lets the workers do it, and writes the history.

One thread for each client and one for the nemesis; each does one operation at a time. The main thread alone
talks to the generator and appends to the history, so the order of the history is one that really was: an
operation is invoked after its line was written, and its end is written after it was known.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from tests.jepsen.core.generator import Context, Generator, Turn, Wait
from tests.jepsen.core.history import NEMESIS, History, Op, OpType

_IDLE_S = 0.1
JOIN_TIMEOUT_S = 15.0


class Worker(Protocol):
    """Does the operations of one process after the other; every method is called in the worker's own thread."""

    def open(self) -> None:
        """Before the first operation, and again after one that ended as info."""
        ...

    def invoke(self, op: Op) -> Op:
        """Answers `op.ended(...)`. An exception counts as info."""
        ...

    def close(self) -> None: ...


class _WorkerThread:
    def __init__(self, name: str, worker: Worker, done: "queue.Queue[tuple[int, Op]]", place: int) -> None:
        self._worker = worker
        self._done = done
        self._place = place
        self._todo: queue.SimpleQueue[Op | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def submit(self, op: Op | None) -> None:
        """None ends the thread."""
        self._todo.put(op)

    def _run(self) -> None:
        is_open = False
        try:
            while (op := self._todo.get()) is not None:
                is_open, end = self._do(is_open, op)
                self._done.put((self._place, end))
        finally:
            if is_open:
                self._worker.close()

    def _do(self, is_open: bool, op: Op) -> tuple[bool, Op]:
        try:
            if not is_open:
                self._worker.open()
            end = self._worker.invoke(op)
        except Exception as error:  # noqa: BLE001 - a worker that stumbles knows nothing of its operation
            end = op.ended(OpType.INFO, op.value, f"{type(error).__name__}: {error}")
        if end.type is OpType.INFO and op.is_client:
            self._worker.close()
            return False, end
        return True, end


class Interpreter:
    """Runs a generator to its end. `on_event` hears of each line of the history, in the main thread."""

    def __init__(
        self,
        clients: Sequence[Worker],
        nodes: Sequence[int | None],
        nemesis: Worker,
        on_event: Callable[[Op], None] = lambda _: None,
        on_idle: Callable[[int], None] = lambda _: None,
    ) -> None:
        assert clients, "at least one client is needed"
        assert len(clients) == len(nodes), "each client speaks to one node, or to None in particular"
        self._nodes = tuple(nodes)
        self._on_event = on_event
        self._on_idle = on_idle
        # Not a SimpleQueue: its get() with a short timeout may wait for ever (CPython 3.11, where the queue was emptied
        # by a get_nowait() before).
        self._done: queue.Queue[tuple[int, Op]] = queue.Queue()
        workers = [*clients, nemesis]
        self._nemesis_place = len(clients)
        self._threads = [
            _WorkerThread(f"jepsen-{place}", worker, self._done, place)
            for place, worker in enumerate(workers)
        ]
        self._process_at = [*range(len(clients)), NEMESIS]
        self._free = set(range(len(workers)))
        self._turns = 0
        self._last_turn = [0] * len(workers)
        self._started_ns = 0
        self.history = History()

    def run(self, generator: Generator) -> History:
        """The history is kept up to date in `history` too, for an interrupted run."""
        self._started_ns = time.monotonic_ns()
        for each in self._threads:
            each.thread.start()
        try:
            while self._step(generator):
                pass
        finally:
            for each in self._threads:
                each.submit(None)
            for each in self._threads:
                each.thread.join(JOIN_TIMEOUT_S)
        return self.history

    def _step(self, generator: Generator) -> bool:
        now_ns = self._now_ns()
        self._on_idle(now_ns)
        answer = generator.next(Context(now_ns, self._free_turns()))
        if answer is None and len(self._free) == len(self._threads):
            return False
        if isinstance(answer, Op):
            self._invoke(generator, answer)
            self._take(generator, 0)
            return True
        until_ns = answer.until_ns if isinstance(answer, Wait) else None
        limit_s = _IDLE_S if until_ns is None else min(_IDLE_S, max(0.0, (until_ns - now_ns) / 1e9))
        self._take(generator, limit_s)
        return True

    def _invoke(self, generator: Generator, op: Op) -> None:
        place = self._place_of(op.process)
        assert place in self._free, f"process {op.process} is busy"
        self._free.discard(place)
        self._turns += 1
        self._last_turn[place] = self._turns
        self._threads[place].submit(self._enter(generator, op))

    def _take(self, generator: Generator, limit_s: float) -> None:
        """Enter what has ended; waits for a first one up to `limit_s`."""
        try:
            place, end = self._done.get(timeout=limit_s) if limit_s else self._done.get_nowait()
        except queue.Empty:
            return
        self._enter(generator, end)
        self._free.add(place)
        if end.type is OpType.INFO and end.is_client:
            self._process_at[place] += len(self._nodes)

    def _enter(self, generator: Generator, op: Op) -> Op:
        entered = self.history.append(replace(op, time_ns=self._now_ns()))
        generator.update(entered)
        self._on_event(entered)
        return entered

    def _place_of(self, process: int) -> int:
        return self._nemesis_place if process == NEMESIS else process % len(self._nodes)

    def _free_turns(self) -> tuple[Turn, ...]:
        """Those that had no turn for longest come first."""
        order = sorted(self._free, key=lambda place: (self._last_turn[place], place))
        return tuple(self._turn_at(place) for place in order)

    def _turn_at(self, place: int) -> Turn:
        if place == self._nemesis_place:
            return Turn(NEMESIS, NEMESIS, None)
        return Turn(self._process_at[place], place, self._nodes[place])

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self._started_ns
