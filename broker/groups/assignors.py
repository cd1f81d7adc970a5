"""How the coordinator of a consumer group gives partitions to its members (rules G8.1 to G8.9).

An assignor is a function of its arguments alone: members in any order get the same. `range` gives each member a
consecutive range of each topic, so that topics with as many partitions meet at the same member. `uniform` balances
the number of partitions, and moves as few as that allows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heapreplace
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple
from uuid import UUID

from kquorum.wire.consumer_group_records import Target


class AssignedMember(NamedTuple):
    """`topics` are the ids of those that it reads and that exist; `target` is what it was to have until now."""

    member_id: str
    instance_id: str | None
    topics: frozenset[UUID]
    target: Target


Targets = dict[str, Target]
Assignor = Callable[[Sequence[AssignedMember], Mapping[UUID, int]], Targets]
"""The second argument has the number of partitions of each topic. Each member has an entry in the result."""


def assign_range(members: Sequence[AssignedMember], partitions: Mapping[UUID, int]) -> Targets:
    """Static members come first, by instance id: they get the same ranges after a restart."""
    ordered = sorted(
        members, key=lambda each: (each.instance_id is None, each.instance_id or "", each.member_id)
    )
    readers: dict[UUID, list[str]] = {}
    for member in ordered:
        for topic in member.topics:
            readers.setdefault(topic, []).append(member.member_id)
    found: dict[str, dict[UUID, frozenset[int]]] = {member.member_id: {} for member in members}
    for topic in sorted(readers):
        least, more = divmod(partitions[topic], len(readers[topic]))
        start = 0
        for number, member_id in enumerate(readers[topic]):
            end = start + least + (number < more)
            if start < end:
                found[member_id][topic] = frozenset(range(start, end))
            start = end
    return dict(found)


def assign_uniform(members: Sequence[AssignedMember], partitions: Mapping[UUID, int]) -> Targets:
    if not members:
        return {}
    topics = members[0].topics
    if all(member.topics == topics for member in members):
        return _uniform_of_equals(members, topics, partitions)
    return _Balancing(members, partitions).run()


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniform, "range": assign_range}

_Partition = tuple[UUID, int]


def _kept(members: Sequence[AssignedMember], partitions: Mapping[UUID, int]) -> dict[str, list[_Partition]]:
    """What each member had and may keep, in order. Where two had the same, which only the assignor of a classic group
    does, the first has it."""
    taken: set[_Partition] = set()
    kept: dict[str, list[_Partition]] = {}
    for member in members:
        own: list[_Partition] = []
        for topic in sorted(member.target):
            if topic in member.topics:
                count = partitions[topic]
                own += [
                    (topic, each)
                    for each in sorted(member.target[topic])
                    if each < count and (topic, each) not in taken
                ]
        taken.update(own)
        kept[member.member_id] = own
    return kept


def _missing(
    topics: Iterable[UUID], partitions: Mapping[UUID, int], kept: Iterable[Sequence[_Partition]]
) -> list[_Partition]:
    taken = {each for own in kept for each in own}
    return [
        (topic, each)
        for topic in sorted(topics)
        for each in range(partitions[topic])
        if (topic, each) not in taken
    ]


def _targets(owned: Mapping[str, Iterable[_Partition]]) -> Targets:
    found: Targets = {}
    for member_id, own in owned.items():
        by_topic: dict[UUID, list[int]] = {}
        for topic, partition in own:
            by_topic.setdefault(topic, []).append(partition)
        found[member_id] = {topic: frozenset(each) for topic, each in by_topic.items()}
    return found


def _uniform_of_equals(
    members: Sequence[AssignedMember], topics: frozenset[UUID], partitions: Mapping[UUID, int]
) -> Targets:
    """All members read the same topics: no member has more than one partition more than another."""
    ordered = sorted(members, key=lambda each: each.member_id)
    least, extra = divmod(sum(partitions[topic] for topic in topics), len(ordered))
    kept = _kept(ordered, partitions)
    # Members that have one more already keep it, as long as there is one more to have (KAFKA-18688).
    with_more = [member.member_id for member in ordered if len(kept[member.member_id]) > least][:extra]
    left = extra - len(with_more)
    chosen = set(with_more)
    for member in ordered:
        if left and member.member_id not in chosen:
            chosen.add(member.member_id)
            left -= 1
    quota = {member.member_id: least + (member.member_id in chosen) for member in ordered}
    for member_id, own in kept.items():
        del own[quota[member_id] :]
    free = iter(_missing(topics, partitions, kept.values()))
    for member_id, own in kept.items():
        own += [next(free) for _ in range(quota[member_id] - len(own))]
    return _targets(kept)


class _Balancing:
    """Members read different topics. Each free partition goes to the reader with the fewest; then partitions move along
    paths of members from one with many to one with at least two fewer, until no such path is left. That is the most
    even assignment that the subscriptions allow: a matching with the least sum of squares (Harvey, Ladner, Lovász and
    Tamir, Semi-matchings for bipartite graphs and load balancing, 2006).
    """

    def __init__(self, members: Sequence[AssignedMember], partitions: Mapping[UUID, int]) -> None:
        self._members = sorted(members, key=lambda each: each.member_id)
        self._partitions = partitions
        self._readers: dict[UUID, list[str]] = {}
        for member in self._members:
            for topic in member.topics:
                self._readers.setdefault(topic, []).append(member.member_id)
        kept = _kept(self._members, partitions)
        self._missing = _missing(self._readers, partitions, kept.values())
        self._owned: dict[str, dict[UUID, list[int]]] = {}
        self._load: dict[str, int] = {}
        for member_id, own in kept.items():
            by_topic: dict[UUID, list[int]] = {}
            for topic, partition in own:
                by_topic.setdefault(topic, []).append(partition)
            self._owned[member_id] = by_topic
            self._load[member_id] = len(own)

    def run(self) -> Targets:
        missing = sorted(self._missing, key=lambda each: (len(self._readers[each[0]]), each))
        for topic, partitions in groupby(missing, key=itemgetter(0)):
            # While a topic is given out, the loads of its readers change by it alone.
            readers = [(self._load[each], number, each) for number, each in enumerate(self._readers[topic])]
            heapify(readers)
            for _, partition in partitions:
                load, number, reader = readers[0]
                self._give(reader, topic, partition)
                heapreplace(readers, (load + 1, number, reader))
        # A member that no path leads away from stays such a one: later moves only bring members with more closer.
        while path := self._path_of_any():
            for giver, topic, taker in path:
                self._give(taker, topic, self._take(giver, topic))
        return {
            member_id: {topic: frozenset(each) for topic, each in by_topic.items() if each}
            for member_id, by_topic in self._owned.items()
        }

    def _give(self, member_id: str, topic: UUID, partition: int) -> None:
        self._owned[member_id].setdefault(topic, []).append(partition)
        self._load[member_id] += 1

    def _take(self, member_id: str, topic: UUID) -> int:
        self._load[member_id] -= 1
        return self._owned[member_id][topic].pop()

    def _path_of_any(self) -> list[tuple[str, UUID, str]]:
        lightest = min(self._load.values())
        seen: set[str] = set()
        for start in sorted(self._load, key=lambda each: (-self._load[each], each)):
            if self._load[start] - lightest < 2:
                return []
            if start not in seen and (path := self._path_from(start, seen)):
                return path
        return []

    def _path_from(self, start: str, seen: set[str]) -> list[tuple[str, UUID, str]]:
        """Steps that pass a partition of a topic on, from `start` to a member with at least two fewer. `seen` gets the
        members that were tried: from a member with as many or fewer they need not be tried again."""
        most = self._load[start] - 2
        came_by: dict[str, tuple[str, UUID]] = {}
        tried: set[UUID] = set()
        waiting = deque([start])
        seen.add(start)
        while waiting:
            giver = waiting.popleft()
            for topic, own in self._owned[giver].items():
                if not own or topic in tried:
                    continue
                tried.add(topic)
                for taker in self._readers[topic]:
                    if taker in seen:
                        continue
                    seen.add(taker)
                    came_by[taker] = (giver, topic)
                    if self._load[taker] <= most:
                        return _steps(start, taker, came_by)
                    waiting.append(taker)
        return []


def _steps(start: str, end: str, came_by: Mapping[str, tuple[str, UUID]]) -> list[tuple[str, UUID, str]]:
    steps: list[tuple[str, UUID, str]] = []
    while end != start:
        giver, topic = came_by[end]
        steps.append((giver, topic, end))
        end = giver
    return steps[::-1]
