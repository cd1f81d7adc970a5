"""An ISR that only grows is written down without an election: with the record that the rules for any change give."""

from random import Random
from types import SimpleNamespace

import pytest

from metadata.controller.partitions import alter_partition
from metadata.image.directories import MIGRATING
from metadata.image.partition_state import PartitionState
from tests.support.controller_world import World, topic

BROKERS = (1, 2, 3, 4)


def some_state(random_source: Random) -> PartitionState:
    replicas = tuple(random_source.sample(BROKERS, 3))
    isr = tuple(random_source.sample(replicas, random_source.randint(1, 3)))
    return PartitionState(
        replicas=replicas,
        directories=(MIGRATING,) * 3,
        isr=isr,
        removing_replicas=replicas[-1:] if random_source.random() < 0.1 else (),
        adding_replicas=replicas[:1] if random_source.random() < 0.1 else (),
        leader=random_source.choice(isr) if random_source.random() < 0.9 else -1,
        leader_recovery_state=int(random_source.random() < 0.1),
        leader_epoch=3,
        partition_epoch=7,
        elr=tuple(each for each in replicas if each not in isr) if random_source.random() < 0.1 else (),
        last_known_elr=replicas[1:2] if random_source.random() < 0.1 else (),
    )


@pytest.mark.parametrize("leaving", [None, 2])
def test_the_record_is_that_of_the_rules_for_any_change(
    monkeypatch: pytest.MonkeyPatch, leaving: int | None
) -> None:
    world = World().lead().add_brokers(*BROKERS)
    world.create(topic("t"))
    if leaving is not None:
        world.heartbeat(leaving, want_fence=True)
    controller = world.controller
    active = controller._active
    assert active is not None
    context, random_source = controller._context(world.now_ms, active), Random(1)
    is_mere_growth = alter_partition._is_mere_growth
    taken = 0
    for _ in range(3_000):
        state = some_state(random_source)
        isr = tuple(
            dict.fromkeys((*state.isr, *random_source.sample(state.replicas, random_source.randint(0, 2))))
        )
        if random_source.random() < 0.1:
            isr = tuple(random_source.sample(isr, len(isr)))[: random_source.randint(1, len(isr))]
        recovery = state.leader_recovery_state if random_source.random() < 0.9 else 0
        wanted = SimpleNamespace(partition_index=5, leader_recovery_state=recovery)
        members = [(each, -1) for each in isr]
        known = controller.image.topics.by_name["t"]
        monkeypatch.setattr(alter_partition, "_is_mere_growth", is_mere_growth)
        taken += is_mere_growth(context, state, wanted, members)
        short = alter_partition._change(context, known, state, wanted, members)
        monkeypatch.setattr(alter_partition, "_is_mere_growth", lambda *_: False)
        assert short == alter_partition._change(context, known, state, wanted, members), (state, isr)
    assert 1_000 < taken < 2_900
