"""What brokers remember of clients: members of groups with their metadata, and producers by ids that they choose."""

import pytest

from kquorum.broker.groups import classic_group, classic_protocol
from kquorum.broker.groups.classic_group import subscription_of
from kquorum.broker.log import producer_state
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.support.broker.data_world import Asked, DataWorld
from tests.support.broker.disk_logs import data
from tests.support.broker.group_world import GroupWorld, subscription


def join(
    world: GroupWorld, size: int, *, group_id: str = "g", member_id: str = "", version: int = 3
) -> Asked:
    protocols = (JoinGroupRequestProtocol(name="range", metadata=bytes(size)),)
    request = JoinGroupRequest(
        group_id=group_id,
        member_id=member_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="x",
        protocols=protocols,
    )
    return world.ask(request, version)


def test_members_of_a_group_have_a_bound_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before: ten joins of 15 MB took 380 MB for five minutes, whether their connections stayed or not."""
    monkeypatch.setattr(classic_protocol, "MOST_OF_GROUP_BYTES", 20_000)
    world = GroupWorld()
    first = join(world, 10_000)
    refused = join(world, 10_000)
    assert refused.answer.error_code is ErrorCode.group_max_size_reached
    assert (first.is_waiting, join(world, 10_000, group_id="h").is_waiting) == (True, True)
    assert join(world, 1_000).is_waiting
    world.pass_time(6_000)
    member_id = first.answer.member_id
    # It joins again with as much: that is no more than before.
    again = join(world, 10_000, member_id=member_id)
    assert again.raw == [] or again.answer.error_code is ErrorCode.none
    more = join(world, 19_000, member_id=member_id)
    assert more.answer.error_code is ErrorCode.group_max_size_reached


def test_all_members_have_a_bound_in_memory_that_is_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classic_protocol, "MOST_BYTES", 40_000)
    world = GroupWorld()
    ids = [f"g{number}" for number in range(40)]
    answers = [join(world, 10_000, group_id=group_id) for group_id in ids]
    refused = [each.raw and each.answer.error_code is ErrorCode.group_max_size_reached for each in answers]
    # Three in each of the two partitions.
    assert refused.count(True) == 34
    # No heartbeat comes: all members go, and make room.
    world.pass_time(600_000)
    assert join(world, 10_000, group_id=ids[-1]).is_waiting


def test_ids_that_were_handed_out_count_too() -> None:
    world = GroupWorld()
    for _ in range(3):
        assert join(world, 0, version=4).answer.error_code is ErrorCode.member_id_required
    [group] = [group for shard in world.groups.shards.values() for group in shard.groups.values()]
    assert group.held_bytes >= 3 * len("a client")
    world.pass_time(20_000)
    assert group.held_bytes == 0


def test_a_subscription_of_millions_of_topics_is_not_read() -> None:
    """Before: 0.6 s for five million, in each rebalance."""
    assert subscription_of(subscription("a", "b"), 2) == ("a", "b")
    assert subscription_of(subscription("a", "b"), 1) is None


def test_the_topics_of_all_members_together_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classic_group, "_MOST_TOPICS", 3)
    group = classic_group.ClassicGroup("g")
    for number in range(2):
        protocols = (("range", subscription("a", "b")),)
        member = classic_group.Member(str(number), None, "c", "h", 1_000, 1_000, protocols)
        group.add(member, classic_group.CONSUMER)
    group.protocol = "range"
    group.learn_subscriptions()
    assert group.subscribed is None
    group.remove("1")
    group.learn_subscriptions()
    assert group.subscribed == {"a", "b"}


def test_a_log_remembers_the_producers_that_wrote_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before: each id that a client makes up took 500 bytes for a day, without a bound."""
    monkeypatch.setattr(producer_state, "MOST_PRODUCERS", 3)
    world = DataWorld()

    def write(producer_id: int, sequence: int, **how: bool) -> None:
        batch = data("x", producer_id=producer_id, producer_epoch=0, base_sequence=sequence, **how)
        world.partition().append(world.now_ms, batch, required_acks=1)

    for producer_id in (1, 2, 3):
        write(producer_id, 0)
    write(1, 1)
    write(4, 0)
    known = {each.producer_id for each in world.partition().log.active_producers(10)}
    assert known == {1, 3, 4}


def test_a_producer_with_a_transaction_is_never_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_state, "MOST_PRODUCERS", 2)
    world = DataWorld()
    for producer_id in (1, 2, 3, 4):
        batch = data(
            "x", producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=producer_id == 1
        )
        world.partition().append(world.now_ms, batch, required_acks=1)
    assert {each.producer_id for each in world.partition().log.active_producers(10)} == {1, 4}
