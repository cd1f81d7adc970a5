"""Striped, rack-aware placement of replicas.

What it strives for, the first two always reached: a partition's replicas on different brokers; an unfenced first
replica; replicas spread over racks; leaders and replicas spread over brokers; fenced brokers last. The method is
that of Kafka's striped placer: brokers of a rack form a ring, racks form a ring, and each partition starts one step
further on both.
"""

from collections.abc import Iterable
from typing import TypeVar

from kio.schema.errors import ErrorCode

from metadata.controller.requests import ApiError
from metadata.image.cluster import BrokerRegistration
from raft.ports import Dice

T = TypeVar("T")


class _Ring:
    """Brokers, handed out once per round from a start that moves on by one each round."""

    def __init__(self, brokers: list[int], dice: Dice) -> None:
        self.brokers = brokers
        self._start = dice.randint(0, len(brokers) - 1) if brokers else 0
        self._taken = 0
        self._round = 0

    def next(self, current_round: int) -> int | None:
        if not self.brokers:
            return None
        if self._round != current_round:
            self._round, self._taken = current_round, 0
            self._start = (self._start + 1) % len(self.brokers)
        if self._taken == len(self.brokers):
            return None
        broker = self.brokers[(self._start + self._taken) % len(self.brokers)]
        self._taken += 1
        return broker


class _Rack:
    def __init__(self, brokers: list[BrokerRegistration], dice: Dice) -> None:
        self.unfenced = _Ring(sorted(broker.id for broker in brokers if not broker.fenced), dice)
        self.fenced = _Ring(sorted(broker.id for broker in brokers if broker.fenced), dice)

    def next(self, current_round: int) -> int | None:
        broker = self.unfenced.next(current_round)
        return self.fenced.next(current_round) if broker is None else broker


class StripedPlacer:
    """Places the partitions of one topic; raises ApiError INVALID_REPLICATION_FACTOR when it cannot."""

    def __init__(self, brokers: Iterable[BrokerRegistration], dice: Dice) -> None:
        candidates = [broker for broker in brokers if not broker.in_controlled_shutdown]
        names = sorted(
            {broker.rack for broker in candidates}, key=lambda rack: (rack is not None, rack or "")
        )
        self._dice = dice
        self._racks = [
            _Rack([broker for broker in candidates if broker.rack == name], dice) for name in names
        ]
        self._candidates = len(candidates)
        self._unfenced = sum(not broker.fenced for broker in candidates)
        self._first_rack = dice.randint(0, len(names) - 1) if names else 0
        self._round = 0

    def place(self, partitions: int, replication_factor: int) -> list[tuple[int, ...]]:
        """The replicas of each partition, preferred first."""
        self._check_possible(replication_factor)
        return [self._place_one(replication_factor) for _ in range(partitions)]

    def _check_possible(self, replication_factor: int) -> None:
        prefix = f"Unable to replicate the partition {replication_factor} time(s): "
        if self._unfenced == 0:
            raise ApiError(ErrorCode.invalid_replication_factor, prefix + "All brokers are currently fenced.")
        if replication_factor > self._candidates:
            reason = (
                f"The target replication factor of {replication_factor} cannot be reached because only "
                f"{self._candidates} broker(s) are registered."
            )
            raise ApiError(ErrorCode.invalid_replication_factor, prefix + reason)

    def _place_one(self, replication_factor: int) -> tuple[int, ...]:
        if self._round == self._unfenced and self._unfenced > 1:
            self._shuffle()
        first_rack, first = self._first_replica()
        replicas = [first]
        # The rack of the first replica is passed over once, so that the second replica goes elsewhere.
        skipped: int | None = first_rack
        rack = self._first_rack
        while len(replicas) < replication_factor:
            if rack == skipped:
                skipped = None
            else:
                broker = self._racks[rack].next(self._round)
                if broker is not None:
                    replicas.append(broker)
            rack = (rack + 1) % len(self._racks)
        self._round += 1
        self._first_rack = (self._first_rack + 1) % len(self._racks)
        return tuple(replicas)

    def _first_replica(self) -> tuple[int, int]:
        """The next unfenced broker of the first rack that has one, with the place of that rack."""
        for step in range(len(self._racks)):
            rack = (self._first_rack + step) % len(self._racks)
            broker = self._racks[rack].unfenced.next(self._round)
            if broker is not None:
                return rack, broker
        raise AssertionError("there is an unfenced broker, so one of the racks has it")

    def _shuffle(self) -> None:
        """When every broker has led once, another order: neighbours would share all their partitions otherwise."""
        self._round = 0
        shuffle(self._racks, self._dice)
        for rack in self._racks:
            shuffle(rack.unfenced.brokers, self._dice)
            shuffle(rack.fenced.brokers, self._dice)


def shuffle(items: list[T], dice: Dice) -> None:
    """Fisher and Yates."""
    for last in range(len(items) - 1, 0, -1):
        other = dice.randint(0, last)
        items[last], items[other] = items[other], items[last]
