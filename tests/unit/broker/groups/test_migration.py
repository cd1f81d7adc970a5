"""A group changes between the protocols while its members read, by Kafka's behaviours (rules G10.1 to G10.21)."""

from dataclasses import replace
from typing import Any

import pytest

from kquorum.broker.groups.settings import MigrationPolicy
from kquorum.wire.message_codec import decode, encode
from kquorum.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kquorum.wire.messages.consumer_protocol_assignment import TopicPartition as Part
from kquorum.wire.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from tests.support.broker.consumer_world import INTERVAL_MS, ClientMember, ConsumerWorld, converge
from tests.support.broker.data_world import ORDERS, ORDERS_ID, Asked
from tests.support.broker.group_world import GROUP, SESSION_MS, SETTINGS, error_of_commit

ALL = {0, 1, 2, 3}


def protocols(*owned: int, topic: str = ORDERS, version: int = 1) -> tuple[tuple[str, bytes], ...]:
    subscription = ConsumerProtocolSubscription(topics=(topic,))
    if version >= 1 and owned:
        subscription.owned_partitions = (TopicPartition(topic=ORDERS, partitions=owned),)
    return (("range", bytes((0, version)) + encode(subscription, version)),)


def part(*indexes: int, user_data: bytes | None = None) -> bytes:
    topics = (Part(topic=ORDERS, partitions=indexes),) if indexes else ()
    return b"\x00\x01" + encode(
        ConsumerProtocolAssignment(assigned_partitions=topics, user_data=user_data), 1
    )


def parts_of(asked: Asked) -> set[int]:
    data = asked.answer.assignment
    found, _ = decode(ConsumerProtocolAssignment, data[1], data, 2)
    return {index for topic in found.assigned_partitions for index in topic.partitions}


def classic_group(world: ConsumerWorld, *given: bytes, instance_id: str | None = None) -> list[str]:
    """A stable group of the classic protocol in generation 1, the leader first, with these assignments."""
    if instance_id is None:
        joined = [world.joining(protocols=protocols()) for _ in given]
    else:
        joined = [("", world.join(protocols=protocols(), instance_id=instance_id)) for _ in given]
    world.pass_time(2 * SETTINGS.initial_rebalance_delay_ms)
    ids = [asked.answer.member_id for _, asked in joined]
    leader = joined[0][1].answer.leader
    ids.sort(key=lambda each: each != leader)
    assignments = dict(zip(ids, given, strict=True))
    for member_id in ids:
        world.sync(member_id, 1, assignments if member_id == leader else None, instance_id=instance_id)
    return ids


class ClassicClient:
    """A cooperative member of the classic protocol, which joins again when its heartbeat says so."""

    def __init__(self, world: ConsumerWorld, member_id: str, generation: int, owned: set[int]) -> None:
        self.world = world
        self.member_id = member_id
        self.generation = generation
        self.owned = owned

    def beat(self) -> None:
        error = self.world.beat(self.member_id, self.generation)
        if error == "none":
            return
        assert error == "rebalance_in_progress", error
        while True:
            answer = self.world.join(self.member_id, protocols=protocols(*sorted(self.owned))).answer
            assert answer.error_code.name == "none"
            assert (answer.leader, answer.members) == ("", ())
            self.generation = answer.generation_id
            synced = self.world.sync(self.member_id, self.generation)
            if synced.answer.error_code.name == "none":
                break
        found = parts_of(synced)
        revokes = not self.owned <= found
        self.owned = found
        if revokes:
            self.beat()


def migrated(world: ConsumerWorld) -> tuple[ClassicClient, ClientMember]:
    """A classic member and one of the consumer protocol share the partitions."""
    [member_id] = classic_group(world, part(0, 1, 2, 3))
    old, new = ClassicClient(world, member_id, 1, set(ALL)), ClientMember(world, "new")
    for _ in range(6):
        world.pass_time(INTERVAL_MS)
        assert new.beat() == "none"
        old.beat()
    assert old.owned | new.orders() == ALL
    assert len(old.owned) == 2
    return old, new


class TestUpgrade:
    @pytest.mark.parametrize("policy", list(MigrationPolicy))
    def test_an_empty_group_changes_under_any_policy(self, policy: MigrationPolicy) -> None:
        world = ConsumerWorld()
        world.settings = replace(SETTINGS, consumer_migration=policy)
        [member_id] = classic_group(world, part(0))
        world.commit(7, generation_id_or_member_epoch=1, member_id=member_id)
        world.leave((member_id, None))
        before = world.count()
        assert world.add("new").error_code.name == "none"
        assert world.kinds(before)[0] == "-CLASSIC"
        assert world.committed() == {(ORDERS, 0): 7}

    def test_a_simple_group_keeps_its_offsets(self) -> None:
        world = ConsumerWorld()
        world.commit(7)
        assert world.add("new").error_code.name == "none"
        assert world.committed() == {(ORDERS, 0): 7}
        world.fail_over()
        assert world.committed() == {(ORDERS, 0): 7}
        assert world.state()[0] == "Stable"

    def test_the_records_take_over_members_and_assignments(self) -> None:
        world = ConsumerWorld()
        ids = classic_group(world, part(0, 1), part(2, 3))
        before = world.count()
        answer = world.add("new")
        assert answer.error_code.name == "none"
        assert world.kinds(before)[:9] == [
            "-CLASSIC",
            "MEMBER_METADATA",
            "MEMBER_METADATA",
            "METADATA",
            "TARGET_ASSIGNMENT_MEMBER",
            "TARGET_ASSIGNMENT_MEMBER",
            "TARGET_ASSIGNMENT_METADATA",
            "CURRENT_MEMBER_ASSIGNMENT",
            "CURRENT_MEMBER_ASSIGNMENT",
        ]
        group = world.shard().consumers[GROUP]
        assert {each: set(group.members[each].assigned[ORDERS_ID]) for each in ids} == {
            ids[0]: {0, 1},
            ids[1]: {2, 3},
        }
        assert all(group.members[each].classic is not None for each in ids)
        assert {each.member_type for each in world.describe().members} == {0, 1}

    def test_members_that_wait_are_asked_to_join_again(self) -> None:
        world = ConsumerWorld()
        ids = classic_group(world, part(0, 1), part(2, 3))
        waiting = world.join(ids[0], protocols=protocols(topic="other"))
        assert waiting.is_waiting
        world.add("new")
        assert waiting.answer.error_code.name == "rebalance_in_progress"

    def test_an_empty_assignment_is_no_obstacle(self) -> None:
        """KAFKA-17733."""
        world = ConsumerWorld()
        classic_group(world, part(0, 1), b"")
        assert world.add("new").error_code.name == "none"

    @pytest.mark.parametrize(
        ("assignment", "settings"),
        [
            (part(0), {"consumer_migration": MigrationPolicy.DISABLED}),
            (part(0), {"consumer_migration": MigrationPolicy.DOWNGRADE}),
            (part(0), {"consumer_max_size": 1}),
            (part(0, user_data=b"mine"), {}),
            (b"\x00", {}),
        ],
        ids=["disabled", "downgrade only", "too many members", "user data", "unreadable"],
    )
    def test_what_stays_classic(self, assignment: bytes, settings: dict[str, Any]) -> None:
        world = ConsumerWorld()
        ids = classic_group(world, assignment, part(1))
        world.settings = replace(SETTINGS, **settings)
        before = world.count()
        assert world.add("new").error_code.name == "group_id_not_found"
        assert world.count() == before
        assert world.beat(ids[0], 1) == "none"

    def test_a_group_of_another_protocol_type_stays(self) -> None:
        world = ConsumerWorld()
        world.joining(protocol_type="connect", protocols=(("x", b""),))
        assert world.add("new").error_code.name == "group_id_not_found"

    def test_all_go_on_and_share(self) -> None:
        world = ConsumerWorld()
        migrated(world)
        assert world.state()[0] == "Stable"

    def test_a_static_member_changes_its_protocol(self) -> None:
        world = ConsumerWorld()
        [member_id] = classic_group(world, part(0, 1, 2, 3), instance_id="i")
        answer = world.add("new", instance_id="i")
        assert answer.error_code.name == "none"
        members = world.shard().consumers[GROUP].members
        assert set(members) == {"new"}
        assert members["new"].classic is None
        assert member_id not in members
        assert set(members["new"].assigned[ORDERS_ID]) == ALL


class TestClassicMembers:
    def test_a_new_member_gets_its_id_first(self) -> None:
        world = ConsumerWorld()
        world.add("new")
        before = world.count()
        refused = world.join(protocols=protocols()).answer
        assert refused.error_code.name == "member_id_required"
        assert world.count() == before
        world.pass_time(INTERVAL_MS)
        joined = world.join(refused.member_id, protocols=protocols()).answer
        assert (joined.error_code.name, joined.protocol_name, joined.leader) == ("none", "range", "")

    @pytest.mark.parametrize(
        ("fields", "error"),
        [
            ({"protocol_type": "connect"}, "inconsistent_group_protocol"),
            ({"session_ms": 1}, "invalid_session_timeout"),
            ({"protocols": (("range", b""),), "version": 3}, "unknown_server_error"),
        ],
    )
    def test_what_cannot_join(self, fields: dict[str, Any], error: str) -> None:
        world = ConsumerWorld()
        world.add("new")
        assert world.join(**({"protocols": protocols()} | fields)).answer.error_code.name == error

    def test_protocols_that_the_others_do_not_know(self) -> None:
        world = ConsumerWorld()
        migrated(world)
        other = (("roundrobin", protocols()[0][1]),)
        assert world.join(protocols=other).answer.error_code.name == "inconsistent_group_protocol"

    def test_a_full_group_and_one_that_may_not_change(self) -> None:
        world = ConsumerWorld()
        world.add("new")
        world.settings = replace(SETTINGS, consumer_max_size=1)
        assert world.join(protocols=protocols()).answer.error_code.name == "group_max_size_reached"
        world.settings = replace(SETTINGS, consumer_migration=MigrationPolicy.DISABLED)
        assert world.join(protocols=protocols()).answer.error_code.name == "inconsistent_group_protocol"

    @pytest.mark.parametrize("version", [0, 1, 2, 3])
    def test_assignments_have_the_version_of_the_subscription(self, version: int) -> None:
        world = ConsumerWorld()
        world.add("new", topics=())
        member_id = world.join(protocols=protocols(version=version)).answer.member_id
        joined = world.join(member_id, protocols=protocols(version=version)).answer
        synced = world.sync(member_id, joined.generation_id)
        assert synced.answer.assignment[:2] == bytes((0, version))
        assert parts_of(synced) == ALL

    def test_an_eager_member_owns_nothing_when_it_joins_and_gets_all_at_once(self) -> None:
        world = ConsumerWorld()
        [member_id] = classic_group(world, part(0, 1, 2, 3))
        new = ClientMember(world, "new")
        new.beat()
        assert world.beat(member_id, 1) == "rebalance_in_progress"
        joined = world.join(member_id, protocols=protocols(version=0)).answer
        synced = world.sync(member_id, joined.generation_id)
        world.pass_time(INTERVAL_MS)
        new.beat()
        assert len(parts_of(synced)) == 2
        assert parts_of(synced) | new.orders() == ALL

    @pytest.mark.parametrize(
        ("member_id", "generation", "fields", "error"),
        [
            ("absent", 0, {}, "unknown_member_id"),
            ("new", 0, {}, "unknown_member_id"),
            ("", 9, {}, "illegal_generation"),
            ("", 0, {"protocol": "other"}, "inconsistent_group_protocol"),
            ("", 0, {"instance_id": "i"}, "unknown_member_id"),
        ],
    )
    def test_syncs_that_are_refused(
        self, member_id: str, generation: int, fields: dict[str, Any], error: str
    ) -> None:
        world = ConsumerWorld()
        old, _ = migrated(world)
        asked = world.sync(member_id or old.member_id, generation or old.generation, **fields)
        assert asked.answer.error_code.name == error

    def test_heartbeats_that_are_refused(self) -> None:
        world = ConsumerWorld()
        old, _ = migrated(world)
        assert world.beat("absent", 1) == "unknown_member_id"
        assert world.beat("new", 1) == "unknown_member_id"
        assert world.beat(old.member_id, old.generation + 1) == "illegal_generation"
        assert world.beat(old.member_id, old.generation) == "none"

    def test_a_member_that_does_not_join_again_in_time_is_removed(self) -> None:
        world = ConsumerWorld()
        [member_id] = classic_group(world, part(0, 1, 2, 3))
        new = ClientMember(world, "new")
        new.beat()
        for _ in range(8):
            assert world.beat(member_id, 1) in ("rebalance_in_progress", "unknown_member_id")
            world.pass_time(SESSION_MS - 1_000)
            new.beat()
        assert set(world.shard().consumers[GROUP].members) == {"new"}

    def test_a_member_that_does_not_sync_in_time_is_removed(self) -> None:
        world = ConsumerWorld()
        new = ClientMember(world, "new")
        new.beat()
        member_id = world.join(protocols=protocols()).answer.member_id
        world.pass_time(INTERVAL_MS)
        generation = world.join(member_id, protocols=protocols()).answer.generation_id
        for _ in range(8):
            world.pass_time(SESSION_MS - 1_000)
            world.beat(member_id, generation)
            new.beat()
        assert set(world.shard().consumers[GROUP].members) == {"new"}

    def test_its_own_session_ends_it(self) -> None:
        world = ConsumerWorld()
        old, new = migrated(world)
        world.pass_time(SESSION_MS)
        assert old.member_id not in world.shard().consumers[GROUP].members
        assert new.beat() == "none"

    def test_one_whose_join_is_not_answered_in_time_does_not_stay_for_ever(self) -> None:
        """Its record counts all the same, and its client may never come back."""
        world = ConsumerWorld(has_follower=True)
        world.heartbeat("m", 0, topics=(ORDERS,), owned={}, rebalance_ms=300_000)
        world.follow()
        joined = world.join(version=3, protocols=protocols(), session_ms=SESSION_MS)
        world.pass_time(world.settings.commit_timeout_ms)
        assert joined.answer.error_code.name == "coordinator_not_available"
        world.follow()
        assert len(world.shard().consumers[GROUP].members) == 2
        world.pass_time(SESSION_MS)
        world.follow()
        assert not any(each.classic is not None for each in world.shard().consumers[GROUP].members.values())

    def test_an_administrator_removes_members_of_both_with_one_epoch(self) -> None:
        world = ConsumerWorld()
        old, _ = migrated(world)
        world.add("third")
        epoch = world.state()[1]
        answer = world.leave((old.member_id, None), ("third", None), ("absent", None), ("", "i"))
        assert [each.error_code.name for each in answer.members] == [
            "none",
            "none",
            "unknown_member_id",
            "unknown_member_id",
        ]
        assert world.state()[1] == epoch + 1
        before = world.count()
        world.leave(("absent", None))
        assert world.count() == before

    def test_commits_have_the_errors_of_the_protocol(self) -> None:
        world = ConsumerWorld()
        old, _ = migrated(world)

        def commit(generation: int) -> str:
            fields = {"member_id": old.member_id, "generation_id_or_member_epoch": generation}
            return error_of_commit(world.commit(7, version=8, **fields))

        assert commit(old.generation) == "none"
        assert commit(old.generation + 1) == "illegal_generation"


class TestDowngrade:
    def test_the_last_member_of_the_consumer_protocol_leaves(self) -> None:
        world = ConsumerWorld()
        old, new = migrated(world)
        epoch, before = world.state()[1], world.count()
        assert new.leave() == "none"
        kinds = world.kinds(before)
        assert kinds[-2:] == ["-METADATA", "CLASSIC"]
        assert all(kind.startswith("-") for kind in kinds[:-1])
        group = world.shard().groups[GROUP]
        assert (group.generation, group.state.value) == (epoch, "PreparingRebalance")
        assert world.beat(old.member_id, epoch) == "rebalance_in_progress"
        joined = world.join(old.member_id, protocols=protocols())
        assert joined.answer.leader == old.member_id
        world.sync(old.member_id, joined.answer.generation_id, {old.member_id: part(0, 1, 2, 3)})
        assert world.beat(old.member_id, joined.answer.generation_id) == "none"

    @pytest.mark.parametrize("way", ["session", "administrator"])
    def test_however_it_goes(self, way: str) -> None:
        world = ConsumerWorld()
        old, _ = migrated(world)
        if way == "administrator":
            world.leave(("new", None))
        else:
            for _ in range(6):
                world.pass_time(SESSION_MS - 1_000)
                if GROUP in world.shard().consumers:
                    old.beat()
        assert GROUP in world.shard().groups
        assert world.describe().error_code.name == "group_id_not_found"

    @pytest.mark.parametrize(
        "settings",
        [
            {"consumer_migration": MigrationPolicy.UPGRADE},
            {"consumer_migration": MigrationPolicy.DISABLED},
            {"max_size": 0},
        ],
    )
    def test_what_stays_a_consumer_group(self, settings: dict[str, Any]) -> None:
        world = ConsumerWorld()
        _, new = migrated(world)
        world.settings = replace(SETTINGS, **settings)
        new.leave()
        assert GROUP in world.shard().consumers
        assert world.state()[0] == "Assigning"

    def test_the_next_coordinator_loads_a_classic_group(self) -> None:
        world = ConsumerWorld()
        old, new = migrated(world)
        new.leave()
        world.fail_over()
        group = world.shard().groups[GROUP]
        assert set(group.members) == {old.member_id}
        assert group.state.value == "Stable"

    def test_a_static_member_goes_back_to_the_classic_protocol(self) -> None:
        world = ConsumerWorld()
        world.add("new", instance_id="i")
        classic = world.join(protocols=protocols(), instance_id="j").answer
        assert classic.error_code.name == "none"
        world.pass_time(INTERVAL_MS)
        epoch = world.heartbeat("new", 2, instance_id="i", owned={ORDERS_ID: ALL}).answer.member_epoch
        kept = world.shard().consumers[GROUP].members["new"].assigned
        epoch = world.heartbeat("new", epoch, instance_id="i", owned=kept).answer.member_epoch
        assert epoch == world.state()[1] == world.state()[2]
        joined = world.join(protocols=protocols(), instance_id="i").answer
        assert joined.error_code.name == "none"
        group = world.shard().groups[GROUP]
        assert group.state.value == "Stable"
        assert joined.generation_id == group.generation
        assert group.static["i"] == joined.member_id
        synced = world.sync(joined.member_id, joined.generation_id, instance_id="i")
        assert parts_of(synced) == set(kept[ORDERS_ID])

    def test_with_another_subscription_it_begins_a_rebalance(self) -> None:
        """KAFKA-19546."""
        world = ConsumerWorld()
        world.create_topic(12, "more")
        world.add("new", instance_id="i")
        world.join(protocols=protocols(), instance_id="j")
        world.pass_time(INTERVAL_MS)
        world.heartbeat("new", 2, instance_id="i", owned={ORDERS_ID: ALL})
        world.join(protocols=protocols(topic="more"), instance_id="i")
        assert world.shard().groups[GROUP].state.value == "PreparingRebalance"

    @pytest.mark.parametrize("policy", list(MigrationPolicy))
    def test_a_classic_join_takes_the_place_of_an_empty_group(self, policy: MigrationPolicy) -> None:
        world = ConsumerWorld()
        world.settings = replace(SETTINGS, consumer_migration=policy)
        world.add("m")
        world.commit(7, member_id="m", generation_id_or_member_epoch=2)
        world.heartbeat("m", -1)
        assert world.join().answer.error_code.name == "member_id_required"
        assert GROUP not in world.shard().consumers
        assert world.committed() == {(ORDERS, 0): 7}
        world.fail_over()
        assert GROUP not in world.shard().consumers


def test_a_rolling_restart_there_and_back_loses_no_partition() -> None:
    world = ConsumerWorld()
    ids = classic_group(world, part(0, 1), part(2, 3))
    old = [
        ClassicClient(world, member_id, 1, owned)
        for member_id, owned in zip(ids, ({0, 1}, {2, 3}), strict=True)
    ]
    new: list[ClientMember] = []
    for number in range(2):
        leaving = old.pop()
        world.leave((leaving.member_id, None))
        new.append(ClientMember(world, f"new-{number}"))
        for _ in range(8):
            world.pass_time(INTERVAL_MS)
            for each in new:
                assert each.beat() == "none"
            for other in old:
                other.beat()
        parts = [each.orders() for each in new] + [other.owned for other in old]
        assert sorted(index for each in parts for index in each) == sorted(ALL)
    assert world.describe().group_state == "Stable"
    new.pop().leave()
    converge(world, *new)
    assert new[0].orders() == ALL
