"""The placer, which places a round of partitions at a time, against a model that takes one broker after the other."""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import chain, cycle
from uuid import UUID

import pytest
from hypothesis import given, settings

from kquorum.metadata.controller.requests import ApiError
from kquorum.metadata.controller.topics.placement import StripedPlacer, shuffle
from kquorum.metadata.image.cluster import BrokerRegistration
from tests.support.bulk_worlds import SEEDS


class ModelRack:
    def __init__(self, brokers: list[BrokerRegistration]) -> None:
        self.rings = [
            sorted(broker.id for broker in brokers if broker.fenced is is_fenced)
            for is_fenced in (False, True)
        ]
        self.nexts = [0, 0]
        self.load = 0

    @property
    def next_load(self) -> float:
        return (self.load + 1) / (len(self.rings[0]) or len(self.rings[1]))

    def begin(self, random_source: random.Random, held: Counter[int]) -> None:
        for ring in self.rings:
            start = random_source.randint(0, len(ring) - 1) if ring else 0
            ring[:] = ring[start:] + ring[:start]
        self.load = sum(held[broker] for broker in chain(*self.rings))
        fewest = [sorted(range(len(ring)), key=lambda place: held[ring[place]]) for ring in self.rings]
        self.nexts = [places[0] if places else 0 for places in fewest]

    def members(self, leader: int | None) -> Iterator[int]:
        """The brokers that one partition takes, in order; a ring is drawn when the placer reaches it."""
        for number, ring in enumerate(self.rings):
            if number == 0 and leader is not None:
                start = ring.index(leader)
                yield from ring[start + 1 :] + ring[:start]
            elif ring:
                start = self.nexts[number] % len(ring)
                self.nexts[number] += 1
                yield from ring[start:] + ring[:start]


class Model:
    def __init__(
        self, brokers: list[BrokerRegistration], random_source: random.Random, led: dict[int, int]
    ) -> None:
        names = sorted({broker.rack for broker in brokers}, key=lambda rack: (rack is not None, rack or ""))
        self.racks = [ModelRack([broker for broker in brokers if broker.rack == name]) for name in names]
        self.random_source = random_source
        self.led = Counter(led)

    def place(self, count: int, factor: int, existing: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        held = Counter(chain.from_iterable(existing))
        for rack in self.racks:
            rack.begin(self.random_source, held)
        turns = self.turns()
        starts = [self.random_source.randint(0, len(turns) - 1) for _ in range(2)]
        rotated = [turns[start:] + turns[:start] for start in starts]
        turns = min(rotated, key=lambda each: sum(self.led[broker] for _, broker in each[:count]))
        preferred = Counter(replicas[0] for replicas in existing)
        turns = sorted(turns, key=lambda turn: preferred[turn[1]])
        placed: list[tuple[int, ...]] = []
        # An order holds for about as many partitions as there are brokers, fenced ones among them.
        times = sum(len(ring) for rack in self.racks for ring in rack.rings) // len(turns)
        while len(placed) < count:
            if placed:
                shuffle(self.racks, self.random_source)
                for ring in chain.from_iterable(rack.rings for rack in self.racks):
                    shuffle(ring, self.random_source)
                turns = self.turns()
            placed += [self.place_one(*turn, factor) for turn in (turns * times)[: count - len(placed)]]
        return placed

    def turns(self) -> list[tuple[int, int]]:
        """Each unfenced broker with its rack, those of one rack as far from each other as can be."""
        places = [
            ((2 * place + 1) / len(rack.rings[0]), number, broker)
            for number, rack in enumerate(self.racks)
            for place, broker in enumerate(rack.rings[0])
        ]
        return [(number, broker) for _, number, broker in sorted(places)]

    def place_one(self, first: int, leader: int, factor: int) -> tuple[int, ...]:
        self.led[leader] += 1
        self.racks[first].load += 1
        count = len(self.racks)
        others = [(first + step) % count for step in range(1, count)]
        if factor < count:
            others.sort(key=lambda rack: self.racks[rack].next_load)
        members = {rack: self.racks[rack].members(leader if rack == first else None) for rack in range(count)}
        replicas = [leader]
        racks = chain(others, cycle((first, *others)))
        while len(replicas) < factor:
            rack = next(racks)
            broker = next(members[rack], None)
            if broker is not None:
                replicas.append(broker)
                self.racks[rack].load += 1
        return tuple(replicas)


def check(seed: int) -> None:
    random_source = random.Random(seed)
    racks: list[str | None] = [None, *"abcdefg"]
    racks = racks[: random_source.choice([1, 1, 2, 3, 4, 8])]
    brokers = [
        BrokerRegistration(
            id=3 * each,
            epoch=1,
            incarnation_id=UUID(int=each),
            rack=random_source.choice(racks),
            fenced=random_source.randrange(4) == 0,
        )
        for each in range(random_source.randint(1, 12))
    ]
    led = {random_source.randrange(40): random_source.randrange(5) for _ in range(4)}
    placer = StripedPlacer(brokers, random.Random(seed), led)
    model = Model(brokers, random.Random(seed), led)
    for _ in range(3):
        factor, count = random_source.randint(1, 6), random_source.choice([1, 2, 5, 17, 60])
        existing = [
            tuple(random_source.sample(range(0, 36, 3), random_source.randint(1, 4)))
            for _ in range(random_source.choice([0, 0, 1, 6]))
        ]
        held = Counter(chain.from_iterable(existing))
        preferred = Counter(replicas[0] for replicas in existing)
        try:
            placed = placer.place(count, factor, held, preferred)
        except ApiError:
            continue
        assert placed == model.place(count, factor, existing)


@given(SEEDS)
@settings(deadline=None, max_examples=150)
def test_rounds_are_placed_as_one_by_one(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@given(SEEDS)
@settings(deadline=None, max_examples=4000)
def test_many_rounds_are_placed_as_one_by_one(seed: int) -> None:
    check(seed)
