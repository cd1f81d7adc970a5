"""The consumer protocol (KIP-848): joining, reconciliation, fencing, static members, by Kafka's behaviours."""

from dataclasses import replace
from typing import Any

import pytest

from kquorum.broker.groups import consumer_protocol
from kquorum.broker.groups.consumer_group import MemberState
from kquorum.metadata.image.configs import GROUP as GROUP_CONFIG
from kquorum.wire.messages.list_groups import ListGroupsRequest
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.features import FeatureLevelRecord
from kquorum.wire.metadata_records.topics import RemoveTopicRecord
from tests.support.broker.consumer_world import (
    INTERVAL_MS,
    REBALANCE_MS,
    SESSION_MS,
    ClientMember,
    ConsumerWorld,
    converge,
)
from tests.support.broker.data_world import ORDERS, ORDERS_ID
from tests.support.broker.group_world import GROUP, SETTINGS, error_of_commit
from tests.support.images import partition_record, topic_id

ALL = {0, 1, 2, 3}


def assigned(answer: Any) -> set[int] | None:
    if answer.assignment is None:
        return None
    return {each for topic in answer.assignment.topic_partitions for each in topic.partitions}


def two_members() -> tuple[ConsumerWorld, ClientMember, ClientMember]:
    world = ConsumerWorld()
    first, second = ClientMember(world, "first"), ClientMember(world, "second")
    assert first.beat() == "none"
    converge(world, first, second)
    return world, first, second


class TestRequests:
    @pytest.mark.parametrize(
        ("member_id", "epoch", "fields"),
        [
            ("", 0, {"rebalance_ms": 5, "topics": (), "owned": {}}),
            (" ", 0, {"rebalance_ms": 5, "topics": (), "owned": {}}),
            ("", 5, {"version": 0}),
            ("", -1, {"version": 0}),
            ("m", 0, {"topics": (), "owned": {}}),
            ("m", 0, {"rebalance_ms": 5, "topics": ()}),
            ("m", 0, {"rebalance_ms": 5, "topics": (), "owned": {ORDERS_ID: {0}}}),
            ("m", 0, {"rebalance_ms": 5, "owned": {}}),
            ("m", -2, {}),
            ("m", -3, {}),
            ("m", 1, {"instance_id": " "}),
            ("m", 1, {"rack_id": ""}),
            ("m", 1, {"group_id": ""}),
            ("m", 1, {"group_id": "  "}),
        ],
    )
    def test_what_is_invalid(self, member_id: str, epoch: int, fields: dict[str, Any]) -> None:
        world = ConsumerWorld()
        assert world.error(member_id, epoch, **fields) == "invalid_request"
        assert world.kinds() == []

    def test_an_assignor_that_is_not_offered(self) -> None:
        world = ConsumerWorld()
        answer = world.add("m", assignor="sticky")
        assert answer.error_code.name == "unsupported_assignor"
        assert answer.error_message is not None
        assert "uniform, range" in answer.error_message

    def test_without_the_feature_or_the_protocol(self) -> None:
        world = ConsumerWorld()
        world.settings = replace(SETTINGS, protocols=frozenset({"classic"}))
        assert world.add("m").error_code.name == "unsupported_version"
        assert world.describe().error_code.name == "unsupported_version"
        world.settings = SETTINGS
        world.change(FeatureLevelRecord(name="group.version", feature_level=0))
        assert world.add("m").error_code.name == "unsupported_version"

    def test_before_version_1_the_coordinator_makes_the_id(self) -> None:
        world = ConsumerWorld()
        answer = world.add("", version=0)
        assert answer.error_code.name == "none"
        assert answer.member_id
        assert world.error(answer.member_id, answer.member_epoch, version=0) == "none"

    def test_unknown_groups_and_members(self) -> None:
        world = ConsumerWorld()
        assert world.error("m", 3) == "group_id_not_found"
        assert world.error("m", -1) == "group_id_not_found"
        world.add("m")
        assert world.error("other", 3) == "unknown_member_id"
        assert world.error("other", -1) == "unknown_member_id"
        assert world.error("m", 2, instance_id="i") == "unknown_member_id"

    def test_a_full_group_takes_no_more_and_members_go_on(self) -> None:
        world = ConsumerWorld()
        world.settings = replace(SETTINGS, consumer_max_size=1)
        answer = world.add("m")
        assert world.add("other").error_code.name == "group_max_size_reached"
        assert world.error("m", answer.member_epoch) == "none"

    def test_members_with_forged_ids_are_refused_without_memory(self) -> None:
        world = ConsumerWorld()
        world.add("m")
        world.settings = replace(SETTINGS, consumer_max_size=1)
        before = world.count(), len(world.shard().timers)
        for number in range(1_000):
            assert world.error(f"forged-{number}", 7) in ("unknown_member_id", "group_max_size_reached")
        assert (world.count(), len(world.shard().timers)) == before
        assert world.shard().consumers[GROUP].members.keys() == {"m"}

    def test_members_have_a_bound_in_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        world = ConsumerWorld()
        epoch = world.add("m").member_epoch
        held = world.shard().consumers[GROUP].held_bytes
        monkeypatch.setattr(consumer_protocol, "MOST_OF_GROUP_BYTES", 2 * held)
        topics = [f"{number}-{ORDERS}" for number in range(20)]
        assert world.add("large", topics=topics).error_code.name == "group_max_size_reached"
        assert world.error("m", epoch, topics=topics) == "group_max_size_reached"
        assert world.error("m", epoch) == "none"
        world.heartbeat("m", -1)
        assert world.shard().consumers[GROUP].held_bytes == 0
        monkeypatch.setattr(consumer_protocol, "MOST_BYTES", held // 2)
        assert world.add("m", group_id="other").error_code.name in ("none", "group_max_size_reached")
        assert world.add("m").error_code.name == "group_max_size_reached"


class TestJoining:
    def test_the_records_of_the_first_member_in_order(self) -> None:
        world = ConsumerWorld()
        answer = world.add("m")
        assert (answer.member_epoch, answer.heartbeat_interval_ms) == (2, 5_000)
        assert assigned(answer) == ALL
        assert world.kinds() == [
            "MEMBER_METADATA",
            "METADATA",
            "TARGET_ASSIGNMENT_MEMBER",
            "TARGET_ASSIGNMENT_METADATA",
            "CURRENT_MEMBER_ASSIGNMENT",
        ]
        assert len({record.timestamp_ms for record in world.records()}) == 1
        assert world.state() == ("Stable", 2, 2)

    def test_the_answer_waits_for_the_replicas(self) -> None:
        world = ConsumerWorld(has_follower=True)
        asked = world.heartbeat("m", 0, topics=(ORDERS,), owned={}, rebalance_ms=REBALANCE_MS)
        assert asked.is_waiting
        assert world.describe().error_code.name == "group_id_not_found"
        assert world.ask_local(ListGroupsRequest()).groups == ()
        world.follow()
        assert asked.answer.member_epoch == 2
        assert world.describe().group_state == "Stable"

    def test_a_heartbeat_without_news_waits_for_what_is_written_before(self) -> None:
        world = ConsumerWorld(has_follower=True)
        first = world.heartbeat("m", 0, topics=(ORDERS,), owned={}, rebalance_ms=REBALANCE_MS)
        again = world.heartbeat("m", 2)
        assert first.is_waiting
        assert again.is_waiting
        world.follow()
        assert again.answer.error_code.name == "none"

    def test_a_write_that_takes_too_long(self) -> None:
        world = ConsumerWorld(has_follower=True)
        asked = world.heartbeat("m", 0, topics=(ORDERS,), owned={}, rebalance_ms=REBALANCE_MS)
        world.pass_time(SETTINGS.commit_timeout_ms)
        assert asked.answer.error_code.name == "coordinator_not_available"

    def test_only_changed_targets_are_written(self) -> None:
        world = ConsumerWorld()
        world.add("a")
        world.pass_time(INTERVAL_MS)
        before = world.count()
        world.add("b")
        names = [key.name for key, _ in world.written(before) if key.type.name.endswith("ASSIGNMENT_MEMBER")]
        assert names == ["a", "b"]
        world.pass_time(INTERVAL_MS)
        before = world.count()
        world.add("c")
        targets = world.shard().consumers[GROUP].targets
        assert sum(len(each[ORDERS_ID]) for each in targets.values()) == 4
        names = [key.name for key, _ in world.written(before) if key.type.name.endswith("ASSIGNMENT_MEMBER")]
        assert len(names) == 2  # one of a and b gives a partition up

    def test_an_empty_subscription_makes_a_member_without_partitions(self) -> None:
        world = ConsumerWorld()
        answer = world.add("m", topics=())
        assert (answer.error_code.name, answer.member_epoch, assigned(answer)) == ("none", 1, set())
        assert world.kinds() == ["MEMBER_METADATA", "CURRENT_MEMBER_ASSIGNMENT"]
        world.fail_over()
        assert world.state() == ("Stable", 1, 1)

    def test_topics_that_are_not_there_bring_no_partitions(self) -> None:
        world = ConsumerWorld()
        answer = world.add("m", topics=("absent", ORDERS))
        assert assigned(answer) == ALL

    def test_the_assignment_is_told_when_it_changed_or_was_asked_for(self) -> None:
        world = ConsumerWorld()
        epoch = world.add("m").member_epoch
        assert assigned(world.heartbeat("m", epoch).answer) is None
        full = {"topics": (ORDERS,), "rebalance_ms": REBALANCE_MS, "owned": {ORDERS_ID: ALL}}
        assert assigned(world.heartbeat("m", epoch, **full).answer) == ALL

    def test_a_second_assignment_waits_for_the_interval(self) -> None:
        """KIP-1263."""
        world = ConsumerWorld()
        world.add("a")
        answer = world.add("b")
        assert assigned(answer) == set()
        assert world.state() == ("Assigning", 3, 2)
        world.pass_time(INTERVAL_MS)
        assert world.heartbeat("b", answer.member_epoch).answer.member_epoch == 3
        assert world.state()[1:] == (3, 3)

    def test_a_group_may_have_its_own_interval(self) -> None:
        world = ConsumerWorld()
        world.change(_group_config("consumer.assignment.interval.ms", 0))
        world.add("a")
        world.add("b")
        assert world.state()[1:] == (3, 3)


def _group_config(name: str, value: int) -> ConfigRecord:
    return ConfigRecord(resource_type=GROUP_CONFIG, resource_name=GROUP, name=name, value=str(value))


class TestReconciliation:
    def test_a_partition_passes_on_when_its_owner_gave_it_up(self) -> None:
        world = ConsumerWorld()
        first, second = ClientMember(world, "first", holds=True), ClientMember(world, "second")
        first.beat()
        first.settle()
        world.pass_time(INTERVAL_MS)
        second.beat()
        assert second.orders() == set()
        first.beat()
        # It is asked to give two up, and still has them.
        kept = first.to_have[ORDERS_ID]
        assert len(kept) == 2
        member = world.shard().consumers[GROUP].members["first"]
        assert member.state is MemberState.UNREVOKED_PARTITIONS
        second.beat()
        assert second.orders() == set()
        assert world.state()[0] == "Reconciling"
        first.settle()
        first.beat()
        second.beat()
        assert second.orders() == ALL - kept
        assert world.state()[0] == "Stable"

    def test_three_members_hand_over(self) -> None:
        world, first, second = two_members()
        third = ClientMember(world, "third")
        world.pass_time(INTERVAL_MS)
        third.beat()
        converge(world, first, second, third)
        parts = [each.orders() for each in (first, second, third)]
        assert sorted(map(len, parts)) == [1, 1, 2]
        assert set().union(*parts) == ALL

    def test_a_member_that_does_not_say_what_it_has_keeps_what_it_is_to_give_up(self) -> None:
        world = ConsumerWorld()
        epoch = world.add("a").member_epoch
        world.pass_time(INTERVAL_MS)
        world.add("b")
        assert len(assigned(world.heartbeat("a", epoch).answer) or ()) == 2
        assert world.heartbeat("a", epoch).answer.member_epoch == epoch
        kept = world.shard().consumers[GROUP].members["a"].assigned
        answer = world.heartbeat("a", epoch, owned=kept).answer
        assert answer.member_epoch == 3

    def test_a_dropped_topic_goes_at_once_before_there_is_a_new_target(self) -> None:
        world = ConsumerWorld()
        epoch = world.add("m").member_epoch
        answer = world.heartbeat("m", epoch, topics=(), owned={ORDERS_ID: ALL}).answer
        assert (answer.member_epoch, assigned(answer)) == (epoch, set())
        member = world.shard().consumers[GROUP].members["m"]
        assert member.state is MemberState.UNREVOKED_PARTITIONS
        assert set(member.pending_revocation[ORDERS_ID]) == ALL
        world.pass_time(INTERVAL_MS)
        assert world.heartbeat("m", epoch, owned={}).answer.member_epoch == epoch + 1

    def test_a_revocation_that_takes_too_long_ends_the_member(self) -> None:
        world = ConsumerWorld()
        epoch = world.add("a").member_epoch
        world.pass_time(INTERVAL_MS)
        other = world.add("b").member_epoch
        world.heartbeat("a", epoch)
        for _ in range(2 * REBALANCE_MS // SESSION_MS + 1):
            world.pass_time(SESSION_MS // 2)
            world.heartbeat("a", epoch)
            other = world.heartbeat("b", other).answer.member_epoch or other
        assert world.error("a", epoch) == "unknown_member_id"
        assert set(world.shard().consumers[GROUP].members) == {"b"}

    def test_a_member_that_gave_up_in_time_stays(self) -> None:
        world = ConsumerWorld()
        first, second = ClientMember(world, "first"), ClientMember(world, "second")
        first.beat()
        second.beat()
        converge(world, first, second)
        for _ in range(4):
            world.pass_time(SESSION_MS // 2)
            assert (first.beat(), second.beat()) == ("none", "none")

    def test_new_partitions_begin_another_epoch(self) -> None:
        world, first, second = two_members()
        epoch = world.state()[1]
        world.change(partition_record(1, 4, (1, 2)), partition_record(1, 5, (1, 2)))
        converge(world, first, second)
        assert world.state()[1] == epoch + 1
        assert first.orders() | second.orders() == {*ALL, 4, 5}

    def test_a_topic_of_another_group_changes_nothing(self) -> None:
        world, first, _ = two_members()
        before = world.count()
        world.create_topic(12, "elsewhere")
        world.pass_time(INTERVAL_MS)
        first.beat()
        assert world.count() == before

    def test_a_deleted_topic_leaves_nothing(self) -> None:
        world, first, second = two_members()
        world.change(RemoveTopicRecord(topic_id=ORDERS_ID))
        converge(world, first, second)
        assert first.owned == second.owned == {}
        assert not world.shard().consumers[GROUP].targets["first"]


class TestEpochs:
    def test_a_later_epoch_is_fenced_and_zero_joins_again(self) -> None:
        world = ConsumerWorld()
        epoch = world.add("m").member_epoch
        assert world.error("m", epoch + 1) == "fenced_member_epoch"
        before = world.count()
        answer = world.add("m")
        assert (answer.member_epoch, assigned(answer)) == (epoch, ALL)
        assert world.count() == before

    def test_the_epoch_before_is_good_if_the_answer_was_lost(self) -> None:
        world = ConsumerWorld()
        epoch = world.add("a").member_epoch
        world.pass_time(INTERVAL_MS)
        world.add("b")
        # The next heartbeat makes a give two up; then it reaches epoch 3, of which its client never hears.
        world.heartbeat("a", epoch, owned={ORDERS_ID: ALL})
        kept = world.shard().consumers[GROUP].members["a"].assigned
        assert world.heartbeat("a", epoch, owned=kept).answer.member_epoch == 3
        assert world.error("a", epoch) == "fenced_member_epoch"
        assert world.error("a", epoch, owned={ORDERS_ID: ALL}) == "fenced_member_epoch"
        assert world.error("a", epoch, owned={topic_id(77): {0}}) == "fenced_member_epoch"
        assert world.heartbeat("a", epoch, owned=kept).answer.member_epoch == 3
        assert world.error("a", epoch - 1, owned=kept) == "fenced_member_epoch"

    def test_a_changed_subscription_begins_another_epoch(self) -> None:
        world = ConsumerWorld()
        world.create_topic(12, "more", 2)
        epoch = world.add("m").member_epoch
        world.pass_time(INTERVAL_MS)
        before = world.count()
        answer = world.heartbeat("m", epoch, topics=(ORDERS, "more"), owned={ORDERS_ID: ALL}).answer
        assert answer.member_epoch == epoch + 1
        assert {each.topic_id for each in answer.assignment.topic_partitions} == {ORDERS_ID, topic_id(12)}
        assert world.kinds(before)[:2] == ["MEMBER_METADATA", "METADATA"]

    @pytest.mark.parametrize(
        "fields", [{"rack_id": "r"}, {"rebalance_ms": 7}, {"assignor": "range"}, {"instance_id": None}]
    )
    def test_other_changes_of_a_member_begin_none(self, fields: dict[str, Any]) -> None:
        world = ConsumerWorld()
        epoch = world.add("m").member_epoch
        world.pass_time(INTERVAL_MS)
        assert world.heartbeat("m", epoch, **fields).answer.member_epoch == epoch
        assert world.state()[1] == epoch

    def test_most_votes_choose_the_assignor(self) -> None:
        world = ConsumerWorld()
        world.add("a", assignor="range")
        assert world.describe().assignor_name == "range"
        world.add("b", assignor="uniform")
        world.add("c", assignor="uniform")
        assert world.describe().assignor_name == "uniform"
        world.add("d", topics=(ORDERS,))
        assert world.describe().assignor_name == "uniform"


class TestLeaving:
    def test_the_tombstones_and_one_epoch_more(self) -> None:
        world, first, second = two_members()
        epoch, before = world.state()[1], world.count()
        assert first.leave() == "none"
        assert world.kinds(before) == [
            "-CURRENT_MEMBER_ASSIGNMENT",
            "-TARGET_ASSIGNMENT_MEMBER",
            "-MEMBER_METADATA",
            "METADATA",
        ]
        assert world.state() == ("Assigning", epoch + 1, epoch)
        converge(world, second)
        assert second.orders() == ALL

    def test_the_answer_says_no_interval(self) -> None:
        world = ConsumerWorld()
        world.add("m")
        answer = world.heartbeat("m", -1).answer
        assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("m", -1, 0)

    def test_the_last_member_leaves_an_empty_group(self) -> None:
        world = ConsumerWorld()
        world.add("m")
        world.heartbeat("m", -1)
        assert world.state()[0] == "Empty"
        [group] = world.ask_local(ListGroupsRequest()).groups
        assert (group.group_id, group.group_state, group.group_type) == (GROUP, "Empty", "consumer")

    def test_a_session_ends(self) -> None:
        world, first, second = two_members()
        world.pass_time(SESSION_MS - 1_000)
        assert second.beat() == "none"
        world.pass_time(1_000)
        assert set(world.shard().consumers[GROUP].members) == {"second"}
        assert first.beat() == "unknown_member_id"

    def test_a_group_may_have_its_own_session_and_interval(self) -> None:
        world = ConsumerWorld()
        epoch = world.add("m").member_epoch
        world.change(
            _group_config("consumer.session.timeout.ms", 50_000),
            _group_config("consumer.heartbeat.interval.ms", 6_000),
        )
        assert world.heartbeat("m", epoch).answer.heartbeat_interval_ms == 6_000
        world.pass_time(49_000)
        assert GROUP in world.shard().consumers
        assert world.shard().consumers[GROUP].members
        world.pass_time(1_000)
        assert not world.shard().consumers[GROUP].members


class TestStaticMembers:
    def test_an_instance_comes_back_with_its_partitions(self) -> None:
        world = ConsumerWorld()
        first = ClientMember(world, "a-1", instance_id="a")
        second = ClientMember(world, "b-1", instance_id="b")
        first.beat()
        converge(world, first, second)
        epoch, mine, before = world.state()[1], first.orders(), world.count()
        assert first.leave(-2) == "none"
        assert world.kinds(before) == ["CURRENT_MEMBER_ASSIGNMENT"]
        assert world.shard().consumers[GROUP].members["a-1"].epoch == -2
        second.beat()
        assert second.orders() == ALL - mine
        again = ClientMember(world, "a-2", instance_id="a")
        assert again.beat() == "none"
        assert again.orders() == mine
        assert world.state()[1] == epoch
        assert set(world.shard().consumers[GROUP].members) == {"a-2", "b-1"}

    def test_it_may_come_back_under_its_id(self) -> None:
        world = ConsumerWorld()
        member = ClientMember(world, "a", instance_id="a")
        member.beat()
        member.leave(-2)
        assert member.beat() == "none"
        assert member.orders() == ALL
        world.pass_time(SESSION_MS - 1)
        assert world.shard().consumers[GROUP].members
        world.pass_time(1)
        assert not world.shard().consumers[GROUP].members

    def test_an_instance_that_is_here_is_not_released(self) -> None:
        world = ConsumerWorld()
        world.add("a", instance_id="i")
        assert world.add("b", instance_id="i").error_code.name == "unreleased_instance_id"
        assert world.add("a", instance_id="i").error_code.name == "unreleased_instance_id"

    def test_another_member_of_the_instance_is_fenced(self) -> None:
        world = ConsumerWorld()
        epoch = world.add("a", instance_id="i").member_epoch
        assert world.error("b", epoch, instance_id="i") == "fenced_instance_id"
        assert world.error("b", -1, instance_id="i") == "fenced_instance_id"
        assert world.error("b", -2, instance_id="i") == "fenced_instance_id"
        assert world.error("a", epoch, instance_id="i") == "none"

    def test_an_instance_that_stays_away_is_removed(self) -> None:
        world = ConsumerWorld()
        world.add("a", instance_id="i")
        world.heartbeat("a", -2, instance_id="i")
        world.pass_time(SESSION_MS)
        assert world.state()[0] == "Empty"

    def test_an_instance_that_leaves_for_good_begins_another_epoch(self) -> None:
        world = ConsumerWorld()
        epoch = world.add("a", instance_id="i").member_epoch
        assert world.error("a", -1, instance_id="i") == "none"
        assert world.state()[1] == epoch + 1

    def test_one_that_comes_back_with_other_topics(self) -> None:
        world = ConsumerWorld()
        world.create_topic(12, "more")
        epoch = world.add("a", instance_id="i").member_epoch
        world.heartbeat("a", -2, instance_id="i")
        world.pass_time(INTERVAL_MS)
        answer = world.add("b", instance_id="i", topics=("more",))
        # What its instance had is another process's: nothing is to be given up.
        assert [each.topic_id for each in answer.assignment.topic_partitions] in ([], [topic_id(12)])
        assert world.state()[1] == epoch + 1


class TestCommits:
    def test_the_epoch_of_the_member_counts(self) -> None:
        world = ConsumerWorld()
        epoch = world.add("m").member_epoch

        def commit(epoch: int, member_id: str = "m", version: int = 9) -> str:
            return error_of_commit(
                world.commit(7, member_id=member_id, generation_id_or_member_epoch=epoch, version=version)
            )

        assert commit(epoch) == "none"
        assert commit(epoch + 1) == "stale_member_epoch"
        assert commit(epoch, "other") == "unknown_member_id"
        assert commit(epoch, version=8) == "unsupported_version"
        assert commit(-1, "") == "unknown_member_id"

    def test_an_earlier_epoch_is_good_for_a_partition_that_the_member_had_then(self) -> None:
        """KIP-1251."""
        world, first, second = two_members()
        [mine, *_] = first.orders()
        [others, *_] = second.orders()

        def commit(index: int, epoch: int) -> str:
            fields = {"member_id": "first", "generation_id_or_member_epoch": epoch}
            return error_of_commit(world.commit(7, index=index, **fields))

        assert first.epoch == 3
        assert commit(mine, 2) == "none"
        assert commit(mine, 1) == "stale_member_epoch"
        assert commit(others, 2) == "stale_member_epoch"

    def test_an_empty_group_takes_those_of_administrators(self) -> None:
        world = ConsumerWorld()
        world.add("m")
        world.heartbeat("m", -1)
        assert error_of_commit(world.commit(7)) == "none"

    def test_reading_says_the_epoch_too(self) -> None:
        world = ConsumerWorld()
        epoch = world.add("m").member_epoch
        assert world.fetch_as(None, -1) == "none"
        assert world.fetch_as("m", epoch) == "none"
        assert world.fetch_as("m", epoch - 1) == "stale_member_epoch"
        assert world.fetch_as("other", epoch) == "unknown_member_id"
        assert world.fetch_as("m", epoch, stable=True) == "none"
        assert world.fetch_as("m", epoch + 1, stable=True) == "stale_member_epoch"

    def test_offsets_of_a_topic_that_is_read_stay(self) -> None:
        world = ConsumerWorld()
        world.add("m")
        world.commit(7, member_id="m", generation_id_or_member_epoch=2)
        assert world.delete_offset() == "group_subscribed_to_topic"
        for _ in range(2 * SETTINGS.retention_ms // SETTINGS.retention_check_ms):
            world.now_ms += SETTINGS.retention_check_ms
        world.shard().expire_offsets(world.now_ms)
        world.settle()
        assert world.committed() == {(ORDERS, 0): 7}
        world.heartbeat("m", -1)
        world.shard().expire_offsets(world.now_ms)
        world.settle()
        assert world.committed() == {}
        assert GROUP not in world.shard().consumers


class TestFailOver:
    def test_members_go_on_and_the_state_is_the_same(self) -> None:
        world, first, second = two_members()
        before = world.shard().consumers[GROUP]
        world.fail_over()
        after = world.shard().consumers[GROUP]
        assert (after.members, after.targets, after.static) == (before.members, before.targets, before.static)
        assert (after.epoch, after.assignment_epoch, after.metadata_hash) == (
            before.epoch,
            before.assignment_epoch,
            before.metadata_hash,
        )
        assert (first.beat(), second.beat()) == ("none", "none")
        assert world.state()[0] == "Stable"

    def test_members_have_a_full_session_from_then_on(self) -> None:
        world, _, _ = two_members()
        world.pass_time(SESSION_MS - 1)
        world.fail_over()
        world.pass_time(SESSION_MS - 1)
        assert len(world.shard().consumers[GROUP].members) == 2
        world.pass_time(1)
        assert not world.shard().consumers[GROUP].members

    def test_a_revocation_has_its_time_again(self) -> None:
        world = ConsumerWorld()
        epoch = world.add("a").member_epoch
        world.pass_time(INTERVAL_MS)
        world.add("b")
        world.heartbeat("a", epoch)
        world.fail_over()
        for _ in range(3):
            world.pass_time(SESSION_MS // 2)
            world.heartbeat("a", epoch)
        assert "a" not in world.shard().consumers[GROUP].members

    def test_the_hash_is_computed_again_and_the_same_hash_begins_no_epoch(self) -> None:
        world, first, _ = two_members()
        world.fail_over()
        assert world.shard().consumers[GROUP].needs_refresh
        before = world.count()
        first.beat()
        assert not world.shard().consumers[GROUP].needs_refresh
        assert world.count() == before

    def test_another_hash_of_the_former_coordinator_begins_one(self) -> None:
        world, first, second = two_members()
        epoch = world.state()[1]
        world.groups.close()
        world.change(partition_record(1, 4, (1, 2)))
        world.fail_over()
        converge(world, first, second)
        assert world.state()[1] == epoch + 1


class TestDescribing:
    def test_members_have_what_they_are_to_give_up(self) -> None:
        world = ConsumerWorld()
        epoch = world.add("a", rack_id="r").member_epoch
        world.pass_time(INTERVAL_MS)
        world.add("b", instance_id="i")
        world.heartbeat("a", epoch)
        found = world.describe(include_authorized_operations=True)
        assert (found.group_state, found.group_epoch, found.assignor_name) == ("Reconciling", 3, "uniform")
        first, second = found.members
        assert (first.member_id, first.rack_id, first.member_epoch, first.member_type) == ("a", "r", 2, 1)
        assert (first.client_host, first.subscribed_topic_names) == ("/127.0.0.1", (ORDERS,))
        [has] = first.assignment.topic_partitions
        assert (has.topic_name, set(has.partitions)) == (ORDERS, ALL)
        [target] = first.target_assignment.topic_partitions
        assert len(target.partitions) == 2
        assert second.instance_id == "i"
        assert found.authorized_operations > 0

    def test_groups_that_are_not_there(self) -> None:
        world = ConsumerWorld()
        assert world.describe("absent").error_code.name == "group_id_not_found"
        assert world.describe("").error_code.name == "invalid_group_id"
        world.commit(7)
        assert world.describe().error_code.name == "group_id_not_found"

    def test_lists_know_states_and_types(self) -> None:
        world, _, _ = two_members()

        def listed(**filters: Any) -> list[str]:
            return [each.group_id for each in world.ask_local(ListGroupsRequest(**filters)).groups]

        assert listed(states_filter=("STABLE",), types_filter=("Consumer",)) == [GROUP]
        assert listed(states_filter=("Reconciling",)) == listed(types_filter=("classic",)) == []


class TestDeleting:
    def test_a_group_with_members_stays(self) -> None:
        world = ConsumerWorld()
        world.add("m")
        assert world.delete() == "non_empty_group"

    def test_the_tombstones_are_in_the_order_that_kafka_loads(self) -> None:
        world = ConsumerWorld()
        world.add("m")
        world.heartbeat("m", -1)
        world.commit(7)
        before = world.count()
        assert world.delete() == "none"
        assert [kind for kind in world.kinds(before) if "CLASSIC" not in kind] == [
            "-TARGET_ASSIGNMENT_METADATA",
            "-PARTITION_METADATA",
            "-METADATA",
        ]
        assert world.committed() == {}
        assert world.describe().error_code.name == "group_id_not_found"
        world.fail_over()
        assert GROUP not in world.shard().consumers
