"""A spare that comes back with a damaged log around the moment at which it is added, at times drawn from a seed.

As one of two voters it would not help to elect the leader again: the quorum would have no leader for good. What the
process before had sent, and has not arrived, is lost: were its last Fetch to arrive, it would be damaged as a voter.
"""

from collections.abc import Callable
from random import Random

import pytest

from tests.simulation.directed.failing_disks import damage
from tests.simulation.directed.membership import add
from tests.simulation.directed.stage import Stage
from tests.simulation.errors import InvariantBroken
from tests.simulation.links import Weather
from tests.simulation.mutants.catalogue import MUTANTS

SEEDS = range(60)
# It is down for longer than a message is under way.
DELAY_MS_MAX = 10


def play(seed: int) -> bool:
    """Answers whether the spare was damaged, no voter yet; raises InvariantBroken where no leader comes back."""
    draw = Random(seed)
    stage = Stage(1, 1, dynamic=True)
    stage.network.weather = Weather(draw.randint(1, DELAY_MS_MAX))
    stage.elect(1)
    for _ in range(draw.randint(2, 4)):
        stage.append(1)
        stage.settle()
    begun_ms = stage.now_ms
    damage_at_ms = draw.randint(0, 30)
    back_at_ms = damage_at_ms + draw.randint(DELAY_MS_MAX + 1, 40)
    add_at_ms = back_at_ms + draw.randint(-45, 20)
    steps: list[tuple[int, Callable[[], object]]] = [
        (damage_at_ms, lambda: _damage_spare(stage)),
        (back_at_ms, lambda: _bring_back(stage)),
        (max(0, add_at_ms), lambda: add(stage, 1, 2)),
        (max(back_at_ms, add_at_ms) + draw.randint(2, 15), lambda: stage.power_off(1)),
    ]
    for at_ms, step in sorted(steps, key=lambda one: one[0]):
        stage.run(begun_ms + at_ms - stage.now_ms)
        step()
    stage.run(50)
    stage.power_on(1)
    stage.until(lambda: stage.leads() > 0, 5000, "a node leads again")
    stage.finish()
    return stage.tally["crashes"] > 1


def _damage_spare(stage: Stage) -> None:
    """A voter that is damaged is another story: the other one has to go on leading."""
    leader = stage.hosts[1].node
    if leader is not None and 2 not in leader.voters.ids:
        damage(stage, 2, 2)
        stage.drop(lambda message: message.source == 2)


def _bring_back(stage: Stage) -> None:
    stage.mend()
    stage.revive(stage.hosts[2])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_leader_comes_back_whenever_a_spare_was_damaged(seed: int) -> None:
    play(seed)


def test_the_seeds_show_what_they_are_for() -> None:
    assert sum(map(play, SEEDS)) > len(SEEDS) // 2
    with MUTANTS["voter_for_what_it_had"].apply(), pytest.raises(InvariantBroken, match="a node leads again"):
        list(map(play, SEEDS))
