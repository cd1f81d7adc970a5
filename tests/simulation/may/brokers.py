"""Worlds of brokers that replicate partitions (`tests.simulation.partitions`), with an operator that asks first.

A spell of faults, of which some brokers stay down. Then the operator asks about brokers drawn at random; a yes is acted
upon at once. While the brokers are away, each partition that served must go on acknowledging, and no record that was
acknowledged may be lost. `force` acts whatever the answer is: so a directed world shows what a no is good for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from kquorum.cli.commands.may.action import Action
from kquorum.cli.commands.may.decision import (
    BrokerView,
    ClusterView,
    PartitionView,
    VoterView,
    decide,
)
from tests.simulation.errors import InvariantBroken
from tests.simulation.partitions.brokers import SimulatedBroker
from tests.simulation.partitions.controller import TOPIC
from tests.simulation.partitions.world import (
    LOOK_EVERY_MS,
    Fault,
    PartitionOptions,
    PartitionWorld,
    options_of,
)

LONGEST_GAP_MS = 1_500
"""Between two acknowledgements of a partition: a change of the leader takes heartbeats, metadata and fetches."""
AWAY_MS = 2_500
SETTLE_MS = 130
"""Longer than a message takes in any weather."""
WINDOW_MS = 160
"""The looking takes so long: two heartbeats and more."""
# An unclean election loses records whatever an operator does.
LEFT_OUT = ("unclean",)
# The decision is about brokers: a quorum in which nothing is wrong.
QUORUM = ClusterView(
    leader_id=1001,
    leader_epoch=1,
    commits=True,
    is_dynamic=True,
    voters=tuple(VoterView(node_id=each, is_alive=True, has_all=True) for each in (1001, 1002, 1003)),
)


@dataclass(frozen=True, slots=True)
class Wish:
    action: Action
    nodes: tuple[int, ...]


def view_of(world: PartitionWorld, since_ms: int) -> ClusterView:
    """What the controller knows; a broker is alive that it has heard since."""
    controller = world.controller
    brokers = {
        each.id: BrokerView(
            broker_id=each.id,
            fenced=each.fenced,
            in_controlled_shutdown=each.in_controlled_shutdown,
            is_alive=controller.heard_ms[each.id] > since_ms,
        )
        for each in controller.image.cluster.brokers.values()
    }
    partitions = []
    for index in controller.indexes:
        state = controller.partition(index)
        partitions.append(
            PartitionView(
                topic=TOPIC,
                partition_id=index,
                leader=state.leader,
                replicas=state.replicas,
                isr=state.isr,
                min_isr=world.options.min_isr,
                elr=state.elr,
                last_known_elr=state.last_known_elr,
                adding=state.adding_replicas,
                removing=state.removing_replicas,
            )
        )
    return replace(QUORUM, brokers=brokers, partitions=partitions)


class Operator:
    """Asks, acts and watches, one wish after the other."""

    def __init__(self, world: PartitionWorld) -> None:
        self.world = world
        self.tally: Counter[str] = Counter()

    def carry_out(self, wish: Wish, *, force: bool = False) -> bool:
        """Whether it was allowed. Raises InvariantBroken if what was done does harm."""
        world = self.world
        # What a broker sent before it died must not look like a sign of life.
        world.run_until(world.now_ms + SETTLE_MS)
        since_ms = world.now_ms
        world.run_until(since_ms + WINDOW_MS)
        view = view_of(world, since_ms)
        verdict = decide(view, wish.action, wish.nodes)
        world.note("operator: may %s %s: %s", wish.action, wish.nodes, verdict.reasons or "yes")
        for reason in verdict.reasons:
            self.tally[f"no: {reason.why}"] += 1
        if not verdict.is_yes and not force:
            return False
        self.tally[f"yes: {wish.action}"] += 1
        watched = [each.partition_id for each in view.partitions if force or _serves(view, each)]
        self._act(watched, wish)
        return verdict.is_yes

    def _act(self, watched: Sequence[int], wish: Wish) -> None:
        """The partitions that are watched must go on, and nothing may be lost."""
        world = self.world
        excused = list(world.excused)
        brokers = [world.brokers[each] for each in wish.nodes]
        away_ms = 10 if wish.action.is_rolling else AWAY_MS
        for broker in brokers:
            broker.shut_down(away_ms)
        begun_ms = world.now_ms
        emptied = set[int]()
        while world.now_ms < begun_ms + AWAY_MS:
            world.run_until(world.now_ms + 10)
            if wish.action is Action.FORMAT:
                for broker in brokers:
                    if not broker.is_running and broker.broker_id not in emptied:
                        emptied.add(broker.broker_id)
                        empty(broker)
            self._check(watched, begun_ms)
        for index in watched:
            if set(wish.nodes) & set(world.controller.partition(index).adding_replicas):
                raise InvariantBroken(f"the reassignment of partition {index} stood still for {AWAY_MS} ms")
        if world.excused != excused:
            raise InvariantBroken(f"{wish.action} {wish.nodes} lost acknowledged records")

    def _check(self, watched: Sequence[int], begun_ms: int) -> None:
        for index in watched:
            gap_ms = self.world.now_ms - max(self.world.clients.last_acknowledged_ms[index], begun_ms)
            if gap_ms > LONGEST_GAP_MS:
                state = self.world.controller.partition(index)
                raise InvariantBroken(
                    f"partition {index} acknowledged nothing for {gap_ms} ms: leader {state.leader}, ISR {state.isr}"
                )


def _serves(view: ClusterView, partition: PartitionView) -> bool:
    serving = view.serving()
    return partition.leader in serving and len(serving & set(partition.isr)) >= partition.needed


def empty(broker: SimulatedBroker) -> None:
    """Its disk is formatted while it is down."""
    broker.logs.clear()
    broker.checkpoint = {}
    broker.lost_power = True


def settle(world: PartitionWorld, *, down: Sequence[int] = ()) -> None:
    """Faults end, except that the brokers in `down` stay down."""
    world.is_faulty = False
    world.links.calm()
    for broker in world.brokers.values():
        broker.paused_until_ms = broker.metadata_held_until_ms = world.now_ms
        if broker.broker_id in down:
            broker.kill()
    bound_ms = world.now_ms + 2 * world.options.stop_within_ms
    while world.now_ms < bound_ms and any(each.wants_to_stop for each in world.brokers.values()):
        world.run_until(world.now_ms + 10)


def end(world: PartitionWorld) -> None:
    """All brokers come back, and all that was acknowledged is on all replicas."""
    world.heal()
    healed_ms = world.now_ms
    while world.now_ms < healed_ms + world.options.quiet_ms:
        world.run_until(world.now_ms + LOOK_EVERY_MS)
        if min(world.clients.last_acknowledged_ms) > healed_ms + 2 * world.options.timeout_ms:
            world.clients.is_working = False
            if not world.what_is_missing():
                world.check_end()
                return
    raise InvariantBroken(world.what_is_missing() or "no record that was sent then was acknowledged")


def wishes_of(seed: int, brokers: int, count: int) -> list[Wish]:
    draw = Random(seed ^ 0x3A7)
    found = []
    for _ in range(count):
        action = draw.choice(
            (Action.STOP, Action.STOP, Action.RESTART, Action.FORMAT, Action.REMOVE, Action.UPGRADE)
        )
        several = action in (Action.STOP, Action.FORMAT) and draw.random() < 0.25
        found.append(Wish(action, tuple(draw.sample(range(1, brokers + 1), 2 if several else 1))))
    return found


def plan_of(seed: int) -> tuple[PartitionOptions, tuple[Fault, ...], int, tuple[int, ...]]:
    """The world, its faults, when the operator comes, and which brokers are down then."""
    options, faults = options_of(seed)
    draw = Random(seed ^ 0xA5C)
    comes_ms = draw.randint(800, 3_000)
    # Wide worlds have room for a yes; narrow ones for a no.
    options = replace(
        options, min_isr=draw.choice((1, 1, 2, 2, 3)), partition_bytes=max(options.partition_bytes, 1_000)
    )
    kept = [fault for fault in faults if fault.at_ms <= comes_ms and fault.kind not in LEFT_OUT]
    down = tuple(draw.sample(range(1, options.brokers + 1), draw.choice((0, 0, 0, 1, 1, 2))))
    return options, tuple(kept), comes_ms, down


class MayFailed(AssertionError):
    """Carries the seed and what happened last."""

    def __init__(self, seed: int, cause: BaseException, trace: Sequence[str]) -> None:
        tail = "\n".join(trace[-60:])
        super().__init__(f"seed {seed}: {type(cause).__name__}: {cause}\n{tail}")
        self.cause = cause


def simulate(seed: int, *, wishes: int = 4, is_traced: bool = False) -> Counter[str]:
    """Run one seed; raises MayFailed. A run that fails is run again to be told."""
    options, faults, comes_ms, down = plan_of(seed)
    trace: list[str] = []
    try:
        world = PartitionWorld(seed, options, is_traced=is_traced, trace=trace)
        for fault in faults:
            world.at(fault.at_ms, world.strike, fault)
        world.run_until(comes_ms)
        settle(world, down=down)
        world.run_until(world.now_ms + Random(seed).choice((0, 100, 800)))
        operator = Operator(world)
        for wish in wishes_of(seed, options.brokers, wishes):
            operator.carry_out(wish)
        end(world)
    except Exception as cause:
        if not is_traced:
            return simulate(seed, wishes=wishes, is_traced=True)
        raise MayFailed(seed, cause, trace) from cause
    return operator.tally
