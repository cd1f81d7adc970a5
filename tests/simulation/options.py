"""What kind of world a seed makes: sizes, delays and how often what goes wrong (swarm testing)."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Options:
    voters: int
    observers: int
    delay_ms_max: int
    loss_percent: int
    duplicate_percent: int
    flush_ms_max: int
    crash_every_ms: int
    partition_every_ms: int
    pause_every_ms: int
    power_cut_every_ms: int
    crash_after_vote_percent: int
    crash_new_leader_percent: int
    revive_ms_max: int
    max_fetch_bytes: int
    election_timeout_ms: int
    faults_until_ms: int = 10_000
    quiet_until_ms: int = 18_000
    proposal_every_ms: int = 25


def options_of(dice: Random) -> Options:
    """Draw a world; about a third of the kinds of fault is switched off, so that rare ones get room."""

    def maybe(value: int) -> int:
        return 0 if dice.random() < 0.33 else value

    return Options(
        voters=dice.choice((3, 3, 5)),
        observers=dice.choice((0, 1, 2)),
        delay_ms_max=dice.choice((2, 10, 60, 300)),
        loss_percent=maybe(dice.choice((1, 5, 20))),
        duplicate_percent=maybe(dice.choice((1, 10))),
        flush_ms_max=dice.choice((0, 2, 20, 200)),
        crash_every_ms=maybe(dice.choice((900, 2500))),
        partition_every_ms=maybe(dice.choice((1200, 3000))),
        pause_every_ms=maybe(dice.choice((1500, 4000))),
        power_cut_every_ms=maybe(dice.choice((1500, 3000))),
        crash_after_vote_percent=maybe(dice.choice((5, 30))),
        crash_new_leader_percent=maybe(dice.choice((10, 50))),
        revive_ms_max=dice.choice((20, 500, 3000)),
        max_fetch_bytes=dice.choice((1, 300, 1_000_000)),
        election_timeout_ms=dice.choice((50, 1000)),
    )
