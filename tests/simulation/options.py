"""What kind of world a seed makes: sizes, timing, and what can go wrong in it (swarm testing).

About half of the kinds of fault is switched off in any world, so that rare ones get room.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

# election timeout, fetch timeout, how long faults last; Kafka's own figures are in the last line.
TIMINGS = (
    (50, 150, 1500),
    (50, 200, 2500),
    (100, 300, 3000),
    (200, 500, 4000),
    (1000, 2000, 9000),
)
TIMING_WEIGHTS = (6, 6, 5, 3, 1)


@dataclass(frozen=True, slots=True)
class Options:
    quorum: str
    voters: int
    spares: int
    observers: int
    auto_join: bool
    election_timeout_ms: int
    fetch_timeout_ms: int
    faults_until_ms: int
    delay_ms_max: int
    flush_ms_max: int
    max_fetch_bytes: int
    operation_every_ms: int
    read_percent: int
    clock_drift_percent: int
    shares_turns: bool
    uses_wire: bool
    mixes_releases: bool
    snapshot_bytes: int
    snapshot_padding: int
    retention_percent: int
    segment_batches: int
    faults: tuple[str, ...]
    fault_count: int
    # How long some disks take at most for an election state.
    state_ms_max: int = 0

    @property
    def quiet_ms(self) -> int:
        """The bound within which a healed quorum must have converged; most need a tenth of it."""
        return 5000 + 12 * (self.fetch_timeout_ms + 2 * self.election_timeout_ms)


def options_of(
    random_source: Random, kinds_of: Callable[[str], tuple[tuple[str, ...], tuple[str, ...]]]
) -> Options:
    """Draw a world; `kinds_of` names what can happen to a static, dynamic or upgraded quorum: voter changes, and
    other faults."""
    quorum = random_source.choice(("static", "static", "static", "dynamic", "dynamic", "dynamic", "upgraded"))
    election_timeout_ms, fetch_timeout_ms, faults_until_ms = random_source.choices(TIMINGS, TIMING_WEIGHTS)[0]
    delay_ms_max = random_source.choice((2, 5, 10, 10, 30, 100))
    flush_ms_max = random_source.choice((0, 2, 5, 20, 100))
    mixes_releases = quorum == "static" and random_source.random() < 0.3
    changes, others = kinds_of(quorum)
    faults = tuple(kind for kind in others if random_source.random() < 0.5)
    if random_source.random() < 0.75:
        faults += changes
    if random_source.random() < 0.04:
        # A quiet world in which only links are cut: there, who leads must go on leading.
        faults, delay_ms_max, flush_ms_max, mixes_releases = ("partial cut",), 5, 2, False
    return Options(
        quorum=quorum,
        voters=random_source.choice((1, 2, 3, 3, 3, 3, 3, 4, 5, 5)),
        spares=0 if quorum == "static" else random_source.choice((0, 1, 1, 2, 2)),
        observers=random_source.choice((0, 0, 0, 1, 1, 2, 3)),
        auto_join=quorum != "static" and random_source.random() < 0.4 and faults != ("partial cut",),
        election_timeout_ms=election_timeout_ms,
        fetch_timeout_ms=fetch_timeout_ms,
        faults_until_ms=faults_until_ms,
        delay_ms_max=delay_ms_max,
        flush_ms_max=flush_ms_max,
        # 60 bytes hold no batch, so that a Fetch brings one at a time, and a snapshot takes many pieces.
        max_fetch_bytes=random_source.choice((60, 300, 1_000_000)),
        operation_every_ms=random_source.choice((10, 30, 60, 100)) * faults_until_ms // 2000,
        read_percent=random_source.choice((0, 10, 50)),
        clock_drift_percent=random_source.choice((0, 0, 1, 5, 20)),
        shares_turns=random_source.random() < 0.5,
        uses_wire=random_source.random() < 0.2,
        mixes_releases=mixes_releases,
        snapshot_bytes=random_source.choice((0, 300, 800, 2000)),
        snapshot_padding=random_source.choice((0, 150, 600)),
        retention_percent=random_source.choice((0, 40, 100)),
        segment_batches=random_source.choice((1, 3, 8)),
        faults=faults,
        fault_count=random_source.choice((3, 8, 15, 25)) if faults else 0,
    )
