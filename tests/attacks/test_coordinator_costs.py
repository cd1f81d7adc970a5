"""Some bytes of a client do not become seconds of a coordinator, nor gigabytes.

On a running broker one heartbeat of a group with 700 different expressions took 6.5 s of the event loop, and one
OffsetFetch of 8,000 groups with an offset in a transaction each 2.1 s. A DescribeTransactions of 80 KB, which named a
transaction of 1,000 partitions 19,000 times, was answered with 77 MB.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from kquorum.broker.apis import list_groups, transaction_questions
from kquorum.broker.group_figures import GroupCounters
from kquorum.broker.groups import assignors, consumer_protocol, topic_regexes
from kquorum.broker.groups import shard as group_shard
from kquorum.broker.groups.assignors import AssignedMember
from kquorum.broker.groups.offsets import CommittedOffset, OffsetStore, Place
from kquorum.broker.groups.shard import GroupShard
from kquorum.broker.groups.topic_regexes import RegexResolution
from kquorum.broker.log import producer_state
from kquorum.broker.log.producer_state import ProducerStates
from kquorum.broker.replica.partition import TopicPartition
from kquorum.broker.transactions import shard as transaction_shard
from kquorum.network.requests import RequestContext
from kquorum.wire.messages.delete_groups import DeleteGroupsRequest
from kquorum.wire.messages.describe_transactions import DescribeTransactionsRequest
from kquorum.wire.messages.list_groups import ListGroupsRequest
from kquorum.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kquorum.wire.offsets_records import OffsetKey
from kquorum.wire.protocol.headers import RequestHeader
from kquorum.wire.uuids import ZERO_UUID
from tests.support.broker.consumer_world import SESSION_MS, ConsumerWorld
from tests.support.broker.data_world import ORDERS
from tests.support.broker.group_world import GROUP, SETTINGS, GroupWorld, subscription
from tests.support.broker.transaction_world import MINE, PLACE, TransactionWorld
from tests.support.images import LISTENER, image_of, partition_record, topic_records


def test_one_expression_at_a_time_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    compiled = topic_regexes.compiled

    def counted(regex: str) -> Any:
        made.append(regex)
        return compiled(regex)

    monkeypatch.setattr(topic_regexes, "compiled", counted)
    regexes = [f"t{number}.*" for number in range(50)]
    image = image_of(*topic_records(1, "t7", partition_record(1, 0, (1,))))
    resolution = RegexResolution(regexes, image, lambda _topic: True)
    turns = [len(made)]
    while not resolution.advance():
        turns.append(len(made))
    assert max(after - before for before, after in zip([0, *turns], turns, strict=False)) == 1
    assert {regex for regex, found in resolution.result(0).items() if found.topics} == {"t7.*"}


def test_an_expression_that_another_broker_took_and_this_one_does_not_matches_nothing() -> None:
    image = image_of(*topic_records(1, "t7", partition_record(1, 0, (1,))))
    resolution = RegexResolution((r"\pL{1000}", "t.*"), image, lambda _topic: True)
    while not resolution.advance():
        pass
    found = resolution.result(0)
    assert (found[r"\pL{1000}"].topics, found["t.*"].topics) == (frozenset(), {"t7"})


def test_a_group_has_so_many_different_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_protocol, "MOST_REGEXES", 2)
    world = ConsumerWorld()
    world.settings = replace(world.settings, consumer_max_size=10)
    for number in range(2):
        assert world.add(f"m{number}", regex=f"t{number}.*").error_code.name == "none"
    answer = world.add("more", regex="more.*")
    assert answer.error_code.name == "invalid_regular_expression"
    assert "has 2 different expressions already" in answer.error_message
    assert world.add("same", regex="t1.*").error_code.name == "none"


class _Key(OffsetKey):
    """Counts how often a key is looked at."""

    looks = 0

    def __getattribute__(self, name: str) -> Any:
        if name == "group_id":
            _Key.looks += 1
        return super().__getattribute__(name)


def test_the_transactions_of_other_groups_are_not_looked_through() -> None:
    store = OffsetStore()
    found = CommittedOffset(1, 0, "", 0, -1, ZERO_UUID, 5)
    for number in range(200):
        store.set_in_transaction(9, _Key(f"g{number}", ORDERS, 0), found)
    _Key.looks = 0
    assert store.in_transactions("g7") == [Place(ORDERS, 0)]
    assert store.in_transactions("other") == []
    assert _Key.looks == 0
    assert store.is_in_transaction("g7", Place(ORDERS, 0))
    store.end_transaction(9, 6, is_commit=True)
    assert store.in_transactions("g7") == []
    assert store.newest("g7") == {Place(ORDERS, 0): found}


def test_a_transaction_that_is_named_often_is_described_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = TransactionWorld()
    world.add_as_broker(world.producer(), PLACE, TopicPartition(ORDERS, 1))
    answer = world.ask_local(DescribeTransactionsRequest(transactional_ids=(MINE,) * 1_000 + ("other",)))
    assert [each.transactional_id for each in answer.transaction_states] == [MINE, "other"]
    named: list[str] = []
    described = transaction_questions._described

    def noted(access: Any, services: Any, transactional_id: str) -> Any:
        named.append(transactional_id)
        return described(access, services, transactional_id)

    monkeypatch.setattr(transaction_questions, "_described", noted)
    monkeypatch.setattr(transaction_questions, "_IN_A_SLICE", 2)
    request = DescribeTransactionsRequest(transactional_ids=(MINE, "other"))
    context = RequestContext(1, "127.0.0.1", LISTENER, RequestHeader(request.api_key, 0, 1, "c"))
    advance = transaction_questions.begin_describe(context, request, world.services)
    assert (advance(), named) == (None, [MINE])
    assert advance() is not None


def test_verifications_of_a_partition_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Producer ids that a client made up stay as long as those of producers that are silent: a day."""
    monkeypatch.setattr(producer_state, "MOST_PRODUCERS", 3)
    states = ProducerStates(verifies_transactions=True)

    def guard(producer_id: int) -> object:
        return states.start_verification(producer_id, sequence=0, epoch=0, supports_epoch_bump=True, now_ms=0)

    first, *_, last = [guard(producer_id) for producer_id in range(4)]
    assert guard(3) is last
    assert guard(0) is not first


def test_ids_in_a_description_count_by_their_length(monkeypatch: pytest.MonkeyPatch) -> None:
    world = TransactionWorld()
    monkeypatch.setattr(transaction_questions, "_IN_A_SLICE", 100)
    ids = tuple(f"{number}" + "x" * 32_000 for number in range(5))
    request = DescribeTransactionsRequest(transactional_ids=ids)
    advance = transaction_questions.begin_describe(_context(request), request, world.services)
    assert [advance() is None for _ in range(6)] == [True] * 5 + [False]


def _context(request: Any) -> RequestContext:
    return RequestContext(1, "127.0.0.1", LISTENER, RequestHeader(request.api_key, 0, 1, "c"))


def _steps_of(world: GroupWorld, request: Any, version: int) -> int:
    """In how many steps the request is done, between which the node can go on."""
    run = world.plane.slices.run
    taken: list[int] = []

    def counted(steps: Iterator[object], *arguments: Any, **more: Any) -> None:
        listed = list(steps)
        taken.append(len(listed))
        run(iter(listed), *arguments, **more)

    world.plane.slices.run = counted  # type: ignore[method-assign]
    world.ask(request, version)
    [number] = taken
    return number


def test_offsets_of_many_groups_are_fetched_group_by_group() -> None:
    groups = tuple(OffsetFetchRequestGroup(group_id=f"g{number}", topics=None) for number in range(50))
    assert _steps_of(GroupWorld(), OffsetFetchRequest(groups=groups), 9) == 50


def test_many_groups_are_deleted_in_slices() -> None:
    world = GroupWorld()
    for number in range(250):
        world.commit(1, group_id=f"g{number}")
    names = tuple(f"g{number}" for number in range(250))
    assert _steps_of(world, DeleteGroupsRequest(groups_names=names), 2) == 3
    assert not any(shard.groups for shard in world.groups.active())


def test_groups_are_listed_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    world = GroupWorld()
    for number in range(7):
        world.commit(1, group_id=f"g{number}")
    monkeypatch.setattr(list_groups, "_IN_A_SLICE", 3)
    request = ListGroupsRequest()
    advance = list_groups.begin_list_groups(_context(request), request, world.services)
    assert [advance() is None for _ in range(2)] == [True, True]
    # It is gone before it is listed: the last of the other partition.
    world.ask(DeleteGroupsRequest(groups_names=("g6",)))
    assert advance() is not None
    assert {each.group_id for each in world.ask_local(request).groups} == {f"g{each}" for each in range(6)}


def _neighbours(world: GroupWorld, number: int) -> list[str]:
    """Groups of one partition."""
    found = [name for name in map(str, range(10 * number)) if world.groups.partition_of(name) == 0]
    return found[:number]


def test_a_partition_is_loaded_a_little_at_a_time() -> None:
    """Of small records 256 KiB took 30 ms and more of the event loop."""
    world = GroupWorld(settings=replace(SETTINGS, load_buffer_bytes=5_000_000))
    name = _neighbours(world, 1)[0]
    for number in range(1_000):
        world.commit(number, group_id=name)
    partition = world.offsets_partition(name)
    shard = GroupShard(
        partition, lambda: world.settings, world.new_id, world.groups.topics, world.timings, GroupCounters()
    )
    steps = 0
    while shard.has_work:
        shard.work_some(world.now_ms)
        steps += 1
    assert shard.offsets.newest(name)[Place(ORDERS, 0)].offset == 999
    assert steps > partition.log.size_bytes // (64 * 1024)


def test_offsets_expire_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_shard, "_LOOKED_AT_ONCE", 4)
    world = GroupWorld()
    names = _neighbours(world, 6)
    for index in (0, 1):
        for name in names:
            world.commit(1, group_id=name, index=index)
    shard = world.shard(names[0])
    shard.expire_offsets(world.now_ms + world.settings.retention_ms)
    left = [shard.offsets.count]
    while shard.has_work:
        shard.work_some(world.now_ms)
        left.append(shard.offsets.count)
    assert left[0] == 12
    assert max(before - after for before, after in pairwise(left)) <= 4
    assert (left[-1], shard.groups) == (0, {})


def test_offsets_of_a_deleted_topic_go_in_slices_and_those_of_the_next_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_shard, "_LOOKED_AT_ONCE", 2)
    world = GroupWorld()
    names = _neighbours(world, 4)
    for name in names:
        world.commit(1, group_id=name)
    shard = world.shard(names[0])
    shard.forget_topics(world.now_ms, {ORDERS})
    shard.work_some(world.now_ms)
    # The other topic of this name has commits before the offsets of the first are all gone.
    monkeypatch.setattr(world.groups, "load_some", lambda _now_ms: False)
    world.commit(9, group_id=names[3])
    while shard.has_work:
        shard.work_some(world.now_ms)
    assert [world.committed(name) for name in names] == [{}, {}, {}, {(ORDERS, 0): 9}]


def test_a_group_has_so_many_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_protocol, "MOST_MEMBERS", 2)
    world = ConsumerWorld()
    assert [world.add(each).error_code.name for each in ("m0", "m1", "m2")] == [
        "none",
        "none",
        "group_max_size_reached",
    ]
    assert world.add("m1").error_code.name == "none"


def test_partitions_are_given_to_the_readers_of_a_topic_without_looking_at_all_of_them() -> None:
    """10,000 members with different subscriptions took 0.2 s for 1,000 partitions."""

    class Load(dict[str, int]):
        looks = 0

        def __getitem__(self, key: str) -> int:
            Load.looks += 1
            return super().__getitem__(key)

    topics = [UUID(int=1), UUID(int=2)]
    members = [
        AssignedMember(f"m{number:03}", None, frozenset(topics[: 1 + number % 2]), {})
        for number in range(200)
    ]
    balancing = assignors._Balancing(members, {topics[0]: 200, topics[1]: 200})
    balancing._load = Load(balancing._load)
    targets = balancing.run()
    assert Load.looks < 200 * 2 + 400 * 2 + 200 * 4
    assert {sum(map(len, target.values())) for target in targets.values()} == {2}


def test_a_member_names_so_many_topics() -> None:
    world = ConsumerWorld()
    most = consumer_protocol.MOST_TOPICS_OF_MEMBER
    assert world.add("most", topics=[f"t{number}" for number in range(most)]).error_code.name == "none"
    refused = world.add("more", topics=[f"t{number}" for number in range(most + 1)])
    assert refused.error_code.name == "invalid_request"
    assert refused.error_message == (
        f"A member subscribes to {most} topics by name at most, this one to {most + 1}. Use a regular expression."
    )
    names = tuple(f"t{number}" for number in range(most + 1))
    classic = world.join(version=3, protocols=(("range", subscription(*names)),)).answer
    assert classic.error_code.name == "invalid_request"


def test_transactional_ids_of_a_partition_are_bounded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = TransactionWorld()
    world.txn_settings = replace(world.txn_settings, expiration_ms=60_000, expiration_check_ms=60_000)
    world.producer()
    shard = world.txn_shard()
    others = [name for name in map(str, range(20)) if world.transactions.shard_of(name) is shard][:3]
    monkeypatch.setattr(transaction_shard, "MOST_BYTES", shard._held_bytes + 501)
    assert world.init(others[0]).error_code.name == "none"
    with caplog.at_level("WARNING", "broker.transactions"):
        assert [world.init(each).error_code.name for each in others[1:]] == ["policy_violation"] * 2
    assert len(caplog.records) == 1
    assert "transactional.id.expiration.ms" in caplog.text
    assert world.init().error_code.name == "none"
    # What is forgotten makes room.
    world.pass_time(3_600_000 + 60_000)
    assert shard.count == 0
    assert world.init(others[1]).error_code.name == "none"


def test_what_consumer_groups_hold_is_a_running_total() -> None:
    world = ConsumerWorld()
    for number in range(6):
        world.add(f"m{number}", group_id=f"g{2 * number}", topics=[f"t{each}" for each in range(number)])
    world.heartbeat("m3", -1, group_id="g6")
    assert world.delete("g6") == "none"
    world.add("m2", group_id="g4", topics=["other"])

    def totals() -> list[tuple[int, int]]:
        return [
            (shard.held_by_consumers.total, sum(each.held_bytes for each in shard.consumers.values()))
            for shard in world.groups.active()
        ]

    assert all(total == held for total, held in totals())
    assert any(total for total, _ in totals())
    world.fail_over()
    assert all(total == held for total, held in totals())
    for group in world.shard("g0").consumers.values():
        # Not looked at by a join of another group.
        group.held_bytes = 1 << 40
    assert world.add("more", group_id="other").error_code.name == "none"


def test_members_that_are_removed_together_take_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    world = ConsumerWorld()
    world.settings = replace(world.settings, consumer_max_size=100)
    for number in range(20):
        world.add(f"m{number}")
    with caplog.at_level("INFO", "broker.groups"):
        world.pass_time(SESSION_MS)
    lines = [each.getMessage() for each in caplog.records if "removed" in each.getMessage()]
    assert not world.shard().consumers[GROUP].members
    assert lines == [
        "__consumer_offsets-0: removed "
        + ", ".join(f"member m{number} of group foo (its session ended)" for number in range(5))
        + " and 15 other members"
    ]
