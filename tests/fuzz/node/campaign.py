"""Inputs thrown at a node by many peers at once, way by way, while the turns of its loop are measured.

A turn above the limit is a finding. The inputs under way at that time are kept in files, and each is thrown again by
itself: the report says which of them takes that long alone.
"""

import asyncio
import gc
import math
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.held import held
from tests.fuzz.listener.inputs import Input
from tests.fuzz.node.measured_node import LIMIT_S, MeasuredNode, measured_node
from tests.fuzz.node.ways import WAYS, Maker, Thrower, Way
from tests.support.node.loop_turns import LongTurn
from tests.support.single_node import HOST

PEERS = 24
FINDINGS_MAX = 5
_LOOK_S = 0.25
# Inputs that have ended and may have been served in a turn that is not known yet.
_ENDED_KEPT = 3_000
_SUSPECTS_MAX = 60
_MARGIN_S = 0.02
# grpcio prints a traceback of its own for a client that has gone before it could be told of an error.
_FAULT = re.compile(
    r"^.*( ERROR | CRITICAL |Traceback \(most recent call last\):\n(?!  File \"src/python/grpcio)).*$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Thrown:
    number: int
    input: Input
    began_s: float
    ended_s: float


@dataclass
class WayReport:
    way: str
    inputs: int = 0
    connections: int = 0
    seconds: float = 0.0
    longest_s: float = 0.0
    collecting_s: float = 0.0
    longest: str = ""
    long_turns: int = 0
    resident_bytes: tuple[int, int] = (0, 0)
    descriptors: tuple[int, int] = (0, 0)
    kinds: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        before, after = (size >> 20 for size in self.resident_bytes)
        return (
            f"{self.way}: {self.inputs} inputs on {self.connections} connections in {self.seconds:.0f} s; "
            f"longest turn {self.longest_s * 1000:.1f} ms (collecting {self.collecting_s * 1000:.1f}) in "
            f"{self.longest[:120]}; {self.long_turns} above the "
            f"limit; memory {before} and {after} MiB; descriptors {self.descriptors[0]} and "
            f"{self.descriptors[1]}; {len(self.findings)} findings"
        )


class Campaign:
    def __init__(
        self,
        seed: int,
        inputs: int,
        folder: Path,
        *,
        ways: Sequence[Way] = WAYS,
        only: Sequence[int] | None = None,
        limit_s: float = LIMIT_S,
        seconds: float = math.inf,
        on_progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`folder` gets the node's data and the inputs that are suspected. `only`: just the inputs of these numbers.
        Each way ends after its share of `seconds`, should that be before its last input."""
        self._seed = seed
        self._inputs = inputs
        self._folder = folder
        self._ways = ways
        self._only = only
        self._limit_s = limit_s
        self._seconds = seconds
        self._on_progress = on_progress

    def run(self, runner: asyncio.Runner) -> list[WayReport]:
        reports = []
        for is_secured in sorted({way.is_secured for way in self._ways}):
            ways = [way for way in self._ways if way.is_secured is is_secured]
            folder = self._folder / ("secured" if is_secured else "open")
            with measured_node(folder, is_secured=is_secured, limit_s=self._limit_s) as node:
                reports += runner.run(self._attack(node, ways))
        return reports

    async def _attack(self, node: MeasuredNode, ways: Sequence[Way]) -> list[WayReport]:
        whole = sum(way.share for way in self._ways)
        reports = []
        for way in ways:
            if not node.is_running:
                break
            numbers = range(round(self._inputs * way.share / whole)) if self._only is None else self._only
            attack = _Attack(node, way, await way.maker(node, self._seed), self._seed, self._folder)
            await attack.run(numbers, self._seconds * way.share / whole)
            self._on_progress("\n".join((str(attack.report), *attack.report.findings)))
            reports.append(attack.report)
        return reports


class _Attack:
    """One way into one node."""

    def __init__(self, node: MeasuredNode, way: Way, maker: Maker, seed: int, folder: Path) -> None:
        self._node = node
        self._way = way
        self._maker = maker
        self._seed = seed
        self._folder = folder
        self._ended: deque[Thrown] = deque(maxlen=_ENDED_KEPT)
        self._under_way: dict[int, tuple[Input, float]] = {}
        self._long: list[tuple[LongTurn, list[Thrown]]] = []
        self._is_over = False
        self._end_s = math.inf
        self.report = WayReport(way.name)

    async def run(self, numbers: Sequence[int], seconds: float) -> None:
        report, began_s = self.report, time.monotonic()
        self._end_s = began_s + seconds
        # What this side has made stays, and is not to be gone through while the node waits for the next input.
        gc.collect()
        gc.freeze()
        known = self._faults()
        before = held(self._node.pid)
        await asyncio.to_thread(self._node.turns)
        looking = asyncio.ensure_future(self._look())
        left = iter(numbers)
        async with asyncio.TaskGroup() as peers:
            for _ in range(min(PEERS, len(numbers))):
                peers.create_task(self._be_peer(left))
        self._is_over = True
        await looking
        await self._judge_turns()
        await self._judge_node(known)
        if self._node.is_running:
            after = held(self._node.pid)
            report.resident_bytes, report.descriptors = (before[0], after[0]), (before[1], after[1])
        report.seconds = time.monotonic() - began_s

    async def _be_peer(self, left: Iterator[int]) -> None:
        peer = self._way.peer(self._node)
        for number in left:
            if not self._node.is_running or len(self.report.findings) >= FINDINGS_MAX:
                break
            if time.monotonic() > self._end_s:
                break
            thrown = self._maker.make(number)
            began_s = time.monotonic()
            self._under_way[number] = thrown, began_s
            problem = await self._throw(peer, thrown)
            if problem is not None:
                self._find(f"number {number}: {problem}", [Thrown(number, thrown, began_s, time.monotonic())])
            del self._under_way[number]
            self._ended.append(Thrown(number, thrown, began_s, time.monotonic()))
            self.report.inputs += 1
            self.report.kinds[thrown.kind] += 1
        self.report.connections += peer.connections
        peer.close()

    async def _throw(self, peer: Thrower, thrown: Input) -> str | None:
        try:
            return await peer.throw(thrown)
        except OSError as error:
            peer.close()
            # A listener with few places closes what is too much; one that has ended refuses.
            is_too_much = isinstance(error, ConnectionError) and not isinstance(error, ConnectionRefusedError)
            return None if is_too_much and self._node.is_running else repr(error)

    async def _look(self) -> None:
        while True:
            was_over = self._is_over
            turns = await asyncio.to_thread(self._node.turns)
            if turns is None:
                return
            if turns.longest_s > self.report.longest_s:
                self.report.longest_s, self.report.longest = turns.longest_s, turns.what
                self.report.collecting_s = turns.collecting_s
            self.report.long_turns += len(turns.long)
            for turn in turns.long:
                if len(self._long) < FINDINGS_MAX:
                    self._long.append((turn, self._suspects(turn)))
            if was_over:
                return
            await asyncio.sleep(_LOOK_S)

    def _suspects(self, turn: LongTurn) -> list[Thrown]:
        """What was under way in that turn, and so may have been served in it."""
        now_s = time.monotonic()
        going_on = [Thrown(number, *thrown, now_s) for number, thrown in self._under_way.items()]
        return [
            each
            for each in (*self._ended, *going_on)
            if each.began_s - _MARGIN_S < turn.ended_s and each.ended_s + _MARGIN_S > turn.began_s
        ][-_SUSPECTS_MAX:]

    async def _judge_turns(self) -> None:
        for turn, suspects in self._long:
            alone = [(await self._alone(each), each) for each in suspects]
            alone.sort(key=lambda found: -found[0])
            told = [
                f"    number {each.number} takes {took_s * 1000:.1f} ms alone: {each.input.kind}"
                for took_s, each in alone[:3]
            ]
            self._find(
                "\n".join(
                    (
                        f"a turn of {turn.took_s * 1000:.0f} ms ({turn.collecting_s * 1000:.0f} ms of that in the "
                        f"garbage collector) in {turn.what}; {len(suspects)} inputs were under way",
                        *(f"    {place}" for place in turn.places),
                        *told,
                    )
                ),
                [each for _, each in alone[:3]],
            )

    async def _alone(self, suspect: Thrown) -> float:
        """How long the longest turn is when only this is thrown."""
        peer = self._way.peer(self._node)
        await asyncio.to_thread(self._node.turns)
        await self._throw(peer, suspect.input)
        turns = await asyncio.to_thread(self._node.turns)
        peer.close()
        return 0.0 if turns is None else turns.longest_s

    def _faults(self) -> set[str]:
        return {found.group() for found in _FAULT.finditer(self._node.told())}

    async def _judge_node(self, known: set[str]) -> None:
        if not self._node.is_running:
            going_on = [Thrown(number, *thrown, 0.0) for number, thrown in self._under_way.items()]
            self._find(
                f"the node ended:\n{self._node.told()[-3000:]}", [*list(self._ended)[-PEERS:], *going_on]
            )
            return
        faults = sorted(self._faults() - known)
        if faults:
            told = self._node.told()
            place = told.index(faults[0])
            self._find(f"{len(faults)} errors in the node's log, such as: {told[place : place + 2000]}", [])
        if not await _is_live(self._node.ports["metrics"]):
            self._find("/livez does not answer 200", [])

    def _find(self, problem: str, suspects: Sequence[Thrown]) -> None:
        if len(self.report.findings) >= FINDINGS_MAX:
            return
        lines = [f"FOUND way {self._way.name}, seed {self._seed}: {problem}"]
        for each in suspects:
            path = self._folder / f"{self._way.name}-seed-{self._seed}-number-{each.number}.bin"
            path.write_bytes(each.input.data)
            lines.append(
                f"  number {each.number}: {each.input.kind}, {len(each.input.data)} bytes, then "
                f"{each.input.after.name}: {path}"
            )
        if suspects:
            lines.append(
                f"  again: python -m tests.fuzz.node --seed {self._seed} --way {self._way.name} --number "
                f"{suspects[0].number}"
            )
        self.report.findings.append("\n".join(lines))


async def _is_live(port: int) -> bool:
    try:
        async with asyncio.timeout(30):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(b"GET /livez HTTP/1.1\r\n\r\n")
            answer = await reader.read()
            writer.close()
    except (OSError, TimeoutError):
        return False
    return answer.startswith(b"HTTP/1.1 200 ")
