"""Members of a classic group join, share partitions, are heard or removed, and leave, by Kafka's behaviours (KIP-62,
KIP-134, KIP-345, KIP-394, KIP-814)."""

from typing import Any

import pytest

from kquorum.broker.groups import classic_protocol
from kquorum.broker.groups.classic_protocol import NEW_MEMBER_TIMEOUT_MS
from kquorum.wire.offsets_records import GroupKey, decode_group_value, decode_key
from tests.support.broker.group_world import (
    GROUP,
    RANGE,
    REBALANCE_MS,
    SESSION_MS,
    SETTINGS,
    GroupWorld,
    subscription,
)

DELAY_MS = SETTINGS.initial_rebalance_delay_ms


def name_of(asked: Any) -> str:
    name: str = asked.answer.error_code.name
    return name


def state(world: GroupWorld, group_id: str = GROUP) -> str:
    return world.shard().groups[group_id].state.value


class TestJoining:
    def test_a_new_member_gets_an_id_first_and_the_group_waits_for_more_members(self) -> None:
        world = GroupWorld()
        first = world.join()
        answer = first.answer
        assert (answer.error_code.name, answer.member_id) == (
            "member_id_required",
            "a client-00000000-0000-0000-0000-000000000001",
        )
        joined = world.join(answer.member_id)
        world.pass_time(DELAY_MS - 1)
        assert joined.is_waiting
        world.pass_time(1)
        told = joined.answer
        assert (told.generation_id, told.protocol_type, told.protocol_name) == (1, "consumer", "range")
        assert told.leader == told.member_id == answer.member_id
        assert [(each.member_id, each.metadata) for each in told.members] == [(answer.member_id, RANGE[0][1])]

    def test_ids_that_were_given_out_and_never_used_have_a_bound(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without one, a client that only asks for ids fills the memory; the oldest ids are forgotten."""
        monkeypatch.setattr(classic_protocol, "MOST_PENDING_IDS", 3)
        world = GroupWorld()
        ids = [world.join().answer.member_id for _ in range(5)]
        assert list(world.shard().groups[GROUP].pending_ids) == ids[2:]
        assert name_of(world.join(ids[0])) == "unknown_member_id"
        joined = world.join(ids[4])
        for each in ids[2:4]:
            world.leave((each, None))
        world.pass_time(DELAY_MS)
        assert name_of(joined) == "none"

    @pytest.mark.parametrize("version", range(4))
    def test_before_version_4_it_joins_at_once(self, version: int) -> None:
        world = GroupWorld()
        joined = world.join(version=version)
        world.pass_time(DELAY_MS)
        assert (name_of(joined), joined.answer.generation_id) == ("none", 1)

    def test_each_new_member_prolongs_the_first_wait_up_to_the_rebalance_timeout(self) -> None:
        world = GroupWorld()
        _, first = world.joining(rebalance_ms=2 * DELAY_MS + 500)
        for _ in range(2):
            world.pass_time(DELAY_MS - 1)
            world.joining(rebalance_ms=2 * DELAY_MS + 500)
            world.pass_time(1)
            assert first.is_waiting
        # Of the rebalance timeout 500 ms are left.
        world.pass_time(499)
        assert first.is_waiting
        world.pass_time(1)
        assert len(first.answer.members) == 3

    def test_the_leader_alone_gets_the_list_of_members(self) -> None:
        world = GroupWorld()
        members = [world.joining() for _ in range(3)]
        world.pass_time(2 * DELAY_MS)
        answers = [asked.answer for _, asked in members]
        assert {each.leader for each in answers} == {members[0][0]}
        assert [len(each.members) for each in answers] == [3, 0, 0]

    @pytest.mark.parametrize(
        ("fields", "error"),
        [
            ({"group_id": ""}, "invalid_group_id"),
            ({"session_ms": SETTINGS.min_session_timeout_ms - 1}, "invalid_session_timeout"),
            ({"session_ms": SETTINGS.max_session_timeout_ms + 1}, "invalid_session_timeout"),
            ({"member_id": "of another life"}, "unknown_member_id"),
            ({"protocols": ()}, "inconsistent_group_protocol"),
            ({"protocol_type": ""}, "inconsistent_group_protocol"),
        ],
    )
    def test_what_cannot_join(self, fields: dict[str, Any], error: str) -> None:
        assert name_of(GroupWorld().join(**fields)) == error

    def test_an_unknown_member_makes_no_group(self) -> None:
        world = GroupWorld()
        world.join("of another life")
        assert not world.shard().groups

    def test_members_need_a_protocol_in_common_and_the_votes_choose(self) -> None:
        world = GroupWorld()
        sub = subscription("orders")
        _, first = world.joining(protocols=(("a", sub), ("b", sub), ("c", sub)))
        refused = world.join(protocols=(("d", sub),))
        other_type = world.join(protocols=(("a", sub),), protocol_type="connect")
        world.joining(protocols=(("b", sub), ("c", sub)))
        world.joining(protocols=(("c", sub), ("b", sub)))
        world.joining(protocols=(("c", sub), ("b", sub)))
        world.pass_time(2 * DELAY_MS)
        assert name_of(refused) == name_of(other_type) == "inconsistent_group_protocol"
        # Not all support a. One member votes for b twice over, two members for c.
        assert first.answer.protocol_name in {"b", "c"}

    def test_a_protocol_named_twice_counts_once(self) -> None:
        world = GroupWorld()
        _, first = world.joining(protocols=RANGE * 2)
        _, second = world.joining()
        world.pass_time(2 * DELAY_MS)
        assert (first.answer.protocol_name, second.answer.protocol_name) == ("range", "range")

    def test_a_full_group_takes_no_more(self) -> None:
        world = GroupWorld()
        world.stable(SETTINGS.max_size)
        refused = world.join()
        assert name_of(refused) == "group_max_size_reached"

    def test_a_pending_id_holds_the_join_open_until_its_session_ends(self) -> None:
        world = GroupWorld()
        [leader] = world.stable(1)
        world.join()
        again = world.join(leader)
        assert again.is_waiting
        world.pass_time(SESSION_MS)
        assert again.answer.generation_id == 2

    def test_a_follower_that_joins_a_stable_group_unchanged_gets_its_generation_again(self) -> None:
        world = GroupWorld()
        _, follower = world.stable(2)
        told = world.join(follower).answer
        assert (told.generation_id, len(told.members)) == (1, 0)
        assert state(world) == "Stable"

    def test_a_leader_that_joins_again_begins_a_rebalance(self) -> None:
        world = GroupWorld()
        leader, follower = world.stable(2)
        again = world.join(leader)
        assert again.is_waiting
        assert world.beat(follower, 1) == "rebalance_in_progress"
        other = world.join(follower)
        assert (again.answer.generation_id, other.answer.generation_id) == (2, 2)
        assert again.answer.leader == leader

    def test_a_member_that_joins_again_before_the_sync_gets_the_same_answer(self) -> None:
        world = GroupWorld()
        member_id, joined = world.joining()
        world.pass_time(DELAY_MS)
        again = world.join(member_id)
        assert again.answer == joined.answer

    def test_changed_metadata_before_the_sync_begin_another_rebalance(self) -> None:
        world = GroupWorld()
        member_id, _ = world.joining()
        world.pass_time(DELAY_MS)
        again = world.join(member_id, protocols=(("range", subscription("other")),))
        assert again.answer.generation_id == 2

    def test_members_that_do_not_join_again_are_removed(self) -> None:
        world = GroupWorld()
        leader, follower = world.stable(2)
        again = world.join(follower, protocols=(("range", subscription("other")),))
        for _ in range(REBALANCE_MS // SESSION_MS * 2):
            world.pass_time(SESSION_MS // 2)
            world.beat(leader, 1)
        told = again.answer
        assert (told.generation_id, told.leader, len(told.members)) == (2, follower, 1)
        assert world.beat(leader, 1) == "unknown_member_id"

    def test_a_new_member_may_wait_longer_than_its_session_but_not_for_ever(self) -> None:
        world = GroupWorld()
        leader, _ = world.stable(2)
        # The others never join again, but are heard; the rebalance may take very long.
        for member in world.shard().groups[GROUP].members.values():
            member.rebalance_timeout_ms = 10 * NEW_MEMBER_TIMEOUT_MS
        _, new = world.joining()
        for _ in range(NEW_MEMBER_TIMEOUT_MS // SESSION_MS * 2 - 1):
            world.pass_time(SESSION_MS // 2)
            for each in tuple(world.shard().groups[GROUP].members.values()):
                if each.awaiting_join is None:
                    world.beat(each.member_id, 1)
        assert new.is_waiting
        world.pass_time(SESSION_MS // 2)
        assert (name_of(new), new.answer.member_id) == ("unknown_member_id", "")
        assert leader

    def test_the_first_join_is_in_the_log_so_that_the_next_coordinator_knows_the_group(self) -> None:
        world = GroupWorld()
        world.join()
        [record] = world.records()
        assert record.key is not None
        assert record.value is not None
        assert decode_key(record.key) == GroupKey(GROUP)
        value = decode_group_value(record.value)
        assert (value.protocol_type, value.generation, value.members) == ("", 0, ())


class TestSyncing:
    def test_the_assignment_is_told_when_it_is_committed(self) -> None:
        world = GroupWorld(has_follower=True)
        member_id, joined = world.joining()
        world.follow()
        world.pass_time(DELAY_MS)
        sync = world.sync(member_id, joined.answer.generation_id, {member_id: b"all"})
        assert sync.is_waiting
        assert state(world) == "CompletingRebalance"
        world.follow()
        assert (sync.answer.assignment, sync.answer.protocol_name) == (b"all", "range")
        assert state(world) == "Stable"

    def test_an_assignment_of_the_generation_before_is_none_of_the_next(self) -> None:
        """Its record is committed when the members have joined again."""
        world = GroupWorld(has_follower=True)
        member_id, _ = world.joining()
        world.follow()
        world.pass_time(DELAY_MS)
        late = world.sync(member_id, 1, {member_id: b"old"})
        joined = world.join(member_id, protocols=[("range", subscription("another"))])
        assert name_of(late) == "rebalance_in_progress"
        assert joined.answer.generation_id == 2
        world.follow()
        assert state(world) == "CompletingRebalance"
        sync = world.sync(member_id, 2, {member_id: b"new"})
        world.follow()
        assert sync.answer.assignment == b"new"

    def test_a_follower_waits_for_the_leader_and_who_has_no_part_gets_an_empty_one(self) -> None:
        world = GroupWorld()
        members = [world.joining() for _ in range(2)]
        world.pass_time(2 * DELAY_MS)
        (leader, _), (follower, _) = members
        waiting = world.sync(follower, 1)
        assert waiting.is_waiting
        world.sync(leader, 1, {leader: b"all", "a stranger": b"none"})
        assert (name_of(waiting), waiting.answer.assignment) == ("none", b"")

    def test_the_record_has_the_members_with_their_assignments(self) -> None:
        world = GroupWorld()
        leader, follower = world.stable(2)
        record = world.records()[-1]
        assert record.value is not None
        value = decode_group_value(record.value)
        assert (value.protocol_type, value.generation, value.protocol, value.leader) == (
            "consumer",
            1,
            "range",
            leader,
        )
        assert [(each.member_id, each.assignment, each.client_host) for each in value.members] == [
            (leader, b"part of 0", "/127.0.0.1"),
            (follower, b"part of 1", "/127.0.0.1"),
        ]
        assert {each.subscription for each in value.members} == {RANGE[0][1]}

    def test_an_assignment_that_is_not_committed_in_time_begins_another_rebalance(self) -> None:
        world = GroupWorld(has_follower=True)
        member_id, _ = world.joining()
        world.follow()
        world.pass_time(DELAY_MS)
        sync = world.sync(member_id, 1, {member_id: b"all"})
        world.pass_time(SETTINGS.commit_timeout_ms)
        assert name_of(sync) == "coordinator_not_available"
        assert state(world) == "PreparingRebalance"

    @pytest.mark.parametrize(
        ("fields", "error"),
        [
            ({"member_id": "another"}, "unknown_member_id"),
            ({"generation": 2}, "illegal_generation"),
            ({"protocol": "sticky"}, "inconsistent_group_protocol"),
            ({"group_id": ""}, "invalid_group_id"),
            ({"group_id": "fooo"}, "unknown_member_id"),
        ],
    )
    def test_what_is_refused(self, fields: dict[str, Any], error: str) -> None:
        world = GroupWorld()
        [leader] = world.stable(1)
        assert name_of(world.sync(**({"member_id": leader, "generation": 1} | fields))) == error

    def test_the_member_is_checked_before_the_generation(self) -> None:
        world = GroupWorld()
        world.stable(1)
        assert name_of(world.sync("another", 7)) == "unknown_member_id"

    def test_a_sync_during_a_rebalance_is_told_of_it(self) -> None:
        world = GroupWorld()
        leader, follower = world.stable(2)
        world.join(leader)
        assert name_of(world.sync(follower, 1)) == "rebalance_in_progress"

    def test_syncs_that_wait_are_told_of_a_rebalance(self) -> None:
        world = GroupWorld()
        members = [world.joining() for _ in range(2)]
        world.pass_time(2 * DELAY_MS)
        (_, _), (follower, _) = members
        waiting = world.sync(follower, 1)
        world.joining()
        assert name_of(waiting) == "rebalance_in_progress"

    def test_members_that_do_not_sync_in_time_are_removed(self) -> None:
        world = GroupWorld()
        members = [world.joining() for _ in range(2)]
        world.pass_time(2 * DELAY_MS)
        (leader, _), (follower, _) = members
        world.sync(leader, 1, {leader: b"all"})
        for _ in range(REBALANCE_MS // SESSION_MS * 2 - 1):
            world.pass_time(SESSION_MS // 2)
            assert (world.beat(leader, 1), world.beat(follower, 1)) == ("none", "none")
        world.pass_time(SESSION_MS // 2)
        assert world.beat(leader, 1) == "rebalance_in_progress"
        assert world.beat(follower, 1) == "unknown_member_id"


class TestLife:
    def test_a_member_that_is_not_heard_is_removed_and_the_others_rebalance(self) -> None:
        world = GroupWorld()
        leader, follower = world.stable(2)
        world.pass_time(SESSION_MS - 1)
        assert world.beat(leader, 1) == "none"
        world.pass_time(1)
        assert world.beat(follower, 1) == "unknown_member_id"
        assert world.beat(leader, 1) == "rebalance_in_progress"

    def test_the_last_member_leaves_an_empty_group_of_the_next_generation_in_the_log(self) -> None:
        world = GroupWorld()
        world.stable(1)
        world.pass_time(SESSION_MS)
        assert state(world) == "Empty"
        record = world.records()[-1]
        assert record.value is not None
        value = decode_group_value(record.value)
        assert (value.generation, value.protocol, value.protocol_type, value.members) == (
            2,
            None,
            "consumer",
            (),
        )

    def test_heartbeats_of_others(self) -> None:
        world = GroupWorld()
        [leader] = world.stable(1)
        assert world.beat("another", 1) == "unknown_member_id"
        assert world.beat(leader, 2) == "illegal_generation"
        assert world.beat(leader, 1) == "none"

    def test_leaving_begins_a_rebalance_of_those_that_stay(self) -> None:
        world = GroupWorld()
        leader, follower = world.stable(2)
        told = world.leave((follower, None), ("another", None))
        assert told.error_code.name == "none"
        assert [each.error_code.name for each in told.members] == ["none", "unknown_member_id"]
        assert world.beat(leader, 1) == "rebalance_in_progress"
        assert world.join(leader).answer.generation_id == 2

    def test_a_pending_member_that_leaves_lets_the_others_go_on(self) -> None:
        world = GroupWorld()
        [leader] = world.stable(1)
        pending = world.join().answer.member_id
        again = world.join(leader)
        assert again.is_waiting
        world.leave((pending, None))
        assert again.answer.generation_id == 2

    def test_a_group_that_is_not_there(self) -> None:
        world = GroupWorld()
        [told] = world.leave(("m", None)).members
        assert told.error_code.name == "unknown_member_id"
        assert world.leave(("m", None), group_id="").error_code.name == "invalid_group_id"


class TestStaticMembers:
    def static_group(self, world: GroupWorld) -> tuple[str, str]:
        """Ids of the instances a and b; a leads."""
        asked = [world.join(instance_id=name) for name in ("a", "b")]
        world.pass_time(2 * DELAY_MS)
        first, second = (each.answer.member_id for each in asked)
        assert asked[0].answer.leader == first
        syncs = [
            world.sync(first, 1, {first: b"A", second: b"B"}, instance_id="a"),
            world.sync(second, 1, instance_id="b"),
        ]
        assert [each.answer.assignment for each in syncs] == [b"A", b"B"]
        return first, second

    def test_an_instance_joins_without_an_id_of_its_own_first(self) -> None:
        world = GroupWorld()
        first, _ = self.static_group(world)
        assert first.startswith("a-")

    def test_an_instance_that_comes_back_keeps_its_partitions_without_a_rebalance(self) -> None:
        world = GroupWorld()
        first, second = self.static_group(world)
        told = world.join(instance_id="b").answer
        assert (told.generation_id, told.leader, told.skip_assignment) == (1, first, False)
        assert told.member_id != second
        assert world.sync(told.member_id, 1, instance_id="b").answer.assignment == b"B"
        assert world.beat(second, 1, "b") == "fenced_instance_id"
        assert world.beat(first, 1, "a") == "none"

    def test_the_leader_that_comes_back_does_not_assign_again(self) -> None:
        world = GroupWorld()
        first, _ = self.static_group(world)
        told = world.join(instance_id="a").answer
        assert (told.skip_assignment, told.leader, len(told.members)) == (True, told.member_id, 2)
        # An older client gets the former leader's id, and takes itself for a follower.
        older = world.join(instance_id="a", version=8).answer
        assert (older.leader, len(older.members)) == (told.member_id, 0)
        assert older.member_id not in (first, told.member_id)

    def test_the_replacement_is_in_the_log(self) -> None:
        world = GroupWorld()
        self.static_group(world)
        told = world.join(instance_id="b").answer
        record = world.records()[-1]
        assert record.value is not None
        [_, second] = decode_group_value(record.value).members
        assert (second.member_id, second.group_instance_id, second.assignment) == (told.member_id, "b", b"B")

    def test_a_replacement_that_is_not_committed_is_undone(self) -> None:
        world = GroupWorld(has_follower=True)
        asked = world.join(instance_id="a")
        world.follow()
        world.pass_time(DELAY_MS)
        first = asked.answer.member_id
        world.sync(first, 1, {first: b"A"}, instance_id="a")
        world.follow()
        replaced = world.join(instance_id="a")
        world.pass_time(SETTINGS.commit_timeout_ms)
        assert name_of(replaced) == "coordinator_not_available"
        assert world.shard().groups[GROUP].static == {"a": first}

    def test_another_process_with_the_same_instance_fences_a_join_that_waits(self) -> None:
        world = GroupWorld()
        first = world.join(instance_id="a")
        second = world.join(instance_id="a")
        assert name_of(first) == "fenced_instance_id"
        world.pass_time(2 * DELAY_MS)
        assert second.answer.generation_id == 1

    def test_a_changed_subscription_begins_a_rebalance_only_where_the_protocol_changes(self) -> None:
        world = GroupWorld()
        self.static_group(world)
        other = (("range", subscription("other")),)
        assert world.join(instance_id="b", protocols=other).answer.generation_id == 1

    def test_an_instance_stays_through_a_rebalance_until_its_session_ends(self) -> None:
        world = GroupWorld()
        first, second = self.static_group(world)
        again = world.join(first, instance_id="a", session_ms=REBALANCE_MS * 4)
        member = world.shard().groups[GROUP].members[second]
        member.session_timeout_ms = REBALANCE_MS * 3
        world.shard().classic.note_life(world.now_ms, world.shard().groups[GROUP], second)
        world.pass_time(REBALANCE_MS)
        assert len(again.answer.members) == 2

    def test_an_administrator_removes_an_instance_by_its_name(self) -> None:
        world = GroupWorld()
        first, _ = self.static_group(world)
        told = world.leave(("", "b"), ("", "c"))
        assert [each.error_code.name for each in told.members] == ["none", "unknown_member_id"]
        assert world.beat(first, 1, "a") == "rebalance_in_progress"

    def test_the_id_of_another_instance_is_fenced(self) -> None:
        world = GroupWorld()
        first, _ = self.static_group(world)
        assert world.beat(first, 1, "b") == "fenced_instance_id"
        assert world.beat(first, 1, "c") == "unknown_member_id"


class TestFailOver:
    def test_the_next_coordinator_lets_members_go_on_with_their_generation(self) -> None:
        world = GroupWorld()
        leader, follower = world.stable(2)
        world.fail_over()
        assert (world.beat(leader, 1), world.beat(follower, 1)) == ("none", "none")
        assert world.sync(follower, 1).answer.assignment == b"part of 1"

    def test_members_have_a_full_session_from_then_on(self) -> None:
        world = GroupWorld()
        leader, _ = world.stable(2)
        world.pass_time(SESSION_MS - 1)
        world.fail_over()
        world.pass_time(SESSION_MS - 1)
        assert world.beat(leader, 1) == "none"
        world.pass_time(1)
        assert world.beat(leader, 1) == "rebalance_in_progress"

    def test_requests_that_wait_are_sent_to_the_next_coordinator(self) -> None:
        world = GroupWorld(has_follower=True)
        _, joined = world.joining()
        world.elect(2)
        assert name_of(joined) == "not_coordinator"
        assert name_of(world.join()) == "not_coordinator"
        world.elect(1)
        assert name_of(world.join()) == "member_id_required"

    def test_a_broker_that_stops_answers_what_waits(self) -> None:
        world = GroupWorld()
        _, joined = world.joining()
        world.groups.close()
        assert name_of(joined) == "not_coordinator"
