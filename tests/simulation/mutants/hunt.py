"""Looking for a mutant: by the schedule that was written for it, and by chance."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count, islice

from kquorum.raft.errors import LogDivergedBelowHighWatermarkError
from tests.simulation.directed.schedules import SCHEDULES, ScheduleFailed
from tests.simulation.mutants.catalogue import MUTANTS
from tests.simulation.run import SimulationFailed, plan_of, simulate

LONGEST_MESSAGE = 160


class MutantOutOfDateError(Exception):
    """Neither a checker nor the core objected: the mutant itself is at fault."""


@dataclass(frozen=True)
class Catch:
    """How a mutant was caught: `means` is the seed or the schedule; `runs` of them, `virtual_ms` together."""

    means: str
    invariant: str
    runs: int
    virtual_ms: int


@dataclass(frozen=True)
class Verdict:
    name: str
    by_chance: Catch | None
    by_schedule: Catch | None

    @property
    def is_caught(self) -> bool:
        return self.by_chance is not None or self.by_schedule is not None


def hunt(name: str, first: int, runs: int) -> Verdict:
    return Verdict(name, catch_by_chance(name, first, runs), catch_by_schedule(name))


def catch_by_schedule(name: str) -> Catch | None:
    mutant = MUTANTS[name]
    with mutant.apply():
        try:
            SCHEDULES[mutant.schedule].run()
        except ScheduleFailed as failure:
            return Catch(mutant.schedule, _facts(failure.cause), 1, failure.now_ms)
    return None


def seeds_for(name: str, first: int) -> Iterator[int]:
    """Seeds from `first` on whose world is one that the mutant asks for."""
    mutant = MUTANTS[name]
    return (seed for seed in count(first) if mutant.worlds(plan_of(seed)[0]))


def catch_by_chance(name: str, first: int, runs: int) -> Catch | None:
    """A seed on which the core fails without the mutant, too, shows nothing of the mutant."""
    virtual_ms = 0
    for tried, seed in enumerate(islice(seeds_for(name, first), runs), 1):
        try:
            with MUTANTS[name].apply():
                virtual_ms += simulate(seed).virtual_ms
        except SimulationFailed as failure:
            virtual_ms += _when(failure)
            if core_passes(seed):
                return Catch(f"seed {seed}", _facts(failure.cause), tried, virtual_ms)
    return None


@cache
def core_passes(seed: int) -> bool:
    try:
        simulate(seed)
    except SimulationFailed:
        return False
    return True


def _when(failure: SimulationFailed) -> int:
    """The moment of the last line of the trace, in ms."""
    return int(failure.trace[-1].split()[0]) if failure.trace else 0


def _facts(cause: BaseException) -> str:
    """Which invariant broke: the checker's first line, or the core's own assertion."""
    if not isinstance(cause, AssertionError | LogDivergedBelowHighWatermarkError):
        raise MutantOutOfDateError("the patch does not fit the core any more") from cause
    lines = str(cause).splitlines() or ["an assertion of the core"]
    return f"{type(cause).__name__}: {lines[0]}"[:LONGEST_MESSAGE]
