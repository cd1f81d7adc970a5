"""Balanced, rack-aware placement of replicas on brokers, with few moves: the plan of `kquorum reassign plan`.

Without I/O. Placement keeps to these rules, the first the most important:

1. A partition has as many replicas as it had, or as asked for, each on another broker.
2. Its replicas are on as many racks as there can be.
3. The replicas of each topic are spread evenly over the brokers, and then those of all topics.
4. The preferred leaders are spread evenly, which moves no data: only the order of the replicas changes.
5. What need not move stays where it is.
"""

import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

Place = tuple[str, int]
Assignment = Mapping[Place, tuple[int, ...]]


def balanced(
    current: Assignment, racks: Mapping[int, str | None], replication_factor: int | None = None
) -> dict[Place, tuple[int, ...]]:
    """The new replicas of every partition. `racks` names the brokers that may have replicas, with the rack of each; the
    first replica of a partition is its preferred leader. Raises ValueError if the brokers are too few."""
    placement = _Placement(racks)
    for place, replicas in current.items():
        wanted = len(replicas) if replication_factor is None else replication_factor
        if wanted > len(racks):
            raise ValueError(
                f"{place[0]}-{place[1]} is to have {wanted} replicas, and there are {len(racks)} brokers for them"
            )
        placement.admit(place, replicas, wanted)
    for place in current:
        placement.fill(place)
    for place in current:
        placement.spread_over_racks(place)
    placement.level_topics()
    placement.level_brokers()
    return _with_leaders(current, placement.replicas)


class _Placement:
    """The brokers of each partition while they change, and how many replicas each broker has, by topic and in all."""

    def __init__(self, racks: Mapping[int, str | None]) -> None:
        # A broker without a rack is a rack of its own, unless no broker has one.
        self._racks = {
            broker: f"broker {broker}" if rack is None else f"rack {rack}" for broker, rack in racks.items()
        }
        self._rack_count = len(set(self._racks.values()))
        self._wanted: dict[Place, int] = {}
        self.replicas: dict[Place, set[int]] = {}
        self._totals = Counter[int](dict.fromkeys(racks, 0))
        self._of_topic: dict[str, Counter[int]] = defaultdict(lambda: Counter(dict.fromkeys(racks, 0)))
        self._held: dict[int, dict[Place, None]] = {broker: {} for broker in racks}

    def admit(self, place: Place, replicas: Sequence[int], wanted: int) -> None:
        """With the replicas that it has on these brokers, as far as they are wanted."""
        self._wanted[place] = wanted
        self.replicas[place] = set()
        for broker in self._first_by_rack(each for each in replicas if each in self._racks):
            if len(self.replicas[place]) < wanted:
                self._put(place, broker)

    def _first_by_rack(self, brokers: Iterable[int]) -> Iterator[int]:
        """One of each rack, and then the others."""
        seen, others = set[str](), list[int]()
        for broker in dict.fromkeys(brokers):
            if self._racks[broker] in seen:
                others.append(broker)
            else:
                seen.add(self._racks[broker])
                yield broker
        yield from others

    def fill(self, place: Place) -> None:
        """With the brokers that have the fewest replicas, of racks without one first."""
        while len(self.replicas[place]) < self._wanted[place]:
            used = {self._racks[each] for each in self.replicas[place]}
            free = [each for each in self._racks if each not in self.replicas[place]]
            self._put(
                place, min(free, key=lambda each: (self._racks[each] in used, *self._load(place[0], each)))
            )

    def spread_over_racks(self, place: Place) -> None:
        most = min(self._wanted[place], self._rack_count)
        while len(by_rack := self._by_rack(place)) < most:
            crowded = [each for brokers in by_rack.values() if len(brokers) > 1 for each in brokers]
            free = [each for each, rack in self._racks.items() if rack not in by_rack]
            source = max(crowded, key=lambda each: self._load(place[0], each))
            self._move(place, source, min(free, key=lambda each: self._load(place[0], each)))

    def level_topics(self) -> None:
        """Until no broker has two more replicas of a topic than another, as far as racks allow."""
        by_topic: dict[str, list[Place]] = defaultdict(list)
        for place in self.replicas:
            by_topic[place[0]].append(place)
        for topic, places in by_topic.items():
            self._level(self._of_topic[topic], partial(_all_of, places), keeps_topics=False)

    def level_brokers(self) -> None:
        """Until no broker has two more replicas than another: replicas of topics of which it has more."""
        self._level(self._totals, lambda broker: list(self._held[broker]), keeps_topics=True)

    def _level(
        self, counts: Counter[int], of: Callable[[int], Iterable[Place]], *, keeps_topics: bool
    ) -> None:
        """`of` a broker are the partitions whose replicas may leave it."""
        mean = counts.total() / len(self._racks)
        for low in sorted(self._racks, key=lambda each: (counts[each], each)):
            for high in sorted(self._racks, key=lambda each: (-counts[each], each)):
                # What is over the mean goes to what is under it, and so moves once.
                over, under = counts[high] - math.ceil(mean), math.floor(mean) - counts[low]
                self._shift(high, low, min(over, under), of(high), keeps_topics=keeps_topics)
        while self._shift_one(counts, of, keeps_topics=keeps_topics):
            pass

    def _shift_one(
        self, counts: Counter[int], of: Callable[[int], Iterable[Place]], *, keeps_topics: bool
    ) -> bool:
        """One replica from a broker with many to one with at least two fewer; whether there was one."""
        order = sorted(self._racks, key=lambda each: (counts[each], self._totals[each], each))
        return any(
            self._shift(high, low, 1, of(high), keeps_topics=keeps_topics)
            for high in reversed(order)
            for low in order
            if counts[high] - counts[low] >= 2
        )

    def _shift(self, high: int, low: int, most: int, places: Iterable[Place], *, keeps_topics: bool) -> bool:
        """Moves so many replicas at most; whether any."""
        moved = 0
        for place in places if most > 0 else ():
            replicas, of_topic = self.replicas[place], self._of_topic[place[0]]
            if high not in replicas or low in replicas or (keeps_topics and of_topic[high] <= of_topic[low]):
                continue
            if self._keeps_racks(place, high, low):
                self._move(place, high, low)
                moved += 1
                if moved == most:
                    break
        return moved > 0

    def _keeps_racks(self, place: Place, source: int, target: int) -> bool:
        """Whether the move leaves the partition on as many racks."""
        if self._racks[source] == self._racks[target]:
            return True
        others = [self._racks[each] for each in self.replicas[place] if each != source]
        return self._racks[source] in others or self._racks[target] not in others

    def _by_rack(self, place: Place) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for broker in sorted(self.replicas[place]):
            found.setdefault(self._racks[broker], []).append(broker)
        return found

    def _load(self, topic: str, broker: int) -> tuple[int, int, int]:
        return self._of_topic[topic][broker], self._totals[broker], broker

    def _put(self, place: Place, broker: int) -> None:
        self.replicas[place].add(broker)
        self._held[broker][place] = None
        self._totals[broker] += 1
        self._of_topic[place[0]][broker] += 1

    def _move(self, place: Place, source: int, target: int) -> None:
        self.replicas[place].remove(source)
        del self._held[source][place]
        self._totals[source] -= 1
        self._of_topic[place[0]][source] -= 1
        self._put(place, target)


def _all_of(places: Sequence[Place], _broker: int) -> Iterable[Place]:
    return places


def _with_leaders(current: Assignment, chosen: Mapping[Place, set[int]]) -> dict[Place, tuple[int, ...]]:
    """Each partition's replicas in order. The order stays as it was, as far as it does not decide who leads."""
    leaders: dict[Place, int] = {}
    for place, brokers in chosen.items():
        kept = [each for each in current[place] if each in brokers]
        leaders[place] = kept[0] if kept else min(brokers)
    levelled = _Leaders(leaders, chosen)
    levelled.level()
    ordered: dict[Place, tuple[int, ...]] = {}
    for place, brokers in chosen.items():
        kept = [each for each in current[place] if each in brokers]
        rest = [*kept, *sorted(brokers - set(kept))]
        leader = levelled.leaders[place]
        rest.remove(leader)
        ordered[place] = (leader, *rest)
    return ordered


class _Leaders:
    """Who leads each partition, while leaderships are levelled.

    They go along chains of brokers, each of which hands one on to the next, from a broker with many to one with at
    least two fewer. Where no chain is left, the counts are as even as they can be.
    """

    def __init__(self, leaders: Mapping[Place, int], replicas: Mapping[Place, set[int]]) -> None:
        self.leaders = dict(leaders)
        self._replicas = replicas
        brokers = set[int]().union(*replicas.values())
        self._counts = Counter(dict.fromkeys(sorted(brokers), 0))
        # Leader -> other replica -> the partitions.
        self._links: dict[int, dict[int, dict[Place, None]]] = {each: defaultdict(dict) for each in brokers}
        for place, broker in leaders.items():
            self._take(place, broker)

    def level(self) -> None:
        while path := self._chain():
            for source, target in pairwise(path):
                place = next(iter(self._links[source][target]))
                self._counts[source] -= 1
                for other in self._replicas[place] - {source}:
                    del self._links[source][other][place]
                self._take(place, target)

    def _take(self, place: Place, broker: int) -> None:
        self.leaders[place] = broker
        self._counts[broker] += 1
        for other in self._replicas[place] - {broker}:
            self._links[broker][other][place] = None

    def _chain(self) -> list[int] | None:
        for start in sorted(self._counts, key=lambda each: (-self._counts[each], each)):
            came_from: dict[int, int | None] = {start: None}
            waiting = deque([start])
            while waiting:
                at = waiting.popleft()
                if self._counts[start] - self._counts[at] >= 2:
                    return _path_to(at, came_from)
                for other, places in sorted(self._links[at].items()):
                    if places and other not in came_from:
                        came_from[other] = at
                        waiting.append(other)
        return None


def _path_to(end: int, came_from: Mapping[int, int | None]) -> list[int]:
    path = [end]
    while (before := came_from[path[-1]]) is not None:
        path.append(before)
    return path[::-1]
