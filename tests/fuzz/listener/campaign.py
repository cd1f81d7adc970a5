"""Inputs thrown by many peers at once while a witness is served, and what must not grow counted before and after."""

import asyncio
import gc
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz.held import held
from tests.fuzz.listener.inputs import Input, Inputs
from tests.fuzz.listener.peer import Peer
from tests.fuzz.listener.target import HOST, Target, serving
from tests.fuzz.listener.witness import Witness

PEERS = 24
FINDINGS_MAX = 10
PROGRESS_INPUTS = 20_000
# Of the process, peers and all; what one input takes and keeps would show after a hundred thousand.
GROWTH_MAX_BYTES = 64 * 1024 * 1024
_SETTLING_S = 30.0


@dataclass
class Report:
    seed: int
    inputs: int = 0
    connections: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    witness_answers: int = 0
    witness_slowest_s: float = 0.0
    resident_bytes: tuple[int, int] = (0, 0)  # after the warm-up, and at the end
    descriptors: tuple[int, int] = (0, 0)
    counters: str = ""
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        warm, end = (size >> 20 for size in self.resident_bytes)
        lines = [
            f"seed {self.seed}: {self.inputs} inputs on {self.connections} connections in {self.seconds:.0f} s, "
            f"{len(self.findings)} findings",
            f"memory {warm} MiB after the warm-up, {end} MiB at the end; "
            f"descriptors {self.descriptors[0]} and {self.descriptors[1]}",
            f"the witness had {self.witness_answers} answers, the slowest in {self.witness_slowest_s:.2f} s",
            *(f"  {kind}: {count}" for kind, count in self.kinds.most_common()),
            self.counters,
        ]
        return "\n".join((*lines, *self.findings))


class _Faults(logging.Handler):
    """Every line of level ERROR, of any logger: a peer's fault is a warning here."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._tell = tell
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        # An invalid response of the controller is logged as an error, as it would be.
        if record.name not in ("broker.forwarding", "broker.listener") or record.exc_info:
            self._tell(self.format(record))


class Campaign:
    def __init__(
        self, seed: int, inputs: int, warm_up: int, on_progress: Callable[[str], None] = lambda _: None
    ) -> None:
        self._on_progress = on_progress
        self._last = inputs
        self._warm_up = warm_up
        self._next = 0
        self._under_way: dict[int, Input] = {}
        self.report = Report(seed)

    async def run(self) -> Report:
        faults = _Faults(self._find)
        logging.getLogger().addHandler(faults)
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: self._find(f"the loop: {context.get('message')}: {context.get('exception')!r}")
        )
        try:
            async with serving(self.report.seed) as target:
                await self._attack(target)
        finally:
            logging.getLogger().removeHandler(faults)
        return self.report

    async def _attack(self, target: Target) -> None:
        report, began_s = self.report, time.monotonic()
        ended = asyncio.Event()
        witness = Witness(HOST, target.server.bound_port)
        watching = asyncio.ensure_future(witness.watch(ended))
        await self._throw_until(target, self._warm_up)
        before = await self._settled(target)
        await self._throw_until(target, self._last)
        after = await self._settled(target)
        ended.set()
        await watching
        report.resident_bytes, report.descriptors = (before[0], after[0]), (before[1], after[1])
        report.seconds = time.monotonic() - began_s
        report.witness_answers, report.witness_slowest_s = witness.answers, witness.slowest_s
        report.counters = str(target.server.counters)
        report.findings += witness.problems
        self._judge(target)

    async def _throw_until(self, target: Target, last: int) -> None:
        inputs = Inputs(target.offered, target.image, self.report.seed)
        async with asyncio.TaskGroup() as peers:
            for _ in range(PEERS):
                peers.create_task(self._be_peer(target, inputs, last))

    async def _be_peer(self, target: Target, inputs: Inputs, last: int) -> None:
        peer = Peer(HOST, target.server.bound_port)
        while self._next < last and len(self.report.findings) < FINDINGS_MAX:
            number, self._next = self._next, self._next + 1
            thrown = self._under_way[number] = inputs.make(number)
            problem = await peer.throw(thrown)
            if problem is not None:
                self._find(f"number {number}: {problem}")
            del self._under_way[number]
            self.report.inputs += 1
            self.report.kinds[thrown.kind] += 1
            if self.report.inputs % PROGRESS_INPUTS == 0:
                self._on_progress(f"{self.report.inputs} inputs, {held()[0] >> 20} MiB")
        peer.close()
        self.report.connections += peer.connections

    async def _settled(self, target: Target) -> tuple[int, int]:
        """Resident bytes and open descriptors once only the witness is connected."""
        end_s = time.monotonic() + _SETTLING_S
        while target.server.counters.open_connections > 1 and time.monotonic() < end_s:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        gc.collect()
        return held()

    def _judge(self, target: Target) -> None:
        report, counters, budget = self.report, target.server.counters, target.shared.budget
        if counters.open_connections > 1:
            self._find(f"{counters.open_connections} connections are open after all peers have gone")
        if report.descriptors[1] > report.descriptors[0]:
            self._find(f"descriptors grew from {report.descriptors[0]} to {report.descriptors[1]}")
        if report.resident_bytes[1] - report.resident_bytes[0] > GROWTH_MAX_BYTES:
            self._find(f"memory grew from {report.resident_bytes[0]} to {report.resident_bytes[1]} bytes")
        left: dict[str, Any] = {
            "held bytes": budget.held_bytes,
            "held requests": budget.held_requests,
            "waiting": budget.waiting,
            "muted": counters.muted_connections,
            "pending": counters.pending_requests,
            "failed requests": counters.failed_requests,
            "unanswered requests": counters.unanswered_requests_closed,
        }
        for name, value in left.items():
            if value:
                self._find(f"{name}: {value} at the end")

    def _find(self, problem: str) -> None:
        if len(self.report.findings) >= FINDINGS_MAX:
            return
        known = (
            f"  {number}: {each.kind}, {len(each.data)} bytes: {each.data[:100].hex()}"
            for number, each in self._under_way.items()
        )
        self.report.findings.append("\n".join((f"FOUND {problem}", "under way were", *known)))
