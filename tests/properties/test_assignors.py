"""The assignors of consumer groups, for all members, topics and assignments before."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquorum.broker.groups.assignors import (
    ASSIGNORS,
    AssignedMember,
    Targets,
    assign_range,
    assign_uniform,
)
from kquorum.wire.consumer_group_records import Target

TOPICS = [UUID(int=number) for number in range(1, 6)]
Moved = Mapping[str, Target]


@dataclass(frozen=True)
class Group:
    members: tuple[AssignedMember, ...]
    partitions: dict[UUID, int]


@st.composite
def groups(draw: st.DrawFn, *, is_even: bool = False) -> Group:
    """Targets before are anything: of topics that are not read any more, beyond the partitions, held twice."""
    topics = draw(st.lists(st.sampled_from(TOPICS), unique=True, max_size=5))
    partitions = {topic: draw(st.integers(0, 9)) for topic in topics}
    some_topics = st.frozensets(st.sampled_from(topics)) if topics else st.just(frozenset())
    shared = draw(some_topics)
    members = []
    for number in range(draw(st.integers(1, 7))):
        before = draw(st.dictionaries(st.sampled_from(TOPICS), st.frozensets(st.integers(0, 10), max_size=6)))
        instance_id = draw(st.none() | st.just(f"i-{number}"))
        read = shared if is_even else draw(some_topics)
        members.append(AssignedMember(f"m-{number}", instance_id, read, before))
    return Group(tuple(members), partitions)


def owners(targets: Targets) -> Counter[tuple[UUID, int]]:
    return Counter(
        (topic, partition)
        for target in targets.values()
        for topic, partitions in target.items()
        for partition in partitions
    )


def loads(targets: Targets) -> dict[str, int]:
    return {member_id: sum(map(len, target.values())) for member_id, target in targets.items()}


def with_targets(group: Group, targets: Targets) -> list[AssignedMember]:
    return [member._replace(target=targets[member.member_id]) for member in group.members]


@pytest.mark.parametrize("name", ASSIGNORS)
@settings(max_examples=30)
@given(group=groups())
def test_each_partition_that_is_read_has_one_reader(name: str, group: Group) -> None:
    targets = ASSIGNORS[name](group.members, group.partitions)
    assert set(targets) == {member.member_id for member in group.members}
    for member in group.members:
        assert set(targets[member.member_id]) <= member.topics
        assert all(targets[member.member_id].values())
    read = {topic for member in group.members for topic in member.topics}
    assert owners(targets) == Counter(
        (topic, index) for topic in read for index in range(group.partitions[topic])
    )


@pytest.mark.parametrize("name", ASSIGNORS)
@settings(max_examples=30)
@given(group=groups(), data=st.data())
def test_the_order_of_the_members_does_not_count(name: str, group: Group, data: st.DataObject) -> None:
    turned = data.draw(st.permutations(group.members))
    assign = ASSIGNORS[name]
    assert assign(turned, group.partitions) == assign(group.members, group.partitions)


@settings(max_examples=30)
@given(groups())
def test_range_gives_consecutive_ranges_that_differ_by_one_at_most(group: Group) -> None:
    targets = assign_range(group.members, group.partitions)
    for topic in group.partitions:
        readers = [member for member in group.members if topic in member.topics]
        parts = [sorted(targets[member.member_id].get(topic, ())) for member in readers]
        for part in parts:
            assert not part or part == list(range(part[0], part[-1] + 1))
        sizes = [len(part) for part in parts]
        assert not sizes or max(sizes) - min(sizes) <= 1


@settings(max_examples=30)
@given(groups(is_even=True))
def test_range_puts_the_same_partitions_of_equal_topics_together(group: Group) -> None:
    even = dict.fromkeys(group.partitions, 4)
    for target in assign_range(group.members, even).values():
        assert len({frozenset(partitions) for partitions in target.values()}) <= 1


@settings(max_examples=30)
@given(groups())
def test_range_counts_static_members_first(group: Group) -> None:
    targets = assign_range(group.members, group.partitions)
    for topic, count in group.partitions.items():
        readers = [member for member in group.members if topic in member.topics]
        static = [member for member in readers if member.instance_id is not None]
        if count and static:
            first = min(static, key=lambda member: member.instance_id or "")
            assert 0 in targets[first.member_id][topic]


@settings(max_examples=30)
@given(groups(is_even=True))
def test_uniform_of_equal_readers_is_even(group: Group) -> None:
    sizes = loads(assign_uniform(group.members, group.partitions)).values()
    assert max(sizes) - min(sizes) <= 1


@settings(max_examples=30)
@given(groups(is_even=True))
def test_uniform_moves_no_more_than_the_balance_asks_for(group: Group) -> None:
    """A member keeps what it had, up to one more than the least share if it is one of those with one more."""
    first = assign_uniform(group.members, group.partitions)
    total, count = sum(loads(first).values()), len(group.members)
    kept_before = _kept(group.members, group.partitions)
    least, extra = divmod(total, count)
    with_more = sum(len(own) > least for own in kept_before.values())
    most_kept = sum(min(len(own), least) for own in kept_before.values()) + min(with_more, extra)
    kept = sum(
        len(own & {(topic, each) for topic, part in first[member_id].items() for each in part})
        for member_id, own in kept_before.items()
    )
    assert kept == most_kept


def _kept(
    members: Sequence[AssignedMember], partitions: Mapping[UUID, int]
) -> dict[str, set[tuple[UUID, int]]]:
    taken: set[tuple[UUID, int]] = set()
    kept: dict[str, set[tuple[UUID, int]]] = {}
    for member in sorted(members, key=lambda each: each.member_id):
        own = {
            (topic, index)
            for topic in member.topics
            for index in member.target.get(topic, ())
            if index < partitions[topic]
        } - taken
        taken |= own
        kept[member.member_id] = own
    return kept


@settings(max_examples=30)
@given(groups())
def test_uniform_leaves_no_way_to_a_more_even_assignment(group: Group) -> None:
    """From no member a chain of partitions leads to one with at least two fewer (of each link the taker reads the
    topic)."""
    targets = assign_uniform(group.members, group.partitions)
    load = loads(targets)
    readers = {
        topic: [member.member_id for member in group.members if topic in member.topics]
        for topic in group.partitions
    }
    for start in load:
        reached, waiting = {start}, deque([start])
        while waiting:
            giver = waiting.popleft()
            for topic in targets[giver]:
                for taker in readers[topic]:
                    if taker not in reached:
                        reached.add(taker)
                        waiting.append(taker)
        assert all(load[start] - load[each] < 2 for each in reached)


@settings(max_examples=30)
@given(groups())
def test_uniform_moves_nothing_when_nothing_changed(group: Group) -> None:
    first = assign_uniform(group.members, group.partitions)
    assert assign_uniform(with_targets(group, first), group.partitions) == first


@settings(max_examples=30)
@given(groups())
def test_uniform_moves_nothing_among_those_who_stay_but_to_those_who_come(group: Group) -> None:
    """When the last member leaves, the others keep what they have."""
    first = assign_uniform(group.members, group.partitions)
    staying = [member for member in with_targets(group, first) if member.member_id != "m-0"]
    if not staying or len({member.topics for member in staying}) > 1:
        return
    second = assign_uniform(staying, group.partitions)
    for member in staying:
        for topic, partitions in first[member.member_id].items():
            assert partitions <= second[member.member_id].get(topic, frozenset())
