"""Committed offsets: who may commit, who reads them and when, how they end, by Kafka's behaviours."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from kquorum.wire.data_batch import write_data_batch, write_transaction_marker
from kquorum.wire.messages.delete_groups import DeleteGroupsRequest
from kquorum.wire.messages.describe_groups import DescribeGroupsRequest
from kquorum.wire.messages.list_groups import ListGroupsRequest
from kquorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kquorum.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kquorum.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from kquorum.wire.metadata_records.topics import RemoveTopicRecord
from kquorum.wire.offsets_records import (
    OffsetCommitValue,
    OffsetKey,
    decode_key,
    decode_offset_value,
    encode_offset_key,
    encode_offset_value,
)
from kquorum.wire.record_parsing import Record
from kquorum.wire.transaction_markers import TransactionMarker
from tests.support.broker.data_world import ORDERS, ORDERS_ID
from tests.support.broker.group_world import GROUP, SESSION_MS, SETTINGS, GroupWorld, error_of_commit
from tests.support.images import topic_id

PRODUCER = 4000


def delete_offsets(world: GroupWorld, *indexes: int, group_id: str = GROUP, topic: str = ORDERS) -> Any:
    partitions = tuple(OffsetDeleteRequestPartition(partition_index=index) for index in indexes)
    topics = (OffsetDeleteRequestTopic(name=topic, partitions=partitions),)
    return world.ask(OffsetDeleteRequest(group_id=group_id, topics=topics)).answer


def delete_groups(world: GroupWorld, *group_ids: str) -> dict[str, str]:
    answer = world.ask(DeleteGroupsRequest(groups_names=group_ids)).answer
    return {each.group_id: each.error_code.name for each in answer.results}


def listed(world: GroupWorld, **filters: Any) -> list[tuple[str, str, str, str]]:
    answer = world.ask_local(ListGroupsRequest(**filters))
    assert answer.error_code.name == "none"
    return [(each.group_id, each.protocol_type, each.group_state, each.group_type) for each in answer.groups]


def in_log(world: GroupWorld, group_id: str = GROUP, **value: Any) -> None:
    """An offset of another coordinator's time."""
    partition = world.offsets_partition(group_id)
    key = encode_offset_key(OffsetKey(group_id, ORDERS, value.pop("index", 0)))
    transaction = value.pop("transaction", {})
    record = Record(0, world.now_ms, key, encode_offset_value(OffsetCommitValue(**value)))
    partition.append(world.now_ms, write_data_batch([record], **transaction), required_acks=1)


class TestCommitting:
    def test_the_longest_retention_is_for_ever(self) -> None:
        world = GroupWorld()
        asked = world.commit(7, version=4, retention_time_ms=2**63 - 1)
        assert error_of_commit(asked) == "none"
        assert world.committed() == {(ORDERS, 0): 7}

    def test_a_client_without_a_group_commits_and_is_told_when_it_is_safe(self) -> None:
        world = GroupWorld(has_follower=True)
        asked = world.commit(7)
        assert asked.is_waiting
        assert world.committed() == {}
        world.follow()
        assert error_of_commit(asked) == "none"
        assert world.committed() == {(ORDERS, 0): 7}

    def test_the_record(self) -> None:
        world = GroupWorld()
        world.commit(7, metadata="note")
        [record] = world.records()
        assert record.key is not None
        assert record.value is not None
        assert decode_key(record.key) == OffsetKey(GROUP, ORDERS, 0)
        assert decode_offset_value(record.value) == OffsetCommitValue(
            offset=7, metadata="note", commit_timestamp=world.now_ms, topic_id=ORDERS_ID
        )

    def test_a_partition_that_is_named_often_gets_one_record(self) -> None:
        """150,000 entries of one partition held the loop of a broker for seven seconds."""
        world = GroupWorld()
        entries = [(1, ""), (2, "x" * 5_000), (3, ""), (4, "x" * 5_000)]
        partitions = tuple(
            OffsetCommitRequestPartition(committed_offset=offset, committed_metadata=metadata)
            for offset, metadata in entries
        )
        topic = OffsetCommitRequestTopic(name=ORDERS, partitions=partitions)
        asked = world.ask(OffsetCommitRequest(group_id=GROUP, topics=(topic,)), 9)
        told = [each.error_code.name for each in asked.answer.topics[0].partitions]
        assert told == ["none", "offset_metadata_too_large"] * 2
        assert len(world.records()) == 1
        assert world.committed() == {(ORDERS, 0): 3}

    def test_a_commit_that_its_replicas_do_not_get_in_time(self) -> None:
        world = GroupWorld(has_follower=True)
        asked = world.commit(7)
        world.pass_time(SETTINGS.commit_timeout_ms)
        assert error_of_commit(asked) == "coordinator_not_available"
        # The record stays, and counts once it is replicated.
        world.follow()
        assert world.committed() == {(ORDERS, 0): 7}

    def test_topics_by_id(self) -> None:
        world = GroupWorld()
        assert error_of_commit(world.commit(7, version=10, topic_id=ORDERS_ID)) == "none"
        assert error_of_commit(world.commit(7, version=10, topic_id=UUID(int=99))) == "unknown_topic_id"
        assert world.committed() == {(ORDERS, 0): 7}

    @pytest.mark.parametrize(
        ("fields", "error"),
        [
            ({"topic": "nowhere"}, "unknown_topic_or_partition"),
            ({"index": 50}, "unknown_topic_or_partition"),
            ({"metadata": "x" * 21}, "offset_metadata_too_large"),
            ({"metadata": "😀" * 11}, "offset_metadata_too_large"),
            ({"metadata": "😀" * 10}, "none"),
            ({"group_id": ""}, "none"),
            ({"generation_id_or_member_epoch": 3, "version": 8}, "illegal_generation"),
            ({"generation_id_or_member_epoch": 3, "version": 9}, "group_id_not_found"),
        ],
    )
    def test_what_is_refused(self, fields: dict[str, Any], error: str) -> None:
        assert error_of_commit(GroupWorld().commit(7, **fields)) == error

    @pytest.mark.parametrize(
        ("fields", "error"),
        [
            ({}, "unknown_member_id"),
            ({"member_id": "another", "generation_id_or_member_epoch": 1}, "unknown_member_id"),
            ({"generation_id_or_member_epoch": 2}, "illegal_generation"),
            ({"generation_id_or_member_epoch": 1}, "none"),
            ({"generation_id_or_member_epoch": 1, "group_instance_id": "a"}, "unknown_member_id"),
        ],
    )
    def test_a_group_with_members_takes_those_of_members(self, fields: dict[str, Any], error: str) -> None:
        world = GroupWorld()
        [leader] = world.stable(1)
        member = {"member_id": leader} if fields else {}
        assert error_of_commit(world.commit(7, **(member | fields))) == error

    def test_a_commit_tells_that_the_member_lives(self) -> None:
        world = GroupWorld()
        [leader] = world.stable(1)
        world.pass_time(SESSION_MS - 1)
        world.commit(7, member_id=leader, generation_id_or_member_epoch=1)
        world.pass_time(SESSION_MS - 1)
        assert world.beat(leader, 1) == "none"

    def test_members_may_commit_while_others_join_but_not_before_their_sync(self) -> None:
        world = GroupWorld()
        leader, follower = world.stable(2)
        world.join(leader)
        fields: dict[str, Any] = {"member_id": follower, "generation_id_or_member_epoch": 1}
        assert error_of_commit(world.commit(7, **fields)) == "none"
        world.join(follower)
        fields["generation_id_or_member_epoch"] = 2
        assert error_of_commit(world.commit(7, **fields)) == "rebalance_in_progress"


class TestFetching:
    def test_what_is_not_committed_is_minus_one_without_an_error(self) -> None:
        world = GroupWorld()
        world.commit(7)
        [group] = world.fetch(0, 1).answer.groups
        [topic] = group.topics
        assert [(each.partition_index, each.committed_offset) for each in topic.partitions] == [
            (0, 7),
            (1, -1),
        ]
        assert {each.error_code.name for each in topic.partitions} == {"none"}
        assert world.committed("fooo") == {}

    def test_a_stable_fetch_waits_for_what_is_written(self) -> None:
        world = GroupWorld(has_follower=True)
        world.commit(7)
        asked = world.fetch(0, stable=True)
        assert asked.is_waiting
        world.follow()
        [group] = asked.answer.groups
        assert group.topics[0].partitions[0].committed_offset == 7

    def test_a_stable_fetch_that_cannot_be_sure_sends_the_client_on(self) -> None:
        world = GroupWorld(has_follower=True)
        world.commit(7)
        asked = world.fetch(0, stable=True)
        world.pass_time(SETTINGS.commit_timeout_ms)
        [group] = asked.answer.groups
        assert group.error_code.name == "not_coordinator"

    @pytest.mark.parametrize("version", range(1, 8))
    def test_older_versions_ask_for_one_group(self, version: int) -> None:
        world = GroupWorld()
        world.commit(7)
        topics = (OffsetFetchRequestTopic(name=ORDERS, partition_indexes=(0,)),)
        answer = world.ask(OffsetFetchRequest(group_id=GROUP, topics=topics), version).answer
        [topic] = answer.topics
        assert (topic.name, topic.partitions[0].committed_offset) == (ORDERS, 7)

    def test_the_first_version_has_its_errors_in_the_partitions(self) -> None:
        world = GroupWorld(has_follower=True)
        world.elect(2)
        topics = (OffsetFetchRequestTopic(name=ORDERS, partition_indexes=(0,)),)
        answer = world.ask(OffsetFetchRequest(group_id=GROUP, topics=topics), 1).answer
        [topic] = answer.topics
        assert topic.partitions[0].error_code.name == "not_coordinator"

    def test_an_offset_of_a_topic_that_was_made_again_is_not_one_of_the_new_topic(self) -> None:
        world = GroupWorld()
        in_log(world, offset=7, topic_id=topic_id(77))
        in_log(world, offset=8, index=1)
        world.fail_over()
        # The record of partition 1 is of a release that knew no ids.
        assert world.committed() == {(ORDERS, 0): -1, (ORDERS, 1): 8}


class TestTransactions:
    @pytest.mark.parametrize("is_commit", [True, False])
    def test_offsets_of_a_transaction_count_when_it_is_committed(self, is_commit: bool) -> None:
        """A coordinator of Kafka's wrote them; this one loads them."""
        world = GroupWorld()
        in_log(world, offset=5)
        transaction = {
            "producer_id": PRODUCER,
            "producer_epoch": 0,
            "base_sequence": 0,
            "transactional": True,
        }
        in_log(world, offset=9, transaction=transaction)
        world.fail_over()
        assert world.committed() == {(ORDERS, 0): 5}
        [group] = world.fetch(0, stable=True).answer.groups
        assert group.topics[0].partitions[0].error_code.name == "unstable_offset_commit"
        marker = write_transaction_marker(
            TransactionMarker(is_commit, 1), producer_id=PRODUCER, producer_epoch=0, timestamp_ms=1
        )
        world.offsets_partition().append(world.now_ms, marker, required_acks=1)
        world.fail_over()
        assert world.committed() == {(ORDERS, 0): 9 if is_commit else 5}


class TestDeleting:
    def test_offsets_of_a_group_that_reads_other_topics(self) -> None:
        world = GroupWorld()
        world.commit(7)
        world.commit(8, index=1)
        answer = delete_offsets(world, 0, 9)
        assert [each.error_code.name for each in answer.topics[0].partitions] == [
            "none",
            "unknown_topic_or_partition",
        ]
        assert world.committed() == {(ORDERS, 1): 8}
        assert world.records()[-1].value is None

    def test_not_those_of_a_subscribed_topic(self) -> None:
        world = GroupWorld()
        [leader] = world.stable(1)
        world.commit(7, member_id=leader, generation_id_or_member_epoch=1)
        [partition] = delete_offsets(world, 0).topics[0].partitions
        assert partition.error_code.name == "group_subscribed_to_topic"
        assert world.committed() == {(ORDERS, 0): 7}

    @pytest.mark.parametrize(
        ("group_id", "error"), [("", "invalid_group_id"), ("fooo", "group_id_not_found")]
    )
    def test_groups_that_are_not_there(self, group_id: str, error: str) -> None:
        assert delete_offsets(GroupWorld(), 0, group_id=group_id).error_code.name == error

    def test_a_group_goes_with_its_offsets(self) -> None:
        world = GroupWorld()
        world.commit(7)
        assert delete_groups(world, GROUP, "fooo", GROUP) == {GROUP: "none", "fooo": "group_id_not_found"}
        assert world.committed() == {}
        assert listed(world) == []
        world.fail_over()
        assert (world.committed(), listed(world)) == ({}, [])

    def test_a_group_with_members_stays(self) -> None:
        world = GroupWorld()
        world.stable(1)
        assert delete_groups(world, GROUP) == {GROUP: "non_empty_group"}

    def test_a_deleted_topic_takes_its_offsets_along(self) -> None:
        world = GroupWorld()
        world.commit(7)
        world.groups.forget_topics(world.now_ms, {ORDERS})
        world.settle()
        assert world.committed() == {}
        assert world.records()[-1].value is None

    def test_what_is_committed_for_the_next_topic_of_that_name_stays(self) -> None:
        """The offsets of a deleted topic are looked for later, after the work of other shards."""
        world = GroupWorld()
        world.commit(7)
        world.commit(8, index=1)
        world.groups.forget_topics(world.now_ms, {ORDERS})
        world.commit(9)
        assert world.committed() == {(ORDERS, 0): 9}

    def test_the_image_tells_of_deleted_topics(self) -> None:
        world = GroupWorld()
        world.commit(7)
        world.change(RemoveTopicRecord(topic_id=ORDERS_ID))
        assert world.committed() == {}


class TestListing:
    def test_states_and_kinds(self) -> None:
        world = GroupWorld()
        world.stable(1)
        world.commit(7, group_id="simple")
        assert listed(world) == [
            (GROUP, "consumer", "Stable", "classic"),
            ("simple", "", "Empty", "classic"),
        ]
        assert [each[0] for each in listed(world, states_filter=(" stable ",))] == [GROUP]
        assert [each[0] for each in listed(world, types_filter=("Classic",))] == [GROUP, "simple"]
        assert listed(world, types_filter=("consumer",)) == []

    def test_members_are_described_with_their_parts(self) -> None:
        world = GroupWorld()
        leader, _ = world.stable(2)
        request = DescribeGroupsRequest(groups=(GROUP, "fooo"), include_authorized_operations=True)
        found, absent = world.ask_local(request).groups
        assert (found.group_state, found.protocol_data) == ("Stable", "range")
        assert [each.member_assignment for each in found.members] == [b"part of 0", b"part of 1"]
        assert found.authorized_operations > 0
        assert (absent.error_code.name, absent.group_state) == ("group_id_not_found", "Dead")
        world.join(leader)
        [joining] = world.ask_local(DescribeGroupsRequest(groups=(GROUP,))).groups
        assert (joining.group_state, joining.protocol_data) == ("PreparingRebalance", "")
        assert {each.member_assignment for each in joining.members} == {b""}

    @pytest.mark.parametrize("version", range(6))
    def test_before_version_6_an_absent_group_is_dead(self, version: int) -> None:
        [group] = GroupWorld().ask_local(DescribeGroupsRequest(groups=("fooo",)), version).groups
        assert (group.error_code.name, group.group_state) == ("none", "Dead")


class TestExpiry:
    RETENTION_MS = SETTINGS.retention_ms

    def test_offsets_of_a_simple_group_expire_by_their_commit(self) -> None:
        world = GroupWorld()
        world.commit(7)
        world.pass_time(self.RETENTION_MS // 2)
        world.commit(8, index=1)
        world.pass_time(self.RETENTION_MS // 2 + SETTINGS.retention_check_ms)
        assert world.committed() == {(ORDERS, 1): 8}
        world.pass_time(self.RETENTION_MS)
        assert listed(world) == []

    def test_offsets_of_a_subscribed_topic_stay(self) -> None:
        world = GroupWorld(settings=replace(SETTINGS, retention_ms=2 * SESSION_MS, retention_check_ms=1_000))
        [leader] = world.stable(1)
        world.commit(7, member_id=leader, generation_id_or_member_epoch=1)
        for _ in range(10):
            world.pass_time(SESSION_MS // 2)
            assert world.beat(leader, 1) == "none"
        assert world.committed() == {(ORDERS, 0): 7}
        world.leave((leader, None))
        world.pass_time(2 * SESSION_MS - 1_000)
        assert world.committed() == {(ORDERS, 0): 7}
        world.pass_time(2_000)
        assert world.committed() == {}
        assert listed(world) == []

    def test_a_commit_with_a_retention_of_its_own(self) -> None:
        world = GroupWorld()
        world.commit(7, version=4, retention_time_ms=1_000)
        world.pass_time(SETTINGS.retention_check_ms)
        assert world.committed() == {}


class TestLoading:
    def test_the_next_coordinator_knows_the_offsets(self) -> None:
        world = GroupWorld()
        for offset in range(200):
            world.commit(offset, index=offset % 3)
        world.fail_over()
        assert world.committed() == {(ORDERS, 0): 198, (ORDERS, 1): 199, (ORDERS, 2): 197}

    def test_while_it_loads_clients_are_asked_to_wait_and_members_beat_on(self) -> None:
        world = GroupWorld(has_follower=True)
        world.commit(7)
        world.groups.close()
        world.groups = world.new_coordinator()
        world.groups.begin(world.image)
        world.groups._take_role(world.offsets_partition().topic_partition)
        assert world.groups.is_loading
        [group] = DataAsk.fetch(world)
        assert group.error_code.name == "coordinator_load_in_progress"
        assert world.ask_local(ListGroupsRequest()).error_code.name == "coordinator_load_in_progress"

    def test_a_value_of_an_unknown_version_fails_the_load(self) -> None:
        world = GroupWorld()
        partition = world.offsets_partition()
        record = Record(0, 1, encode_offset_key(OffsetKey(GROUP, ORDERS, 0)), b"\x00\x63")
        partition.append(world.now_ms, write_data_batch([record]), required_acks=1)
        world.fail_over()
        [group] = world.fetch(0).answer.groups
        assert group.error_code.name == "not_coordinator"

    def test_a_type_of_a_later_release_is_skipped(self) -> None:
        world = GroupWorld()
        partition = world.offsets_partition()
        partition.append(world.now_ms, write_data_batch([Record(0, 1, b"\x00\x63", b"")]), required_acks=1)
        world.commit(7)
        world.fail_over()
        assert world.committed() == {(ORDERS, 0): 7}

    def test_a_streams_group_keeps_its_name_while_it_has_members(self) -> None:
        world = GroupWorld()
        partition = world.offsets_partition()
        group, member = b"\x00\x11\x00\x03foo", b"\x00\x13\x00\x03foo\x00\x01m"
        records = [Record(0, 1, group, b"\x00\x00"), Record(1, 1, member, b"\x00\x00")]
        partition.append(world.now_ms, write_data_batch(records), required_acks=1)
        world.fail_over()
        assert listed(world) == [(GROUP, "streams", "Stable", "streams")]
        assert world.join().answer.error_code.name == "inconsistent_group_protocol"
        assert error_of_commit(world.commit(7)) == "unknown_member_id"
        assert delete_groups(world, GROUP) == {GROUP: "non_empty_group"}
        partition.append(world.now_ms, write_data_batch([Record(0, 1, member, None)]), required_acks=1)
        world.fail_over()
        assert error_of_commit(world.commit(7)) == "none"
        # A classic group takes its place.
        assert world.join().answer.error_code.name == "member_id_required"
        assert (group, None) in [(each.key, each.value) for each in world.records()]
        assert world.committed() == {(ORDERS, 0): 7}


class DataAsk:
    """A request as it comes while a shard loads: nothing is settled first."""

    @staticmethod
    def fetch(world: GroupWorld) -> Any:
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=None),))
        return super(GroupWorld, world).ask(request, 9).answer.groups
