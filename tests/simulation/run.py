"""One run: a spell of faults, then quiet, in which a healthy quorum must converge."""

from dataclasses import dataclass
from random import Random
from typing import Protocol

from raft.node import RaftNode
from tests.simulation.checkers import InvariantBroken
from tests.simulation.options import Options, options_of
from tests.simulation.world import Host, World


@dataclass(frozen=True)
class Outcome:
    seed: int
    options: Options
    events: int
    acknowledged: int
    epochs: int
    trace: tuple[str, ...]


class SimulationFailed(AssertionError):
    """Carries the seed, the facts, and the command that replays the run."""

    def __init__(self, seed: int, cause: BaseException, trace: list[str]) -> None:
        tail = "\n".join(trace[-40:])
        super().__init__(
            f"seed {seed}: {type(cause).__name__}: {cause}\n"
            f"replay: python -m tests.simulation --seed {seed} --trace\n{tail}"
        )
        self.seed = seed
        self.cause = cause


def simulate(seed: int, node_class: type[RaftNode] = RaftNode) -> Outcome:
    """Run one seed; raises SimulationFailed."""
    options = options_of(Random(seed ^ 0x5EED))
    world: World | None = None
    try:
        world = World(seed, options, node_class)
        _schedule_faults(world)
        _schedule_proposals(world)
        world.run_until(options.faults_until_ms)
        _heal(world)
        world.run_until(options.quiet_until_ms)
        _check_converged(world)
    except Exception as cause:
        raise SimulationFailed(seed, cause, world.trace if world else []) from cause
    epochs = max(host.node.leader_epoch for host in world.hosts.values() if host.node)
    return Outcome(seed, options, world.events, len(world.acknowledged), epochs, tuple(world.trace))


# Faults


def _schedule_faults(world: World) -> None:
    options = world.options
    for every_ms, strike in (
        (options.crash_every_ms, _strike_crash),
        (options.partition_every_ms, _strike_partition),
        (options.pause_every_ms, _strike_pause),
        (options.power_cut_every_ms, _strike_power_cut),
    ):
        if every_ms:
            _repeat(world, every_ms, strike)


def _repeat(world: World, every_ms: int, strike: "Strike") -> None:
    def fire() -> None:
        if world.now_ms < world.options.faults_until_ms:
            strike(world)
            world.at(world.dice.randint(1, 2 * every_ms), fire)

    world.at(world.dice.randint(1, 2 * every_ms), fire)


class Strike(Protocol):
    """A fault that comes again and again."""

    def __call__(self, world: World) -> None: ...


def _pick_victim(world: World) -> Host:
    """A leader half of the time: that is where it hurts."""
    leaders = [host for host in world.hosts.values() if host.node is not None and host.node.role == "leader"]
    if leaders and world.dice.random() < 0.5:
        return world.dice.choice(leaders)
    return world.dice.choice(list(world.hosts.values()))


def _strike_crash(world: World) -> None:
    world.crash_and_revive(_pick_victim(world))


def _strike_power_cut(world: World) -> None:
    """Everything dies at once; what was not flushed anywhere is gone, and one host may be slow to come back."""
    world.note("the power goes")
    late = world.dice.choice(list(world.hosts))
    for host in world.hosts.values():
        world.crash_and_revive(host, revive_ms_max=5000 if host.node_id == late else 100)


def _strike_partition(world: World) -> None:
    ids = list(world.hosts)
    if world.dice.random() < 0.4:
        side = {_pick_victim(world).node_id}
    else:
        side = set(world.dice.sample(ids, world.dice.randint(1, len(ids) - 1)))
    one_way = world.dice.random() < 0.3
    world.cut(side, one_way)
    world.note(f"cut {sorted(side)} off{' one way' if one_way else ''}")

    def mend() -> None:
        world.cut_links.clear()
        world.note("links mended")

    world.at(world.dice.randint(100, 6000), mend)


def _strike_pause(world: World) -> None:
    host = _pick_victim(world)
    host.paused_until_ms = world.now_ms + world.dice.randint(50, 5000)
    world.note(f"node {host.node_id} pauses until {host.paused_until_ms}")


def _heal(world: World) -> None:
    world.note("faults end")
    world.is_faulty = False
    world.cut_links.clear()
    for host in world.hosts.values():
        host.paused_until_ms = world.now_ms
        world.revive(host)


# Work


def _schedule_proposals(world: World) -> None:
    """Clients try every host: who believes to lead takes the proposal."""

    def fire() -> None:
        for host in world.hosts.values():
            world.propose(host)
        if world.now_ms < world.options.quiet_until_ms - 4000:
            world.at(world.dice.randint(1, 2 * world.options.proposal_every_ms), fire)

    world.at(1, fire)


def _check_converged(world: World) -> None:
    hosts = list(world.hosts.values())
    nodes = [host.node for host in hosts if host.node is not None]
    leaders = [node for node in nodes if node.role == "leader"]
    if len(leaders) != 1:
        raise InvariantBroken(f"after {_quiet_ms(world)} quiet ms there are {len(leaders)} leaders")
    end_offset = leaders[0].log_end_offset
    for host in hosts:
        if host.applied != end_offset or host.disk.batches != world.checkers.committed:
            raise InvariantBroken(
                f"after {_quiet_ms(world)} quiet ms node {host.node_id} has applied {host.applied} of {end_offset}"
            )
    _check_acknowledged(world)


def _quiet_ms(world: World) -> int:
    return world.options.quiet_until_ms - world.options.faults_until_ms


def _check_acknowledged(world: World) -> None:
    """Nothing that a client was told is committed may be missing."""
    values = {record.offset: record.value for batch in world.checkers.committed for record in batch.records}
    for offset, value in world.acknowledged.items():
        if values.get(offset) != value:
            raise InvariantBroken(f"the acknowledged record at offset {offset} is lost")
    if not world.acknowledged:
        raise InvariantBroken("not one proposal was acknowledged")
