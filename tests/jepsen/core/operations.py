"""The operations of one run: those of its workloads side by side, and the nemesis'."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from tests.jepsen.checkers.availability import HEAL
from tests.jepsen.core.generator import (
    SECOND_NS,
    Generator,
    OnSeats,
    Phases,
    Schedule,
    SideBySide,
    Step,
    Together,
)
from tests.jepsen.core.history import History
from tests.jepsen.core.interpreter import Interpreter
from tests.jepsen.core.store import RunFolder
from tests.jepsen.faults.catalogue import NemesisPlan
from tests.jepsen.faults.fault import Scene
from tests.jepsen.faults.nemesis import Nemesis
from tests.jepsen.report.terminal import Reporter
from tests.jepsen.workloads.workload import Seat, Setup, Workload, WorkloadKind


class Load(Protocol):
    """What of a run's options concerns the operations."""

    @property
    def time_s(self) -> float: ...

    @property
    def rate(self) -> float: ...

    @property
    def concurrency(self) -> int: ...

    @property
    def op_timeout_s(self) -> float: ...

    @property
    def seed(self) -> int: ...


@dataclass(frozen=True, slots=True)
class _Part:
    workload: Workload
    seats: tuple[Seat, ...]


class Operations:
    """Made before the first operation; `run` is for once."""

    def __init__(
        self,
        options: Load,
        kinds: Sequence[WorkloadKind],
        scene: Scene,
        reporter: Reporter,
        folder: RunFolder,
    ) -> None:
        self._time_ns = round(options.time_s * SECOND_NS)
        self._scene = scene
        self._reporter = reporter
        self._folder = folder
        self._parts = [self._part(kind, options) for kind in kinds]

    def run(self, nemesis: NemesisPlan) -> History:
        """The history is written also when the run is interrupted."""
        generator = Phases(
            Together(self._beside(lambda each: each.main(self._time_ns)), Schedule(nemesis.steps)),
            Schedule([Step(0.0, HEAL)]),
            self._beside(lambda each: each.final()),
        )
        seats = [seat for part in self._parts for seat in part.seats]
        interpreter = Interpreter(
            [seat.worker for seat in seats],
            [seat.node for seat in seats],
            Nemesis(self._scene, [kind.make() for kind in nemesis.faults]),
            self._reporter.on_event,
            self._reporter.on_idle,
        )
        try:
            with self._reporter:
                return interpreter.run(generator)
        finally:
            self._folder.write_history(interpreter.history)

    def _part(self, kind: WorkloadKind, options: Load) -> _Part:
        setup = Setup(
            network=self._scene.network,
            cluster=self._scene.cluster,
            members=self._scene.members,
            # Each workload has a random source of its own: which others run beside it does not change what it asks.
            random_source=Random(f"{kind.name} {options.seed}"),
            rate=options.rate,
            concurrency=max(options.concurrency, kind.seats_min(self._scene.members)),
            op_timeout_s=options.op_timeout_s,
        )
        workload = kind.make(setup)
        return _Part(workload, tuple(workload.seats()))

    def _beside(self, part_of: Callable[[Workload], Generator]) -> Generator:
        total = sum(len(part.seats) for part in self._parts)
        firsts = [sum(len(part.seats) for part in self._parts[:place]) for place in range(len(self._parts))]
        return SideBySide(
            *(
                OnSeats(first, len(part.seats), total, part_of(part.workload))
                for first, part in zip(firsts, self._parts, strict=True)
            )
        )
