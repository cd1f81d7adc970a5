"""Striped, rack-aware placement of replicas.

What it strives for, the first two always reached: a partition's replicas on different brokers; an unfenced first
replica; replicas spread over racks; leaders and replicas spread over brokers; fenced brokers last. Brokers that shut
down, or have cordoned all their directories (KIP-1066), get nothing.

The method is akin to that of Kafka's striped placer: brokers of a rack form a ring, and each partition starts one step
further. Where racks differ in size, or their number and size have a divisor in common, Kafka's way lets some brokers
lead more partitions than others; here each unfenced broker leads one before any leads two.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain
from operator import attrgetter
from typing import TypeVar

from kquorum.metadata.controller.requests import ApiError
from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.raft.ports import RandomSource
from kquorum.wire.messages.error_codes import ErrorCode

T = TypeVar("T")

# Of an unfenced broker that is to lead: the place of its rack, and its own in the rack's ring.
Turn = tuple[int, int]
_NONE_HELD: Mapping[int, int] = {}


class _Rack:
    """Brokers of a rack in the order of a ring; `load` counts the replicas that it has of the topic."""

    def __init__(self, brokers: list[BrokerRegistration]) -> None:
        self.unfenced = sorted(broker.id for broker in brokers if not broker.fenced)
        self.fenced = sorted(broker.id for broker in brokers if broker.fenced)
        self.size = len(brokers)
        self.load = 0
        # Per broker, with one replica more.
        self.next_load = 0.0
        self._per_broker = len(self.unfenced) or len(self.fenced)
        self._next = 0
        self._next_fenced = 0

    def begin(self, random_source: RandomSource, held: Mapping[int, int]) -> None:
        """Start a topic. `held` is the number of its replicas on each broker: brokers with the fewest come first."""
        for ring in (self.unfenced, self.fenced):
            start = random_source.randint(0, len(ring) - 1) if ring else 0
            ring[:] = ring[start:] + ring[:start]
        self.load = 0
        self.add_load(sum(held.get(broker, 0) for broker in chain(self.unfenced, self.fenced)))
        self._next = _fewest(self.unfenced, held)
        self._next_fenced = _fewest(self.fenced, held)

    def add_load(self, count: int) -> None:
        self.load += count
        self.next_load = (self.load + 1) / self._per_broker

    def follower(self) -> int:
        """The next broker of the rack's ring for a follower; an unfenced one where there is any."""
        self.add_load(1)
        if ring := self.unfenced:
            self._next += 1
            return ring[(self._next - 1) % len(ring)]
        self._next_fenced += 1
        return self.fenced[(self._next_fenced - 1) % len(self.fenced)]

    def followers(self, count: int) -> list[int]:
        """The same, of several that the partition is to have of this rack."""
        self.add_load(count)
        ring = self.unfenced
        if not ring:
            return self._fenced_ones(count)
        start = self._next % len(ring)
        self._next += 1
        taken = _onwards(ring, start, min(count, len(ring)))
        return taken if count <= len(ring) else taken + self._fenced_ones(count - len(ring))

    def behind(self, place: int, count: int) -> list[int]:
        """So many followers in the rack of the leader, which is at this place of the ring."""
        self.add_load(count)
        others = len(self.unfenced) - 1
        taken = _onwards(self.unfenced, place + 1, min(count, others))
        return taken if count <= others else taken + self._fenced_ones(count - others)

    def _fenced_ones(self, count: int) -> list[int]:
        start = self._next_fenced % len(self.fenced)
        self._next_fenced += 1
        return _onwards(self.fenced, start, count)


class StripedPlacer:
    """Places the partitions of topics, one topic at a time; raises ApiError INVALID_REPLICATION_FACTOR when it cannot.

    `led` says how many partitions each broker leads already: of two places to begin at, drawn by lot, the one is taken
    whose brokers lead less. That keeps the cluster even, and does not send every new topic to one broker either.
    """

    def __init__(
        self,
        brokers: Iterable[BrokerRegistration],
        random_source: RandomSource,
        led: Mapping[int, int] | None = None,
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
        self._random_source = random_source
        self._racks = [_Rack([broker for broker in candidates if broker.rack == name]) for name in names]
        self._candidates = len(candidates)
        self._led = Counter(led or {})

    def place(
        self,
        partitions: int,
        replication_factor: int,
        held: Mapping[int, int] = _NONE_HELD,
        preferred: Mapping[int, int] = _NONE_HELD,
    ) -> list[tuple[int, ...]]:
        """The replicas of each partition, preferred first. Of the topic's other partitions `held` says how many
        replicas each broker has, `preferred` of how many it is the first."""
        self._check_possible(replication_factor)
        turns = self._begin(partitions, held, preferred)
        place_turns = self._on_one_ring if self._is_one_ring(replication_factor) else self._among_racks
        # Where most brokers are fenced, the few others lead several times in one order: the followers change all the
        # same, and an order for every two partitions of 9,900 would take 40 ms.
        times = self._candidates // len(turns)
        placed: list[tuple[int, ...]] = []
        while len(placed) < partitions:
            # When every broker has led, another order: neighbours would share all their partitions otherwise.
            if placed:
                self._shuffle()
                turns = self._turns_of_all()
            placed += place_turns((tuple(turns) * times)[: partitions - len(placed)], replication_factor)
        self._led.update([replicas[0] for replicas in placed])
        return placed

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

    def _begin(
        self, partitions: int, held: Mapping[int, int], preferred: Mapping[int, int]
    ) -> Sequence[Turn]:
        """The leader's place: each unfenced broker leads once before any leads again."""
        for rack in self._racks:
            rack.begin(self._random_source, held)
        turns = self._turns_of_all()
        starts = [self._random_source.randint(0, len(turns) - 1) for _ in range(2)]
        rotated = [turns[start:] + turns[:start] for start in starts]
        turns = min(
            rotated, key=lambda each: sum(self._led[self._leader_of(turn)] for turn in each[:partitions])
        )
        return sorted(turns, key=lambda turn: preferred.get(self._leader_of(turn), 0))

    def _leader_of(self, turn: Turn) -> int:
        number, place = turn
        return self._racks[number].unfenced[place]

    def _turns_of_all(self) -> tuple[Turn, ...]:
        """Brokers of one rack as far from each other as can be."""
        return _turns(tuple([len(rack.unfenced) for rack in self._racks]))

    def _on_one_ring(self, turns: Sequence[Turn], replication_factor: int) -> list[tuple[int, ...]]:
        """The leader and those behind it in the ring."""
        rack = self._racks[0]
        count = len(rack.unfenced)
        twice = rack.unfenced * 2
        rows = list(zip(*[twice[step : step + count] for step in range(replication_factor)], strict=True))
        rack.add_load(len(turns) * replication_factor)
        return [rows[place] for _, place in turns]

    def _is_one_ring(self, replication_factor: int) -> bool:
        """Whether nothing is to be chosen but the leader: all replicas are on unfenced brokers of the only rack."""
        return len(self._racks) == 1 and replication_factor <= len(self._racks[0].unfenced)

    def _among_racks(self, turns: Sequence[Turn], replication_factor: int) -> list[tuple[int, ...]]:
        """A replica from one rack after the other: that of the leader comes behind all others, and those with the
        fewest replicas of the topic come first where not all are needed."""
        count = len(self._racks)
        if replication_factor > count:
            return self._all_around(turns, replication_factor)
        twice = self._racks * 2
        placed: list[tuple[int, ...]] = []
        for number, place in turns:
            first, others = twice[number], twice[number + 1 : number + count]
            first.add_load(1)
            if replication_factor < count:
                others.sort(key=_NEXT_LOAD)
            followers = [rack.follower() for rack in others[: replication_factor - 1]]
            placed.append((first.unfenced[place], *followers))
        return placed

    def _all_around(self, turns: Sequence[Turn], replication_factor: int) -> list[tuple[int, ...]]:
        """The same where racks are to have several."""
        twice = self._racks * 2
        behind = [twice[number + 1 : number + len(self._racks)] for number in range(len(self._racks))]
        shares = [
            _shares((*[rack.size for rack in others], first.size - 1), replication_factor - 1)
            for first, others in zip(self._racks, behind, strict=True)
        ]
        placed: list[tuple[int, ...]] = []
        for number, place in turns:
            first, (counts, order) = twice[number], shares[number]
            first.add_load(1)
            taken: list[int] = []
            for rack, share in zip(behind[number], counts, strict=False):
                taken += rack.followers(share)
            taken += first.behind(place, counts[-1])
            placed.append((first.unfenced[place], *[taken[each] for each in order]))
        return placed

    def _shuffle(self) -> None:
        shuffle(self._racks, self._random_source)
        for rack in self._racks:
            shuffle(rack.unfenced, self._random_source)
            shuffle(rack.fenced, self._random_source)


_NEXT_LOAD = attrgetter("next_load")


@lru_cache(maxsize=64)
def _turns(sizes: tuple[int, ...]) -> tuple[Turn, ...]:
    """Of racks with so many unfenced brokers."""
    places = [
        ((2 * place + 1) / size, number, place) for number, size in enumerate(sizes) for place in range(size)
    ]
    return tuple([(number, place) for _, number, place in sorted(places)])


@lru_cache(maxsize=64)
def _shares(sizes: tuple[int, ...], count: int) -> tuple[list[int], list[int]]:
    """How many of `count` things come from each of several heaps, if each in turn gives one while it has any; and where
    these things stand, in this order, when the heaps' shares are laid end to end."""
    order = [(step, heap) for step in range(max(sizes)) for heap, size in enumerate(sizes) if step < size]
    counts = Counter(heap for _, heap in order[:count])
    shares = [counts[heap] for heap in range(len(sizes))]
    firsts = list(accumulate(shares, initial=0))
    return shares, [firsts[heap] + step for step, heap in order[:count]]


def _onwards(ring: list[int], start: int, count: int) -> list[int]:
    """So many entries of the ring from a place on, at most one round."""
    taken = ring[start : start + count]
    return taken if len(taken) == count else taken + ring[: count - len(taken)]


def _fewest(ring: list[int], held: Mapping[int, int]) -> int:
    return min(range(len(ring)), key=lambda place: held.get(ring[place], 0), default=0)


def shuffle(items: list[T], random_source: RandomSource) -> None:
    """Fisher and Yates."""
    for last in range(len(items) - 1, 0, -1):
        other = random_source.randint(0, last)
        items[last], items[other] = items[other], items[last]
