"""For each reason of a no, a world in which the refused action does harm: what the answer is good for.

Each world is made twice. In the first the operator asks, and gets the no with its reason. In the second it acts all the
same, and the world's own checks find the harm: a partition or a quorum that stands still, or records that are lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kquorum.cli.commands.may.action import Action
from kquorum.cli.commands.may.decision import Why
from tests.simulation.errors import InvariantBroken
from tests.simulation.may import brokers, quorums
from tests.simulation.options import Options
from tests.simulation.partitions.world import PartitionOptions, PartitionWorld
from tests.simulation.world import World

BEGUN_MS = 700
"""By then the topic is there and written to."""


@dataclass(frozen=True, slots=True)
class BrokerStory:
    """`prepare` brings the world to where the operator asks; `then` is what happens besides, after a forced act."""

    why: Why
    wish: brokers.Wish
    prepare: Callable[[PartitionWorld], None]
    brokers: int = 3
    replicas: int = 3
    min_isr: int = 2


def broker_world(story: BrokerStory) -> PartitionWorld:
    options = PartitionOptions(
        brokers=story.brokers,
        replicas=story.replicas,
        partitions=1,
        min_isr=story.min_isr,
        delay_ms_max=3,
        produce_every_ms=10,
        partition_bytes=10_000,
        faults=(),
        fault_count=0,
    )
    world = PartitionWorld(1, options)
    world.run_until(BEGUN_MS)
    brokers.settle(world)
    story.prepare(world)
    return world


def tell_brokers(story: BrokerStory) -> str:
    """Raises AssertionError unless the answer is no for this reason, and acting does harm; returns what harm."""
    asking = brokers.Operator(broker_world(story))
    assert not asking.carry_out(story.wish)
    assert asking.tally[f"no: {story.why}"] == 1, asking.tally
    world = broker_world(story)
    acting = brokers.Operator(world)
    try:
        acting.carry_out(story.wish, force=True)
        brokers.end(world)
    except InvariantBroken as harm:
        return str(harm)
    raise AssertionError(f"{story.why}: {story.wish} did no harm")


def _nothing(_world: PartitionWorld) -> None:
    """The world as it is."""


def _kill(*broker_ids: int, after_ms: int = 1_000) -> Callable[[PartitionWorld], None]:
    """One after the other, for good; by `after_ms` the controller has fenced them."""

    def prepare(world: PartitionWorld) -> None:
        for broker_id in broker_ids:
            world.brokers[broker_id].kill()
            world.run_until(world.now_ms + after_ms)

    return prepare


def _kill_the_leader(world: PartitionWorld) -> None:
    """Just before the operator looks: no controller has fenced it when the answer is given."""
    world.at(brokers.SETTLE_MS - 20, world.brokers[1].kill)


def _reassign(world: PartitionWorld) -> None:
    """To a broker that has no replica yet and hears no metadata, so that this takes long."""
    world.brokers[3].metadata_held_until_ms = world.now_ms + 900
    world.controller.reassign(0, (1, 3))


def _lose_all_but_two(world: PartitionWorld) -> None:
    """Broker 2 lagged behind when the ISR was lost; it is alive, and one of the two that acks=all will need."""
    _kill(2, 3, 1)(world)
    world.revive(world.brokers[2])
    world.run_until(world.now_ms + 400)
    world.at(brokers.SETTLE_MS + brokers.WINDOW_MS + 100, world.revive, world.brokers[1])


def _come_back(world: PartitionWorld) -> None:
    """Broker 3 is alive again when the operator asks, and not yet in the ISR, where it is needed."""
    _kill(3)(world)
    world.at(brokers.SETTLE_MS + brokers.WINDOW_MS - 4, world.revive, world.brokers[3])


STOP, FORMAT, REMOVE = Action.STOP, Action.FORMAT, Action.REMOVE
BROKER_STORIES = (
    BrokerStory(Why.NO_LEADER_LEFT, brokers.Wish(STOP, (1,)), _nothing, replicas=1, min_isr=1),
    BrokerStory(Why.BELOW_MIN_ISR, brokers.Wish(STOP, (2,)), _nothing, replicas=2),
    BrokerStory(Why.BELOW_MIN_ISR, brokers.Wish(STOP, (2, 3)), _nothing),
    BrokerStory(Why.LAST_COPY, brokers.Wish(FORMAT, (1,)), _nothing, replicas=1, min_isr=1),
    BrokerStory(Why.LAST_COPY, brokers.Wish(FORMAT, (1,)), _kill(2), replicas=2, min_isr=1),
    BrokerStory(Why.LEADER_SILENT, brokers.Wish(STOP, (3,)), _kill_the_leader),
    BrokerStory(Why.LEADERLESS, brokers.Wish(STOP, (2,)), _lose_all_but_two),
    BrokerStory(Why.UNDER_MIN_ISR, brokers.Wish(STOP, (3,)), _come_back, min_isr=3),
    BrokerStory(Why.REASSIGNMENT, brokers.Wish(STOP, (3,)), _reassign, replicas=2),
    BrokerStory(Why.HAS_REPLICAS, brokers.Wish(REMOVE, (3,)), _nothing, min_isr=3),
    BrokerStory(Why.LAST_BROKER, brokers.Wish(STOP, (1,)), _nothing, brokers=1, replicas=1, min_isr=1),
)


# The quorum


@dataclass(frozen=True, slots=True)
class QuorumStory:
    why: Why
    asked: quorums.Asked
    prepare: Callable[[World], None]
    voters: int = 3
    quorum: str = "dynamic"


def quorum_world(story: QuorumStory) -> World:
    options = Options(
        quorum=story.quorum,
        voters=story.voters,
        spares=0,
        observers=0,
        auto_join=False,
        election_timeout_ms=100,
        fetch_timeout_ms=300,
        faults_until_ms=2_000,
        delay_ms_max=2,
        flush_ms_max=2,
        max_fetch_bytes=1_000_000,
        operation_every_ms=10,
        read_percent=0,
        clock_drift_percent=0,
        shares_turns=False,
        uses_wire=False,
        mixes_releases=False,
        snapshot_bytes=0,
        snapshot_padding=0,
        retention_percent=0,
        segment_batches=8,
        faults=(),
        fault_count=0,
    )
    world = World(1, options)
    world.clients.begin()
    world.run_until(1_500)
    quorums.settle(world, [])
    story.prepare(world)
    return world


def tell_quorum(story: QuorumStory) -> str:
    """As `tell_brokers`."""
    asking = quorums.Operator(quorum_world(story))
    assert not asking.carry_out(story.asked)
    assert asking.tally[f"no: {story.why}"] == 1, asking.tally
    world = quorum_world(story)
    acting = quorums.Operator(world)
    try:
        acting.carry_out(story.asked, force=True)
    except (InvariantBroken, AssertionError) as harm:
        return str(harm)
    raise AssertionError(f"{story.why}: {story.asked} did no harm")


def _quorum_as_it_is(_world: World) -> None:
    """Nothing has happened."""


def _crash_a_follower(world: World) -> None:
    world.crash(world.hosts[_follower(world)])


def _follower(world: World) -> int:
    leader = world.leader()
    return next(each for each in (3, 2) if leader is None or each != leader.node_id)


QUORUM_STORIES = (
    QuorumStory(Why.MAJORITY, quorums.Asked(STOP, (1, 2)), _quorum_as_it_is),
    QuorumStory(Why.MAJORITY, quorums.Asked(STOP, (1,)), _quorum_as_it_is, voters=2),
    QuorumStory(Why.MAJORITY, quorums.Asked(STOP, (1,)), _crash_a_follower),
    QuorumStory(Why.MAJORITY, quorums.Asked(FORMAT, (1,)), _crash_a_follower, quorum="static"),
)
