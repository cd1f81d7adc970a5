"""A world of brokers that replicate partitions: what it is made of, what goes wrong in it, and how a run ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from kquorum.wire.record_batch import read_batch_header, read_records
from tests.simulation.errors import InvariantBroken
from tests.simulation.events import EventQueue
from tests.simulation.links import Links, Weather
from tests.simulation.partitions.brokers import SimulatedBroker
from tests.simulation.partitions.checks import Checks
from tests.simulation.partitions.clients import CLIENT, Clients
from tests.simulation.partitions.controller import CONTROLLER, Controller

LOOK_EVERY_MS = 50


@dataclass(frozen=True, slots=True)
class PartitionOptions:
    brokers: int
    replicas: int
    partitions: int
    min_isr: int
    delay_ms_max: int
    produce_every_ms: int
    partition_bytes: int
    faults: tuple[str, ...]
    fault_count: int
    faults_until_ms: int = 4_000
    quiet_ms: int = 12_000
    lag_time_ms: int = 400
    checkpoint_ms: int = 300
    fetch_wait_ms: int = 50
    backoff_ms: int = 40
    session_ms: int = 300
    timeout_ms: int = 250
    stop_within_ms: int = 1_000


@dataclass(frozen=True, slots=True)
class Fault:
    at_ms: int
    kind: str
    who: int
    other: int
    for_ms: int


KINDS: dict[str, int] = {
    "kill": 5,
    "quick kill": 4,
    "kill leader": 5,
    "power": 3,
    "pause": 4,
    "pause leader": 4,
    "isolate": 3,
    "isolate leader": 4,
    "cut pair": 4,
    "cut from controller": 3,
    "leader cut from controller": 4,
    "cut from followers": 4,
    "half cut": 3,
    "loss": 2,
    "duplicates": 2,
    "slow": 2,
    "late metadata": 4,
    "leader's late metadata": 6,
    "move": 8,
    "unclean": 2,
    "reassign": 5,
    "shutdown": 5,
    "shutdown leader": 4,
}


def options_of(seed: int) -> tuple[PartitionOptions, tuple[Fault, ...]]:
    """The world of a seed, and what happens in it. About half of the kinds of fault are off in any world."""
    draw = Random(seed ^ 0xDA7A)
    brokers = draw.choice((3, 3, 3, 4, 5))
    replicas = min(brokers, draw.choice((3, 3, 3, 4, 5)))
    kinds = tuple(kind for kind in KINDS if draw.random() < 0.5) or ("kill",)
    options = PartitionOptions(
        brokers=brokers,
        replicas=replicas,
        partitions=draw.choice((1, 1, 2)),
        min_isr=draw.choice((1, 2, 2, 2, 3)),
        delay_ms_max=draw.choice((3, 10, 30)),
        produce_every_ms=draw.choice((5, 15, 40)),
        partition_bytes=draw.choice((300, 1_000, 10_000)),
        faults=kinds,
        fault_count=draw.choice((4, 10, 25)),
    )
    weights = [KINDS[kind] for kind in kinds]
    faults = [
        Fault(
            at_ms=draw.randint(100, options.faults_until_ms),
            kind=draw.choices(kinds, weights)[0],
            who=draw.randint(1, brokers),
            other=draw.randint(1, brokers),
            for_ms=draw.choice((20, 150, 500, 1_200, 3_000)),
        )
        for _ in range(options.fault_count)
    ]
    return options, tuple(sorted(faults, key=lambda fault: fault.at_ms))


WEATHERS: dict[str, Callable[[int], Weather]] = {
    "loss": lambda delay_ms_max: Weather(delay_ms_max, loss=0.2),
    "duplicates": lambda delay_ms_max: Weather(delay_ms_max, duplicates=0.4),
    "slow": lambda _delay_ms_max: Weather(120),
}


class PartitionWorld(EventQueue):
    def __init__(
        self, seed: int, options: PartitionOptions, *, is_traced: bool = False, trace: list[str] | None = None
    ) -> None:
        super().__init__(is_traced=is_traced, trace=trace)
        self.seed = seed
        self.options = options
        self.is_faulty = True
        self.tally: Counter[str] = Counter()
        self.random = Random(seed)
        self.excused = [False] * options.partitions
        self.links = Links(self, seed ^ 0x11A5, options.delay_ms_max)
        self.brokers: dict[int, SimulatedBroker] = {}
        self.checks = Checks(self)
        self.clients = Clients(self)
        self.controller = Controller(self)
        self.brokers = {each: SimulatedBroker(self, each) for each in range(1, options.brokers + 1)}
        for broker in self.brokers.values():
            broker.start()
        self.at(100, self._begin)

    def _begin(self) -> None:
        if any(not self.controller.is_active(each) for each in self.brokers):
            self.at(20, self._begin)
            return
        self.controller.create_topic()
        self.clients.begin()
        self.at(LOOK_EVERY_MS, self._look)

    def _look(self) -> None:
        self.checks.look_at_lag()
        self.at(LOOK_EVERY_MS, self._look)

    def send(self, source: int, target: int, action: Callable[..., None], *arguments: Any) -> None:
        """A message; the client's own links are never cut."""
        copies = 1 if CLIENT in (source, target) else self.links.copies(source, target)
        for _ in range(copies):
            self.at(self.links.delay_ms(), action, *arguments)

    # Faults

    def strike(self, fault: Fault) -> None:
        if not self.controller.image.topics.by_id:
            return
        leader = self.controller.partition(0).leader
        aims_at_leader = "leader" in fault.kind or fault.kind in ("cut from followers", "half cut")
        who = leader if aims_at_leader and leader > 0 else fault.who
        broker = self.brokers[who]
        others = [each for each in self.brokers if each != who]
        self.note("%s: broker %d (%d) for %d ms", fault.kind, who, fault.other, fault.for_ms)
        self.tally[f"fault: {fault.kind}"] += 1
        if "cut" in fault.kind or "isolate" in fault.kind:
            self.links.cut(self._links_of(fault, who, others), fault.for_ms)
        else:
            self._strike_process(fault, broker)

    def _links_of(self, fault: Fault, who: int, others: list[int]) -> list[tuple[int, int]]:
        if "isolate" in fault.kind:
            return _both_ways(who, [CONTROLLER, *others])
        if "controller" in fault.kind:
            return _both_ways(who, [CONTROLLER])
        if fault.kind == "cut pair":
            return _both_ways(who, [each for each in others if each == fault.other])
        return [(who, each) for each in others] if fault.kind == "half cut" else _both_ways(who, others)

    def _strike_process(self, fault: Fault, broker: SimulatedBroker) -> None:
        match fault.kind:
            case "kill" | "kill leader" | "power":
                self._kill(broker, fault.for_ms, power=fault.kind == "power")
            case "quick kill":
                self._kill(broker, 5)
            case "pause" | "pause leader":
                broker.paused_until_ms = max(broker.paused_until_ms, self.now_ms + fault.for_ms)
            case "late metadata" | "leader's late metadata":
                broker.metadata_held_until_ms = self.now_ms + fault.for_ms
            case "move":
                for index in self.controller.indexes:
                    self.controller.elect(index, fault.who)
            case "unclean":
                self._lose_isr(fault)
            case "reassign":
                for index in self.controller.indexes:
                    target = self.random.sample(sorted(self.brokers), self.options.replicas)
                    self.controller.reassign(index, tuple(target))
            case "shutdown" | "shutdown leader":
                broker.shut_down(fault.for_ms)
            case _:
                self._weather(fault.for_ms, WEATHERS[fault.kind](self.options.delay_ms_max))

    def _kill(self, broker: SimulatedBroker, for_ms: int, *, power: bool = False) -> None:
        if broker.is_running:
            broker.kill(power=power)
            self.at(for_ms, self.revive, broker)

    def revive(self, broker: SimulatedBroker) -> None:
        if not broker.is_running:
            broker.start()

    def _lose_isr(self, fault: Fault) -> None:
        """All members of an ISR die, and after a while another replica leads."""
        for member in self.controller.partition(0).isr:
            self._kill(self.brokers[member], 4 * self.options.session_ms)
        self.at(2 * self.options.session_ms, self.controller.elect_unclean, 0)

    def _weather(self, for_ms: int, weather: Weather) -> None:
        self.links.weather = weather
        self.at(for_ms, self._clear_up)

    def _clear_up(self) -> None:
        if self.is_faulty:
            self.links.weather = Weather(self.options.delay_ms_max)

    def heal(self) -> None:
        self.note("faults end")
        self.is_faulty = False
        self.links.calm()
        for broker in self.brokers.values():
            broker.paused_until_ms = self.now_ms
            broker.metadata_held_until_ms = self.now_ms
            self.revive(broker)

    # The end

    def what_is_missing(self) -> str:
        for index in range(self.options.partitions):
            state = self.controller.partition(index)
            if state.leader < 0:
                return f"partition {index} has no leader"
            if state.adding_replicas or state.removing_replicas:
                return f"partition {index} moves: {state}"
            if set(state.isr) != set(state.replicas):
                return f"the ISR of partition {index} is {state.isr} of {state.replicas}"
            ends = {each: self.brokers[each].logs[index].log_end_offset for each in state.replicas}
            strangers = [
                each
                for each in self.brokers
                if each not in state.replicas and index in self.brokers[each].logs
            ]
            if strangers:
                return f"brokers {strangers} keep a log of partition {index}, which they have no replica of"
            marks = {each: self.brokers[each].logs[index].high_watermark for each in state.replicas}
            if len(set(ends.values())) > 1 or set(marks.values()) != set(ends.values()):
                return f"logs of partition {index} end at {ends}, with high watermarks {marks}"
        return ""

    def check_end(self) -> None:
        """All logs are the same and have what was acknowledged."""
        for index in range(self.options.partitions):
            state = self.controller.partition(index)
            logs = [self.brokers[each].logs[index] for each in state.replicas]
            if any(log.batches != logs[0].batches for log in logs):
                raise InvariantBroken(f"the logs of partition {index} differ at the end")
            values = {}
            for batch in logs[0].batches:
                for record in read_records(batch.data, 0, read_batch_header(batch.data)):
                    values[record.offset] = record.value
            self.clients.idempotent[index].check([values[offset] for offset in sorted(values)])
            for offset, value in self.clients.acknowledged[index].items():
                if values.get(offset) != value:
                    raise InvariantBroken(f"record {value!r} at {offset} of partition {index} is lost")


def _both_ways(who: int, others: list[int]) -> list[tuple[int, int]]:
    return [link for other in others for link in ((who, other), (other, who))]


# Runs


class PartitionsFailed(AssertionError):
    """Carries the seed and what happened last."""

    def __init__(self, seed: int, cause: BaseException, trace: list[str]) -> None:
        tail = "\n".join(trace[-60:])
        super().__init__(
            f"seed {seed}: {type(cause).__name__}: {cause}\n"
            f"replay: python -m tests.simulation.partitions --seed {seed} --trace\n{tail}"
        )
        self.seed = seed
        self.cause = cause


def simulate(seed: int, *, is_traced: bool = False) -> PartitionWorld:
    """Run one seed; raises PartitionsFailed. A run that fails is run again to be told."""
    options, faults = options_of(seed)
    trace: list[str] = []
    try:
        world = PartitionWorld(seed, options, is_traced=is_traced, trace=trace)
        _run(world, faults)
    except Exception as cause:
        if not is_traced:
            simulate(seed, is_traced=True)
            raise AssertionError(f"seed {seed} failed, and did not when it was run again") from cause
        raise PartitionsFailed(seed, cause, trace) from cause
    return world


def _run(world: PartitionWorld, faults: tuple[Fault, ...]) -> None:
    for fault in faults:
        world.at(fault.at_ms, world.strike, fault)
    world.run_until(world.options.faults_until_ms)
    world.heal()
    healed_ms = world.now_ms
    while world.now_ms < healed_ms + world.options.quiet_ms:
        world.run_until(world.now_ms + LOOK_EVERY_MS)
        clients = world.clients
        acknowledged_ms = min(*clients.last_acknowledged_ms, *clients.once_acknowledged_ms)
        if acknowledged_ms > healed_ms + 2 * world.options.timeout_ms:
            clients.is_working = False
            if not world.what_is_missing():
                world.check_end()
                return
    missing = world.what_is_missing() or "no record that was sent then was acknowledged"
    raise InvariantBroken(f"after {world.options.quiet_ms} quiet ms {missing}")
