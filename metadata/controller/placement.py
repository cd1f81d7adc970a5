"""Striped, rack-aware placement of replicas.

What it strives for, the first two always reached: a partition's replicas on different brokers; an unfenced first
replica; replicas spread over racks; leaders and replicas spread over brokers; fenced brokers last. Brokers that shut
down, or have cordoned all their directories (KIP-1066), get nothing.

The method is akin to that of Kafka's striped placer: brokers of a rack form a ring, and each partition starts one step
further. Where racks differ in size, or their number and size have a divisor in common, Kafka's way lets some brokers
lead more partitions than others; here each unfenced broker leads one before any leads two.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, cycle
from typing import TypeVar

from kio.schema.errors import ErrorCode

from metadata.controller.requests import ApiError
from metadata.image.cluster import BrokerRegistration
from raft.ports import Dice

T = TypeVar("T")
Replicas = Sequence[int]


class _Rack:
    """Brokers of a rack in the order of a ring; `load` counts the replicas that it has of the topic."""

    def __init__(self, brokers: list[BrokerRegistration]) -> None:
        self.unfenced = sorted(broker.id for broker in brokers if not broker.fenced)
        self.fenced = sorted(broker.id for broker in brokers if broker.fenced)
        self.load = 0
        self._next = 0
        self._next_fenced = 0

    @property
    def next_load(self) -> float:
        """Per broker, with one replica more."""
        return (self.load + 1) / (len(self.unfenced) or len(self.fenced))

    def begin(self, dice: Dice, held: Mapping[int, int]) -> None:
        """Start a topic, of which `held` says how many replicas each broker has: those with the fewest come first."""
        for ring in (self.unfenced, self.fenced):
            start = dice.randint(0, len(ring) - 1) if ring else 0
            ring[:] = ring[start:] + ring[:start]
        self.load = sum(held.get(broker, 0) for broker in chain(self.unfenced, self.fenced))
        self._next = _fewest(self.unfenced, held)
        self._next_fenced = _fewest(self.fenced, held)

    def behind(self, leader: int, count: int) -> tuple[int, ...]:
        """The leader and those behind it in the ring, which are that many unfenced brokers: one replica on each."""
        ring = self.unfenced
        start = ring.index(leader)
        self.load += count
        taken = ring[start : start + count]
        return (*taken, *ring[: count - len(taken)])

    def members(self, leader: int | None) -> Iterator[int]:
        """Whom to take for one partition, one after the other. In the rack of the leader it is those behind it;
        elsewhere each partition that takes any begins one step further."""
        if leader is not None:
            start = self.unfenced.index(leader)
            yield from self.unfenced[start + 1 :] + self.unfenced[:start]
        elif self.unfenced:
            start = self._next % len(self.unfenced)
            self._next += 1
            yield from self.unfenced[start:] + self.unfenced[:start]
        if self.fenced:
            start = self._next_fenced % len(self.fenced)
            self._next_fenced += 1
            yield from self.fenced[start:] + self.fenced[:start]


class StripedPlacer:
    """Places the partitions of topics, one topic at a time; raises ApiError INVALID_REPLICATION_FACTOR when it cannot.

    `led` says how many partitions each broker leads already: of two places to begin at, drawn by lot, the one is taken
    whose brokers lead less. That keeps the cluster even, and does not send every new topic to one broker either.
    """

    def __init__(
        self, brokers: Iterable[BrokerRegistration], dice: Dice, led: Mapping[int, int] | None = None
    ) -> None:
        registered = tuple(brokers)
        present = [broker for broker in registered if not broker.in_controlled_shutdown]
        self._or_leaving = " or in controlled shutdown" if len(present) < len(registered) else ""
        candidates = [broker for broker in present if not broker.is_cordoned]
        self._but_cordoned = (
            " and have not cordoned all their log directories" if len(candidates) < len(present) else ""
        )
        names = sorted(
            {broker.rack for broker in candidates}, key=lambda rack: (rack is not None, rack or "")
        )
        self._dice = dice
        self._racks = [_Rack([broker for broker in candidates if broker.rack == name]) for name in names]
        self._candidates = len(candidates)
        self._led = Counter(led or {})
        # Whose turn it is to lead: each unfenced broker once, with the place of its rack.
        self._turns: list[tuple[int, int]] = []
        self._turn = 0

    def place(
        self, partitions: int, replication_factor: int, existing: Sequence[Replicas] = ()
    ) -> list[tuple[int, ...]]:
        """The replicas of each partition, preferred first; `existing` are those of the topic's other partitions."""
        self._check_possible(replication_factor)
        self._begin(partitions, existing)
        return [self._place_one(replication_factor) for _ in range(partitions)]

    def _check_possible(self, replication_factor: int) -> None:
        prefix = f"Unable to replicate the partition {replication_factor} time(s): "
        if replication_factor <= 0:
            reason = (
                f"Invalid replication factor {replication_factor}: the replication factor must be positive."
            )
            raise ApiError(ErrorCode.invalid_replication_factor, prefix + reason)
        if not any(rack.unfenced for rack in self._racks):
            or_cordoned = " or have cordoned all their log directories" if self._but_cordoned else ""
            reason = f"All brokers are currently fenced{self._or_leaving}{or_cordoned}."
            raise ApiError(ErrorCode.invalid_replication_factor, prefix + reason)
        if replication_factor > self._candidates:
            reason = (
                f"The target replication factor of {replication_factor} cannot be reached because only "
                f"{self._candidates} broker(s) are registered{self._but_cordoned}."
            )
            raise ApiError(ErrorCode.invalid_replication_factor, prefix + reason)

    def _begin(self, partitions: int, existing: Sequence[Replicas]) -> None:
        held = Counter(chain.from_iterable(existing))
        for rack in self._racks:
            rack.begin(self._dice, held)
        turns = self._turns_of_all()
        starts = [self._dice.randint(0, len(turns) - 1) for _ in range(2)]
        rotated = [turns[start:] + turns[:start] for start in starts]
        turns = min(rotated, key=lambda each: sum(self._led[broker] for _, broker in each[:partitions]))
        leads = Counter(replicas[0] for replicas in existing if replicas)
        self._turns = sorted(turns, key=lambda turn: leads[turn[1]])
        self._turn = 0

    def _turns_of_all(self) -> list[tuple[int, int]]:
        """Brokers of one rack as far from each other as can be."""
        places = [
            ((2 * place + 1) / len(rack.unfenced), number, broker)
            for number, rack in enumerate(self._racks)
            for place, broker in enumerate(rack.unfenced)
        ]
        return [(number, broker) for _, number, broker in sorted(places)]

    def _place_one(self, replication_factor: int) -> tuple[int, ...]:
        if self._turn == len(self._turns):
            self._shuffle()
        first, leader = self._turns[self._turn]
        self._turn += 1
        self._led[leader] += 1
        if self._is_one_ring(replication_factor):
            return self._racks[0].behind(leader, replication_factor)
        self._racks[first].load += 1
        replicas = [leader]
        members: dict[int, Iterator[int]] = {}
        followers = self._follower_racks(first, replication_factor)
        while len(replicas) < replication_factor:
            rack = next(followers)
            if rack not in members:
                members[rack] = self._racks[rack].members(leader if rack == first else None)
            broker = next(members[rack], None)
            if broker is not None:
                replicas.append(broker)
                self._racks[rack].load += 1
        return tuple(replicas)

    def _is_one_ring(self, replication_factor: int) -> bool:
        """Whether nothing is to be chosen but the leader: all replicas are on unfenced brokers of the only rack."""
        return len(self._racks) == 1 and replication_factor <= len(self._racks[0].unfenced)

    def _follower_racks(self, first: int, replication_factor: int) -> Iterator[int]:
        """Racks to take a replica from, one after the other: that of the leader comes behind all others, and those with
        the fewest replicas of the topic come first where not all are needed."""
        count = len(self._racks)
        others = [(first + step) % count for step in range(1, count)]
        if replication_factor <= len(others):
            others.sort(key=lambda rack: self._racks[rack].next_load)
        return chain(others, cycle((first, *others)))

    def _shuffle(self) -> None:
        """When every broker has led once, another order: neighbours would share all their partitions otherwise."""
        shuffle(self._racks, self._dice)
        for rack in self._racks:
            shuffle(rack.unfenced, self._dice)
            shuffle(rack.fenced, self._dice)
        self._turns = self._turns_of_all()
        self._turn = 0


def _fewest(ring: list[int], held: Mapping[int, int]) -> int:
    return min(range(len(ring)), key=lambda place: held.get(ring[place], 0), default=0)


def shuffle(items: list[T], dice: Dice) -> None:
    """Fisher and Yates."""
    for last in range(len(items) - 1, 0, -1):
        other = dice.randint(0, last)
        items[last], items[other] = items[other], items[last]
