"""Members that subscribe with a regular expression, by Kafka's behaviours (KIP-848)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kquorum.broker.groups.group_errors import GroupError
from kquorum.broker.groups.topic_regexes import RegexResolution, check_regex
from kquorum.metadata.authorizer.gate import RequestAuthorizer
from tests.support.broker.consumer_world import INTERVAL_MS, ClientMember, ConsumerWorld, converge
from tests.support.broker.data_world import ORDERS, ORDERS_ID
from tests.support.broker.group_world import GROUP
from tests.support.images import image_of, partition_record, topic_id, topic_records

PAUSE_MS = 10_001


def everything(_topic: str) -> bool:
    return True


def resolved(world: ConsumerWorld) -> dict[str, set[str]]:
    return {regex: set(found.topics) for regex, found in world.shard().consumers[GROUP].resolved.items()}


def member(world: ConsumerWorld, regex: str = "ord.*", member_id: str = "m") -> ClientMember:
    return ClientMember(world, member_id, topics=None, regex=regex)


@pytest.mark.parametrize("regex", ["(", "a{2,1}", "(?=a)", r"(a)\1", "(?<=a)b", "a++b", "x{1001}"])
def test_what_re2_does_not_know_is_refused(regex: str) -> None:
    with pytest.raises(GroupError, match="not a valid regular expression"):
        check_regex(regex)
    world = ConsumerWorld()
    answer = world.add("m", regex=regex)
    assert answer.error_code.name == "invalid_regular_expression"
    assert world.kinds() == []


def test_an_expression_that_takes_other_engines_for_ever_takes_this_one_no_time() -> None:
    check_regex("(a*)*b")
    image = image_of(*topic_records(1, "a" * 249, partition_record(1, 0, (1,))))
    resolution = RegexResolution(("(a*)*b",), image, everything)
    while not resolution.advance():
        pass
    assert resolution.result(5)["(a*)*b"].topics == frozenset()


def test_the_whole_name_matches() -> None:
    image = image_of(
        *(
            record
            for number, name in enumerate(("order", "orders", "reorder"), 1)
            for record in topic_records(number, name, partition_record(number, 0, (1,)))
        )
    )
    resolution = RegexResolution(("order", "order.*"), image, lambda name: name != "orders")
    while not resolution.advance():
        pass
    found = resolution.result(5)
    assert found["order"].topics == found["order.*"].topics == {"order"}
    assert (found["order"].version, found["order"].timestamp_ms) == (image.end_offset - 1, 5)


def test_a_member_gets_partitions_when_its_expression_is_resolved() -> None:
    world = ConsumerWorld()
    mine = member(world)
    assert mine.beat() == "none"
    assert mine.owned == {}
    assert world.kinds() == [
        "MEMBER_METADATA",
        "CURRENT_MEMBER_ASSIGNMENT",
        "REGULAR_EXPRESSION",
        "METADATA",
    ]
    assert resolved(world) == {"ord.*": {ORDERS}}
    converge(world, mine)
    assert mine.orders() == {0, 1, 2, 3}


def test_a_known_expression_is_not_resolved_again() -> None:
    world = ConsumerWorld()
    first, second = member(world), member(world, member_id="n")
    converge(world, first)
    before = world.count()
    world.pass_time(INTERVAL_MS)
    second.beat()
    assert "REGULAR_EXPRESSION" not in world.kinds(before)
    converge(world, first, second)
    assert len(first.orders()) == len(second.orders()) == 2


def test_topics_that_are_created_later_are_found_after_a_pause() -> None:
    world = ConsumerWorld()
    mine = member(world)
    converge(world, mine)
    world.create_topic(12, "ordinary", 2)
    mine.beat()
    assert resolved(world) == {"ord.*": {ORDERS}}
    world.pass_time(PAUSE_MS)
    mine.beat()
    assert resolved(world) == {"ord.*": {ORDERS, "ordinary"}}
    converge(world, mine)
    assert mine.owned[topic_id(12)] == {0, 1}


def test_new_partitions_of_a_matching_topic_are_found() -> None:
    """KAFKA-18916."""
    world = ConsumerWorld()
    mine = member(world)
    converge(world, mine)
    world.change(partition_record(1, 4, (1, 2)))
    converge(world, mine)
    assert mine.orders() == {0, 1, 2, 3, 4}


def test_names_and_an_expression_are_one_subscription() -> None:
    world = ConsumerWorld()
    world.create_topic(12, "more")
    mine = ClientMember(world, "m", topics=("more",), regex="ord.*")
    converge(world, mine)
    assert set(mine.owned) == {ORDERS_ID, topic_id(12)}


def test_another_expression_takes_the_place_of_the_first() -> None:
    world = ConsumerWorld()
    world.create_topic(12, "more")
    mine = member(world)
    converge(world, mine)
    before = world.count()
    world.pass_time(PAUSE_MS)
    answer = world.heartbeat("m", mine.epoch, regex="mo.*", owned=mine.owned).answer
    assert answer.error_code.name == "none"
    assert "-REGULAR_EXPRESSION" in world.kinds(before)
    assert resolved(world) == {"mo.*": {"more"}}


def test_without_its_expression_a_member_gives_up_its_topics() -> None:
    """KAFKA-19891: another epoch begins at once."""
    world = ConsumerWorld()
    mine = member(world)
    converge(world, mine)
    epoch, before = mine.epoch, world.count()
    world.pass_time(INTERVAL_MS)
    answer = world.heartbeat("m", epoch, regex="", owned=mine.owned).answer
    assert answer.assignment.topic_partitions == ()
    assert "-REGULAR_EXPRESSION" in world.kinds(before)
    assert world.state()[1] == epoch + 1
    assert resolved(world) == {}


@pytest.mark.parametrize(
    "end",
    [
        lambda world: world.heartbeat("m", -1),
        lambda world: world.pass_time(45_000),
        lambda world: world.leave(("m", None)),
    ],
    ids=["leaves", "session ends", "removed by an administrator"],
)
def test_the_last_member_takes_its_expression_along(end: Callable[[ConsumerWorld], Any]) -> None:
    world = ConsumerWorld()
    converge(world, member(world))
    before = world.count()
    end(world)
    assert "-REGULAR_EXPRESSION" in world.kinds(before)
    assert resolved(world) == {}
    assert world.state()[0] == "Empty"


def test_a_result_for_an_expression_without_members_counts_for_nothing() -> None:
    world = ConsumerWorld()
    mine = member(world)
    converge(world, mine)
    shard = world.shard()
    stale = RegexResolution(("gone.*",), world.image, everything)
    before = world.count()
    shard.begin_resolution(GROUP, stale)
    world.settle()
    assert world.count() == before


def test_topics_that_the_member_may_not_describe_are_left_out_until_it_may() -> None:
    """KAFKA-18961: changed rights are seen after the refresh interval."""
    world = ConsumerWorld()
    world.create_topic(12, "ordinary")
    hidden = {"ordinary"}

    class Access:
        is_unlimited = False

        def allows(self, *_: object, **__: object) -> bool:
            return True

        def allows_on_topic(self, _operation: object, name: str, **_: object) -> bool:
            return name not in hidden

    class Authorizer(RequestAuthorizer):
        def access(self, *_: object) -> Any:
            return Access()

    world.services = replace(world.services, authorizer=Authorizer(None))
    mine = member(world)
    converge(world, mine)
    assert resolved(world) == {"ord.*": {ORDERS}}
    hidden.clear()
    world.pass_time(PAUSE_MS)
    mine.beat()
    assert resolved(world) == {"ord.*": {ORDERS}}
    for _ in range(world.settings.consumer_regex_refresh_ms // 40_000 + 1):
        world.pass_time(40_000)
        mine.beat()
    assert resolved(world) == {"ord.*": {ORDERS, "ordinary"}}


def test_expressions_survive_a_fail_over() -> None:
    world = ConsumerWorld()
    mine = member(world)
    converge(world, mine)
    world.fail_over()
    assert resolved(world) == {"ord.*": {ORDERS}}
    world.change(partition_record(1, 4, (1, 2)))
    world.pass_time(PAUSE_MS)
    converge(world, mine)
    assert mine.orders() == {0, 1, 2, 3, 4}


def test_one_part_of_the_topics_in_each_turn() -> None:
    topics = [
        record
        for number in range(1, 2_500)
        for record in topic_records(number, f"t-{number}", partition_record(number, 0, (1,)))
    ]
    resolution = RegexResolution(("t-1.*",), image_of(*topics), everything)
    turns = 1
    while not resolution.advance():
        turns += 1
    assert turns >= 3
    assert len(resolution.result(0)["t-1.*"].topics) == 1_111
