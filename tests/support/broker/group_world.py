"""A broker that coordinates groups, as its handlers see it: logs in memory, time and followers by hand."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from kquorum.broker.apis.api import Sliced
from kquorum.broker.apis.registry import BROKER_APIS
from kquorum.broker.coordinators.partitioning import OFFSETS_TOPIC, partition_of
from kquorum.broker.groups.coordinator import GroupCoordinator
from kquorum.broker.groups.settings import ConsumerGroupConfigs, GroupSettings, MigrationPolicy
from kquorum.broker.groups.shard import GroupShard
from kquorum.broker.replica.partition import Partition, TopicPartition, Wake
from kquorum.metadata.configs.resolution import NodeConfigs
from kquorum.network.requests import RequestContext
from kquorum.wire.data_batch import data_headers, read_data_records
from kquorum.wire.message_codec import decode, encode
from kquorum.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kquorum.wire.messages.heartbeat import HeartbeatRequest
from kquorum.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kquorum.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kquorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kquorum.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kquorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import message_types
from kquorum.wire.protocol.headers import RequestHeader
from kquorum.wire.record_parsing import Record
from tests.support.api_calls import as_read, read_answer
from tests.support.broker.data_world import BROKER, ORDERS, Asked, DataWorld
from tests.support.images import LISTENER, after, partition_record, topic_id, topic_records

SETTINGS = GroupSettings(
    initial_rebalance_delay_ms=3_000,
    min_session_timeout_ms=6_000,
    max_session_timeout_ms=1_800_000,
    max_size=10,
    metadata_max_bytes=20,
    commit_timeout_ms=5_000,
    load_buffer_bytes=1_000,
    retention_ms=7 * 24 * 3_600_000,
    retention_check_ms=600_000,
    compression_codec=0,
    protocols=frozenset({"classic", "consumer"}),
    consumer_max_size=10,
    consumer_assignors=("uniform", "range"),
    consumer_migration=MigrationPolicy.BIDIRECTIONAL,
    consumer_regex_refresh_ms=600_000,
)
GROUP = "foo"
SESSION_MS = 10_000
REBALANCE_MS = 60_000
OFFSETS_ID = 9
CLIENT = "a client"


def subscription(*topics: str) -> bytes:
    return b"\x00\x00" + encode(ConsumerProtocolSubscription(topics=topics), 0)


RANGE = (("range", subscription(ORDERS)),)


class GroupWorld(DataWorld):
    """This broker leads both partitions of `__consumer_offsets`; broker 2 follows when the test says so, with
    `has_follower`."""

    def __init__(
        self, *, has_follower: bool = False, settings: GroupSettings = SETTINGS, **services: Any
    ) -> None:
        super().__init__(**services)
        self.settings = settings
        self.ids = 0
        self.groups = self.new_coordinator()
        replicas = (BROKER, 2) if has_follower else (BROKER,)
        self.change(
            *topic_records(
                OFFSETS_ID,
                OFFSETS_TOPIC,
                partition_record(OFFSETS_ID, 0, replicas),
                partition_record(OFFSETS_ID, 1, replicas),
            )
        )

    def new_coordinator(self) -> GroupCoordinator:
        configs = ConsumerGroupConfigs(lambda image: NodeConfigs.of(image, BROKER, {}))
        made = GroupCoordinator(self, lambda: self.settings, self.new_id, lambda: 2, configs.timings)
        self.timings = lambda group_id: configs.timings(self.image, group_id)
        self.services = replace(self.services, groups=made)
        return made

    def new_id(self) -> UUID:
        self.ids += 1
        return UUID(int=self.ids)

    # What the adapter does

    def settle(self) -> None:
        self.replicas.submit_isr_changes()
        groups = getattr(self, "groups", None)
        while woken := self.replicas.outbox.take_woken():
            self.plane.waits.wake(woken)
            self.plane.waits.work(lambda: self.now_ms)
            if groups is not None:
                groups.handle_woken(self.now_ms, woken)
        while groups is not None and groups.load_some(self.now_ms):
            pass

    def change(self, *records: Any) -> None:
        delta, self.image = after(self.image, *records)
        self.services.cache.swap(self.image)
        self.replicas.handle_image(self.now_ms, delta, self.image)
        self.groups.handle_image(self.now_ms, delta, self.image)
        self.settle()

    def pass_time(self, ms: int) -> None:
        """In steps, as the timers come due."""
        end_ms = self.now_ms + ms
        while (due_ms := self.groups.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self.groups.expire(self.now_ms)
            self.settle()
        super().pass_time(end_ms - self.now_ms)

    def ask(self, request: Any, version: int | None = None, **context: Any) -> Asked:
        asked = super().ask(request, version, **context)
        self.settle()
        return asked

    def ask_local(self, request: Any, version: int | None = None, **fields: Any) -> Any:
        """Of a handler that answers at once."""
        api: Any = BROKER_APIS[ApiKey(request.api_key)]
        version = api.versions[1] if version is None else version
        context = RequestContext(
            1, "127.0.0.1", LISTENER, RequestHeader(request.api_key, version, 1, CLIENT), **fields
        )
        body = as_read(request.api_key, version, request)
        if isinstance(api, Sliced):
            advance = api.begin(context, body, self.services)
            while (made := advance()) is None:
                pass
            return decode(message_types(ApiKey(request.api_key))[1], version, made.data)[0]
        return read_answer(request.api_key, version, api.handle(context, body, self.services))

    # Of the group's partition

    def offsets_partition(self, group_id: str = GROUP) -> Partition:
        found = self.replicas.online(TopicPartition(OFFSETS_TOPIC, partition_of(group_id, 2)))
        assert found is not None
        return found

    def shard(self, group_id: str = GROUP) -> GroupShard:
        found = self.groups.shard_of(group_id)
        assert isinstance(found, GroupShard), found
        return found

    def follow(self, group_id: str = GROUP) -> None:
        """Broker 2 has all that is written of the group."""
        partition = self.offsets_partition(group_id)
        partition.read_as_follower(
            self.now_ms, 2, partition.log.log_end_offset, max_bytes=1_000_000, log_start_offset=0
        )
        self.settle()

    def records(self, group_id: str = GROUP) -> list[Record]:
        log: Any = self.offsets_partition(group_id).log
        found: list[Record] = []
        for batch in log.batches:
            for position, header in data_headers(batch.data):
                found += read_data_records(batch.data, position, header)
        return found

    def elect(self, leader: int, group_id: str = GROUP) -> None:
        index = partition_of(group_id, 2)
        self.change(PartitionChangeRecord(partition_id=index, topic_id=topic_id(OFFSETS_ID), leader=leader))

    def fail_over(self) -> None:
        """Another process takes over the log as it is."""
        self.groups.close()
        self.groups = self.new_coordinator()
        self.groups.begin(self.image)
        for index in (0, 1):
            self.groups.handle_woken(self.now_ms, {TopicPartition(OFFSETS_TOPIC, index): Wake.ROLE})
        self.settle()

    # Members

    def join(
        self,
        member_id: str = "",
        *,
        version: int = 9,
        group_id: str = GROUP,
        instance_id: str | None = None,
        protocols: Sequence[tuple[str, bytes]] = RANGE,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
    ) -> Asked:
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols),
        )
        return self.ask(request, version)

    def joining(self, **fields: Any) -> tuple[str, Asked]:
        """A new dynamic member, which first gets its id (KIP-394)."""
        refused = self.join(**fields).answer
        assert refused.error_code.name == "member_id_required"
        return refused.member_id, self.join(refused.member_id, **fields)

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group_id: str = GROUP,
        instance_id: str | None = None,
        protocol: str = "range",
        version: int = 5,
    ) -> Asked:
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocol_name=protocol,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=each, assignment=data)
                for each, data in (assignments or {}).items()
            ),
        )
        return self.ask(request, version)

    def beat(self, member_id: str, generation: int, instance_id: str | None = None) -> str:
        request = HeartbeatRequest(
            group_id=GROUP, generation_id=generation, member_id=member_id, group_instance_id=instance_id
        )
        name: str = self.ask(request).answer.error_code.name
        return name

    def leave(self, *members: tuple[str, str | None], group_id: str = GROUP) -> Any:
        identities = tuple(
            MemberIdentity(member_id=member_id, group_instance_id=instance_id)
            for member_id, instance_id in members
        )
        return self.ask(LeaveGroupRequest(group_id=group_id, members=identities)).answer

    def stable(self, count: int = 2) -> list[str]:
        """A group of so many dynamic members, the leader first, in generation 1."""
        joined = [self.joining() for _ in range(count)]
        self.pass_time(2 * SETTINGS.initial_rebalance_delay_ms)
        answers = [asked.answer for _, asked in joined]
        assert {answer.generation_id for answer in answers} == {1}
        ids = [answer.leader for answer in answers[:1]]
        ids += [member_id for member_id, _ in joined if member_id != ids[0]]
        given = {member_id: f"part of {number}".encode() for number, member_id in enumerate(ids)}
        syncs = [self.sync(member_id, 1, given if member_id == ids[0] else None) for member_id in ids]
        if any(each.is_waiting for each in syncs):
            self.follow()
        assert [each.answer.assignment for each in syncs] == list(given.values())
        return ids

    # Offsets

    def commit(
        self,
        offset: int,
        *,
        group_id: str = GROUP,
        topic: str = ORDERS,
        index: int = 0,
        metadata: str = "",
        version: int = 9,
        topic_id: UUID | None = None,
        **fields: Any,
    ) -> Asked:
        partition = OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=metadata
        )
        named = {"name": topic} if topic_id is None else {"topic_id": topic_id}
        return self.ask(
            OffsetCommitRequest(
                group_id=group_id,
                topics=(OffsetCommitRequestTopic(partitions=(partition,), **named),),
                **fields,
            ),
            version,
        )

    def fetch(
        self,
        *indexes: int,
        group_id: str = GROUP,
        topic: str = ORDERS,
        stable: bool = False,
        version: int = 9,
    ) -> Asked:
        topics = (OffsetFetchRequestTopics(name=topic, partition_indexes=indexes),) if indexes else None
        group = OffsetFetchRequestGroup(group_id=group_id, topics=topics)
        return self.ask(OffsetFetchRequest(groups=(group,), require_stable=stable), version)

    def committed(self, group_id: str = GROUP) -> dict[tuple[str, int], int]:
        [group] = self.fetch(group_id=group_id).answer.groups
        return {
            (topic.name, each.partition_index): each.committed_offset
            for topic in group.topics
            for each in topic.partitions
        }


def error_of_commit(asked: Asked) -> str:
    [topic] = asked.answer.topics
    [partition] = topic.partitions
    name: str = partition.error_code.name
    return name
