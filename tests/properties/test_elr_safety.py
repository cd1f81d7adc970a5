"""What eligible leader replicas (KIP-966) are for: a leader that was elected cleanly has all that was committed.

Brokers with logs are played against the real controller. A record is committed once all of an ISR that is large enough
have it. A broker that crashes loses any part of its log; one that is shut down in order, or that is only fenced,
loses nothing. Whatever happens in whatever order, what was committed is there when a broker leads again, unless the
election was unclean, which the controller says by the recovery state.
"""

import random
from typing import Any
from uuid import UUID

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.image.metadata_version import ELIGIBLE_LEADER_REPLICAS_VERSION
from kquorum.metadata.image.partition_state import NO_LEADER, RECOVERED, RECOVERING, PartitionState
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.controller_world import SESSION_MS, World, assigned
from tests.support.metadata.feature_updates import FEATURES

STEPS = 60


class Cluster:
    """`logs` are the records of each broker's replica; `committed` what may not be lost."""

    def __init__(self, seed: int, brokers: int, minimum: int) -> None:
        self.random = random.Random(seed)
        records = bootstrap_records(25, {ELIGIBLE_LEADER_REPLICAS_VERSION: 1})
        config = ControllerConfig(
            bootstrap_records=records, min_insync_replicas=minimum, metadata_max_idle_interval_ms=0
        )
        self.world = World(config, seed).lead().add_brokers(*range(brokers), features=FEATURES)
        self.world.create(assigned("a", tuple(range(brokers))))
        self.minimum = min(minimum, brokers)
        self.logs: dict[int, list[int]] = {each: [] for each in range(brokers)}
        self.alive = set(self.logs)
        self.committed: list[int] = []
        self.written = 0
        self.incarnations = dict.fromkeys(self.logs, 1)
        self.unclean_elections = self.clean_elections_from_elr = 0

    @property
    def state(self) -> PartitionState:
        return self.world.partition("a")

    def step(self) -> None:
        before = self.state
        getattr(self, self.random.choice(MOVES))(self.random.choice(sorted(self.logs)))
        self._check(before, self.state)

    def write(self, _broker: int) -> None:
        """The leader appends; all in sync copy it; it counts once enough of them have."""
        state = self.state
        if state.leader not in self.alive:
            return
        self.written += 1
        self.logs[state.leader].append(self.written)
        for member in state.isr:
            if member in self.alive:
                self.logs[member] = list(self.logs[state.leader])
        if len(state.isr) >= self.minimum and set(state.isr) <= self.alive:
            self.committed = list(self.logs[state.leader])

    def crash(self, broker: int) -> None:
        log = self.logs[broker]
        del log[self.random.randint(0, len(log)) :]
        self.alive.discard(broker)

    def pause(self, broker: int) -> None:
        """Fenced on its own wish, its process goes on."""
        if broker in self.alive:
            self.world.heartbeat(broker, want_fence=True)

    def resume(self, broker: int) -> None:
        if broker in self.alive:
            self.world.heartbeat(broker, current_metadata_offset=1 << 40)

    def restart(self, broker: int) -> None:
        """In order while it lives, otherwise after a crash; in both cases the session is over by then."""
        known = self.world.controller.image.cluster.brokers[broker]
        was_alive = broker in self.alive
        if not known.fenced:
            self._let_expire(broker, is_fenced_first=self.random.random() < 0.5)
        self.incarnations[broker] += 1
        answer = self.world.register(
            broker,
            self.incarnations[broker],
            features=FEATURES,
            previous_broker_epoch=known.epoch if was_alive else -1,
        )
        assert answer.error_code is ErrorCode.none
        self.alive.add(broker)

    def _let_expire(self, broker: int, *, is_fenced_first: bool) -> None:
        others = [
            each
            for each, known in self.world.controller.image.cluster.brokers.items()
            if each != broker and not known.fenced
        ]
        self.world.now_ms += SESSION_MS - 1
        for other in others:
            self.world.heartbeat(other)
        if is_fenced_first:
            self.world.advance(2)
            self.world.commit()
        else:
            self.world.now_ms += 2

    def join(self, broker: int) -> None:
        """A follower has copied all that the leader has, and the leader reports it in sync."""
        state = self.state
        if {broker, state.leader} <= self.alive and broker not in state.isr:
            self.logs[broker] = list(self.logs[state.leader])
            self._alter((*state.isr, broker))

    def drop(self, broker: int) -> None:
        state = self.state
        if state.leader in self.alive and broker in state.isr and broker != state.leader:
            self._alter(tuple(member for member in state.isr if member != broker))

    def _alter(self, isr: tuple[int, ...]) -> None:
        state, world = self.state, self.world
        wanted: dict[str, Any] = {
            "partition_index": 0,
            "leader_epoch": state.leader_epoch,
            "new_isr_with_epochs": [{"broker_id": each, "broker_epoch": -1} for each in isr],
            "leader_recovery_state": RECOVERED,
            "partition_epoch": state.partition_epoch,
        }
        topic_id: UUID = world.controller.image.topics.by_name["a"].id
        world.ask(
            ApiKey.ALTER_PARTITION,
            3,
            broker_id=state.leader,
            broker_epoch=world.controller.image.cluster.brokers[state.leader].epoch,
            topics=[{"topic_id": topic_id, "partitions": [wanted]}],
        )

    def _check(self, before: PartitionState, after: PartitionState) -> None:
        assert not set(after.isr) & set(after.elr)
        assert set(after.isr) | set(after.elr) <= set(after.replicas)
        assert after.leader == NO_LEADER or after.leader in after.isr
        assert len(after.isr) < self.minimum or not after.elr
        assert after.leader_epoch >= before.leader_epoch
        assert after.partition_epoch >= before.partition_epoch
        assert after.partition_epoch > before.partition_epoch or after == before
        if after.leader_epoch == before.leader_epoch or after.leader not in self.alive:
            return  # A dead leader that was not fenced yet cannot serve.
        is_unclean = after.leader_recovery_state == RECOVERING
        if is_unclean:
            self.unclean_elections += 1
            self.committed = self.committed[: _common(self.committed, self.logs[after.leader])]
            return
        self.clean_elections_from_elr += after.leader in before.elr
        log = self.logs[after.leader]
        assert log[: len(self.committed)] == self.committed, (
            f"{after.leader} leads and lacks what was committed"
        )


def _common(one: list[int], two: list[int]) -> int:
    pairs = enumerate(zip(one, two, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(two)))


MOVES = ("write", "write", "write", "crash", "pause", "resume", "resume", "restart", "join", "join", "drop")


def play(seed: int) -> Cluster:
    sizes = [(3, 2), (3, 3), (2, 2), (4, 3), (3, 1), (2, 5)]
    cluster = Cluster(seed, *sizes[seed % len(sizes)])
    for _ in range(STEPS):
        cluster.step()
    return cluster


def test_nothing_that_was_committed_is_lost_but_by_unclean_elections() -> None:
    clusters = [play(seed) for seed in range(60)]
    assert sum(cluster.clean_elections_from_elr for cluster in clusters) > 20
    assert sum(cluster.unclean_elections for cluster in clusters) > 5
    assert sum(len(cluster.committed) for cluster in clusters) > 100


@pytest.mark.slow
def test_nothing_that_was_committed_is_lost_in_many_more() -> None:
    for seed in range(1000, 3000):
        play(seed)
