"""An ISR that only grows is written down without an election: with the record that the rules for any change give."""

from random import Random
from types import SimpleNamespace

import pytest

from metadata.controller import alter_partition
from metadata.image.directories import MIGRATING
from metadata.image.partition_state import PartitionState
from tests.unit.metadata.controller_world import World, topic

BROKERS = (1, 2, 3, 4)


def some_state(dice: Random) -> PartitionState:
    replicas = tuple(dice.sample(BROKERS, 3))
    isr = tuple(dice.sample(replicas, dice.randint(1, 3)))
    return PartitionState(
        replicas=replicas,
        directories=(MIGRATING,) * 3,
        isr=isr,
        removing_replicas=replicas[-1:] if dice.random() < 0.1 else (),
        adding_replicas=replicas[:1] if dice.random() < 0.1 else (),
        leader=dice.choice(isr) if dice.random() < 0.9 else -1,
        leader_recovery_state=int(dice.random() < 0.1),
        leader_epoch=3,
        partition_epoch=7,
        elr=tuple(each for each in replicas if each not in isr) if dice.random() < 0.1 else (),
        last_known_elr=replicas[1:2] if dice.random() < 0.1 else (),
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
    context, dice = controller._context(world.now_ms, active), Random(1)
    is_mere_growth = alter_partition._is_mere_growth
    taken = 0
    for _ in range(3_000):
        state = some_state(dice)
        isr = tuple(dict.fromkeys((*state.isr, *dice.sample(state.replicas, dice.randint(0, 2)))))
        if dice.random() < 0.1:
            isr = tuple(dice.sample(isr, len(isr)))[: dice.randint(1, len(isr))]
        recovery = state.leader_recovery_state if dice.random() < 0.9 else 0
        wanted = SimpleNamespace(partition_index=5, leader_recovery_state=recovery)
        members = [(each, -1) for each in isr]
        known = controller.image.topics.by_name["t"]
        monkeypatch.setattr(alter_partition, "_is_mere_growth", is_mere_growth)
        taken += is_mere_growth(context, state, wanted, members)
        short = alter_partition._change(context, known, state, wanted, members)
        monkeypatch.setattr(alter_partition, "_is_mere_growth", lambda *_: False)
        assert short == alter_partition._change(context, known, state, wanted, members), (state, isr)
    assert 1_000 < taken < 2_900
