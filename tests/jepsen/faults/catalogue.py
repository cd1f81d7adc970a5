"""Every fault by its name, and what `--nemesis` may say."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.jepsen.checkers.availability import FAULT_KEY, HEAL
from tests.jepsen.core.generator import Step
from tests.jepsen.faults import disk_faults, network_faults, process_faults
from tests.jepsen.faults.fault import Fault

NONE = "none"
ALL = "all"


@dataclass(frozen=True, slots=True)
class FaultKind:
    """An entry of the catalogue; `make` gives a fresh one for a run."""

    name: str
    about: str
    make: Callable[[], Fault]
    needs_shim: bool = False
    # How many times as long as other faults it goes on, for what takes its time.
    lasts: float = 1.0


FAULTS: dict[str, FaultKind] = {
    fault.name: FaultKind(
        fault.name,
        about,
        make,
        needs_shim=fault.name in disk_faults.NEED_SHIM,
        lasts=process_faults.LAST.get(fault.name, 1.0),
    )
    for about, make in (*network_faults.KINDS, *process_faults.KINDS, *disk_faults.KINDS)
    for fault in (make(),)
}


class UnknownFault(Exception):
    """The text names it, and those that there are."""


@dataclass(frozen=True, slots=True)
class NemesisPlan:
    """The faults that a run may see, and the steps which bring them."""

    faults: tuple[FaultKind, ...]
    steps: tuple[Step, ...]

    @property
    def needs_shim(self) -> bool:
        return any(fault.needs_shim for fault in self.faults)


def plan(text: str, time_s: float, quiet_s: float, fault_s: float, random_source: Random) -> NemesisPlan:
    """What `--nemesis` asks for. Raises UnknownFault.

    `a,b`: a, then b, then a again, each `fault_s` long with `quiet_s` before it, as long as a whole one has room;
    `a+b`: both at the same time; `a>b`: b when a has lasted for half of its time, and both end together; `all`: every
    fault of the catalogue at random, up to three at once.
    """
    if text == NONE:
        return NemesisPlan((), ())
    if text == ALL:
        return NemesisPlan(
            tuple(FAULTS.values()), _at_random(list(FAULTS), time_s, quiet_s, fault_s, random_source)
        )
    turns = [_turn(words) for words in text.split(",")]
    names = dict.fromkeys(name for turn in turns for stage in turn for name in stage)
    if unknown := [name for name in names if name not in FAULTS]:
        known = ", ".join([NONE, *FAULTS, ALL])
        raise UnknownFault(f"no nemesis {', '.join(map(repr, unknown))}; there are {known}")
    return NemesisPlan(tuple(FAULTS[name] for name in names), _in_turn(turns, time_s, quiet_s, fault_s))


Stages = list[list[str]]
"""Stage after stage, the faults that begin in it."""


def _turn(words: str) -> Stages:
    return [[name.strip() for name in stage.split("+")] for stage in words.split(">")]


def _in_turn(turns: list[Stages], time_s: float, quiet_s: float, fault_s: float) -> tuple[Step, ...]:
    steps: list[Step] = []
    at_s, place = 0.0, 0
    while True:
        stages = turns[place % len(turns)]
        lasts_s = fault_s * max(FAULTS[name].lasts for stage in stages for name in stage)
        if at_s + quiet_s + lasts_s >= time_s:
            return tuple(steps)
        stage_s = lasts_s / len(stages)
        for number, names in enumerate(stages):
            first_s = stage_s if number else quiet_s
            steps += [Step(0.0 if later else first_s, name) for later, name in enumerate(names)]
        steps.append(Step(stage_s, HEAL))
        at_s += quiet_s + lasts_s
        place += 1


_AT_ONCE_MAX = 3


def _at_random(
    names: list[str], time_s: float, quiet_s: float, fault_s: float, random_source: Random
) -> tuple[Step, ...]:
    """Events in the order of time; a fault lasts a third to five thirds of `fault_s`, and all heal now and then.

    Every fault comes once before any comes twice, so that a run of half an hour has seen them all several times.
    """
    events: list[tuple[float, str, object]] = []
    going_on: dict[str, float] = {}
    row: list[str] = []
    at_s = quiet_s
    while at_s + 5 * fault_s < time_s:
        going_on = {name: until_s for name, until_s in going_on.items() if until_s > at_s}
        if len(going_on) < _AT_ONCE_MAX:
            row = row or random_source.sample(names, len(names))
            name = row.pop()
            if name not in going_on:
                until_s = at_s + FAULTS[name].lasts * fault_s * random_source.uniform(1 / 3, 5 / 3)
                going_on[name] = until_s
                events += [(at_s, name, None), (until_s, HEAL, {FAULT_KEY: name})]
        if random_source.random() < 1 / 8:
            # Everything heals, and the cluster has a moment to itself: otherwise nothing shows that it can recover.
            at_s = max([at_s, *going_on.values()]) + quiet_s
        at_s += random_source.uniform(0.3, 1.0) * (quiet_s + fault_s) / 2
    events.sort(key=lambda event: event[0])
    steps, before_s = [], 0.0
    for when_s, f, value in events:
        steps.append(Step(when_s - before_s, f, value))
        before_s = when_s
    return tuple(steps)
