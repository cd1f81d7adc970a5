"""One run: a spell of faults, then quiet, in which a healthy quorum must converge."""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from random import Random

from kquorum.raft.node import RaftNode
from kquorum.raft.voters import VotersAt, quorum_records
from tests.simulation.errors import InvariantBroken
from tests.simulation.faults import carry_out
from tests.simulation.options import Options, options_of
from tests.simulation.schedule import Action, draw_schedule, kinds_of
from tests.simulation.world import World

LOOK_EVERY_MS = 40


@dataclass(frozen=True, slots=True)
class Trim:
    """What to leave out of a seed's run; a run that still fails with less is easier to understand."""

    keep: tuple[int, ...] | None = None
    faults_until_ms: int | None = None
    observers: int | None = None
    voters: int | None = None

    def options(self, options: Options) -> Options:
        if self.faults_until_ms is not None:
            options = replace(options, faults_until_ms=self.faults_until_ms)
        if self.observers is not None:
            options = replace(options, observers=self.observers)
        if self.voters is not None:
            options = replace(options, voters=self.voters)
        return options

    def arguments(self) -> str:
        """As the command line takes them."""
        parts = [] if self.keep is None else [f" --keep {','.join(map(str, self.keep)) or 'none'}"]
        for name in ("faults_until_ms", "observers", "voters"):
            if (value := getattr(self, name)) is not None:
                parts.append(f" --{name.removesuffix('_ms').replace('_', '-')} {value}")
        return "".join(parts)


WHOLE = Trim()


@dataclass(frozen=True, slots=True)
class Profile:
    """A kind of world: `flag` chooses it on the command line."""

    flag: str
    world_class: type[World]
    adapt: Callable[[Options], Options]


CORE = Profile("", World, lambda options: options)


def profile_of(name: str) -> Profile:
    """`core`, or `controllers`: voters run the real controller, observers are brokers."""
    if name == "core":
        return CORE
    from tests.simulation.controllers.world import ControllerWorld, options_for

    return Profile(" --controllers", ControllerWorld, options_for)


@dataclass(frozen=True)
class Outcome:
    seed: int
    options: Options
    events: int
    virtual_ms: int
    acknowledged: int
    epochs: int
    quiet_ms: int
    tally: Counter[str]
    trace: tuple[str, ...]


class SimulationFailed(AssertionError):
    """Carries the seed, the facts, and the command that replays the run."""

    def __init__(
        self, seed: int, cause: BaseException, trace: Collection[str], trim: Trim = WHOLE, flag: str = ""
    ) -> None:
        tail = "\n".join(list(trace)[-40:])
        super().__init__(
            f"seed {seed}: {type(cause).__name__}: {cause}\n"
            f"replay: python -m tests.simulation --seed {seed}{flag}{trim.arguments()} --trace\n{tail}"
        )
        self.seed = seed
        self.cause = cause
        self.trim = trim
        self.trace = tuple(trace)


def plan_of(seed: int, profile: str = "core") -> tuple[Options, tuple[Action, ...]]:
    """The world of a seed and the schedule of what happens to it, before anything is left out."""
    random_source = Random(seed ^ 0x5EED)
    options = profile_of(profile).adapt(options_of(random_source, kinds_of))
    return replace(options, state_ms_max=_state_ms_max(seed, options)), draw_schedule(options, random_source)


def _state_ms_max(seed: int, options: Options) -> int:
    """Drawn apart, so that the other worlds are what they were before disks took time for election states."""
    random_source = Random(seed ^ 0x57A7E)
    if random_source.random() < 0.75 or options.faults == ("partial cut",):
        return 0
    return random_source.choice((2, 10, options.election_timeout_ms // 2))


def simulate(
    seed: int,
    node_class: type[RaftNode] = RaftNode,
    *,
    trim: Trim = WHOLE,
    is_traced: bool = False,
    profile: str = "core",
) -> Outcome:
    """Run one seed; raises SimulationFailed. A run that fails is run again to be told."""
    options, schedule = plan_of(seed, profile)
    kind = profile_of(profile)
    options = trim.options(options)
    chosen = [schedule[index] for index in (range(len(schedule)) if trim.keep is None else trim.keep)]
    chosen = [action for action in chosen if action.at_ms <= options.faults_until_ms]
    trace: list[str] = []
    try:
        world = kind.world_class(seed, options, node_class, is_traced=is_traced, trace=trace)
        return _run(world, chosen)
    except Exception as cause:
        if not is_traced:
            simulate(seed, node_class, trim=trim, is_traced=True, profile=profile)
            raise AssertionError(f"seed {seed} failed, and did not when it was run again") from cause
        raise SimulationFailed(seed, cause, trace, trim, kind.flag) from cause


def _run(world: World, schedule: list[Action]) -> Outcome:
    for action in schedule:
        world.at(action.at_ms, carry_out, world, action)
    world.clients.begin()
    world.run_until(world.options.faults_until_ms)
    world.heal()
    quiet_ms = _converge(world)
    world.clients.history.check_against(world.checkers.committed.batches)
    return _outcome(world, quiet_ms)


def _outcome(world: World, quiet_ms: int) -> Outcome:
    history, tally = world.clients.history, world.tally
    sets = [
        found
        for batch in world.checkers.committed.batches
        if batch.is_control
        for found in quorum_records(batch)
    ]
    tally["committed voter sets"] = sum(isinstance(found, VotersAt) for found in sets)
    tally["linearizable reads"] = history.linearizable_reads
    tally["refused reads"] = history.refused_reads
    tally["committed reads"] = history.committed_reads
    tally["local reads"] = history.local_reads
    tally["messages"] = world.network.messages
    epochs = max(world.checkers.epochs.values())
    return Outcome(
        world.seed,
        world.options,
        world.events,
        world.now_ms,
        len(history.acknowledged),
        epochs,
        quiet_ms,
        tally,
        tuple(world.trace),
    )


# The quiet phase


def _converge(world: World) -> int:
    """Run until the quorum has elected, committed something new and agrees everywhere; answers how long it took."""
    healed_ms = world.now_ms
    bound_ms = healed_ms + world.options.quiet_ms
    while world.now_ms < bound_ms:
        world.run_until(world.now_ms + LOOK_EVERY_MS)
        if world.clients.history.last_acknowledged_begun_ms > healed_ms:
            world.clients.is_working = False
            if not _what_is_missing(world):
                return world.now_ms - healed_ms
    missing = _what_is_missing(world) or "no append that began then was acknowledged"
    raise InvariantBroken(f"after {world.options.quiet_ms} quiet ms {missing}")


def _what_is_missing(world: World) -> str:
    leader = world.leader()
    if leader is None or leader.node is None:
        return "there is no leader"
    end_offset = leader.node.log_end_offset
    for host in world.hosts.values():
        node = host.node
        if node is None:
            return f"node {host.node_id} does not run"
        if (node.leader_epoch, node.leader_id) != (leader.node.leader_epoch, leader.node.node_id):
            return f"node {host.node_id} believes in leader {node.leader_id} of epoch {node.leader_epoch}"
        if host.applied != end_offset or host.disk.log_end_offset != end_offset:
            return f"node {host.node_id} has applied {host.applied} of {end_offset}"
        if not world.checkers.log.is_as_committed(host.disk):
            return f"the log of node {host.node_id} is not what was committed"
        world.checkers.snapshots.state_of(host)
    return ""
