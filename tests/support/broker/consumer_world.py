"""Members of the consumer protocol (KIP-848) as a coordinator sees them: a client that does what its heartbeats say."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kquorum.wire.consumer_group_records import (
    CONSUMER_TYPES,
    ConsumerKey,
    Value,
    decode_consumer_key,
    decode_consumer_value,
)
from kquorum.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kquorum.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    RequestTopicPartitions,
)
from kquorum.wire.messages.delete_groups import DeleteGroupsRequest
from kquorum.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kquorum.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kquorum.wire.metadata_records.features import FeatureLevelRecord
from kquorum.wire.offsets_records import GroupKey, ModernKey, decode_group_value, decode_key
from tests.support.broker.data_world import ORDERS, ORDERS_ID, Asked
from tests.support.broker.group_world import GROUP, GroupWorld
from tests.support.images import partition_record, topic_records

SESSION_MS = 45_000
INTERVAL_MS = 1_000
REBALANCE_MS = 60_000


class ConsumerWorld(GroupWorld):
    """The topic ORDERS has four partitions."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.change(FeatureLevelRecord(name="group.version", feature_level=1))

    def heartbeat(
        self,
        member_id: str,
        epoch: int,
        *,
        group_id: str = GROUP,
        topics: Collection[str] | None = None,
        regex: str | None = None,
        owned: Mapping[UUID, Collection[int]] | None = None,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_ms: int = -1,
        assignor: str | None = None,
        version: int = 1,
    ) -> Asked:
        request = ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=instance_id,
            rack_id=rack_id,
            rebalance_timeout_ms=rebalance_ms,
            subscribed_topic_names=None if topics is None else tuple(topics),
            server_assignor=assignor,
            topic_partitions=None
            if owned is None
            else tuple(
                RequestTopicPartitions(topic_id=topic_id, partitions=tuple(sorted(partitions)))
                for topic_id, partitions in owned.items()
            ),
        )
        if version >= 1:
            request.subscribed_topic_regex = regex
        return self.ask(request, version)

    def add(self, member_id: str, *, epoch: int = 0, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """A member joins, with one request."""
        fields.setdefault("topics", None if "regex" in fields else (ORDERS,))
        fields.setdefault("rebalance_ms", REBALANCE_MS)
        asked = self.heartbeat(member_id, epoch, owned={}, **fields)
        if asked.is_waiting:
            self.follow(fields.get("group_id", GROUP))
        answer: ConsumerGroupHeartbeatResponse = asked.answer
        return answer

    def error(self, member_id: str, epoch: int, **fields: Any) -> str:
        name: str = self.heartbeat(member_id, epoch, **fields).answer.error_code.name
        return name

    def describe(self, group_id: str = GROUP, **fields: Any) -> Any:
        request = ConsumerGroupDescribeRequest(group_ids=(group_id,), **fields)
        [found] = self.ask_local(request).groups
        return found

    def delete(self, group_id: str = GROUP) -> str:
        [result] = self.ask(DeleteGroupsRequest(groups_names=(group_id,))).answer.results
        name: str = result.error_code.name
        return name

    def delete_offset(self, index: int = 0) -> str:
        partition = OffsetDeleteRequestPartition(partition_index=index)
        topics = (OffsetDeleteRequestTopic(name=ORDERS, partitions=(partition,)),)
        answer = self.ask(OffsetDeleteRequest(group_id=GROUP, topics=topics)).answer
        [topic] = answer.topics
        name: str = topic.partitions[0].error_code.name
        return name

    def fetch_as(self, member_id: str | None, epoch: int, *, stable: bool = False) -> str:
        """The error of a member that reads the offsets."""
        group = OffsetFetchRequestGroup(group_id=GROUP, member_id=member_id, member_epoch=epoch, topics=None)
        [found] = self.ask(OffsetFetchRequest(groups=(group,), require_stable=stable), 9).answer.groups
        name: str = found.error_code.name
        return name

    def state(self, group_id: str = GROUP) -> tuple[str, int, int]:
        """In words, the group epoch, the assignment epoch."""
        found = self.describe(group_id)
        return found.group_state, found.group_epoch, found.assignment_epoch

    def create_topic(self, number: int, name: str, partitions: int = 1) -> None:
        records = [partition_record(number, index, (1, 2)) for index in range(partitions)]
        self.change(*topic_records(number, name, *records))

    def written(self, since: int = 0, group_id: str = GROUP) -> list[tuple[Any, Any]]:
        """Keys and values from the record `since` on, decoded; None is a tombstone."""
        found: list[tuple[Any, Any]] = []
        for record in self.records(group_id)[since:]:
            assert record.key is not None
            key = decode_key(record.key)
            if isinstance(key, ModernKey) and key.type in CONSUMER_TYPES:
                consumer_key: ConsumerKey = decode_consumer_key(key.type, record.key)
                value: Value | None = (
                    None if record.value is None else decode_consumer_value(key.type, record.value)
                )
                found.append((consumer_key, value))
            elif isinstance(key, GroupKey):
                found.append((key, None if record.value is None else decode_group_value(record.value)))
            else:
                found.append((key, record.value))
        return found

    def kinds(self, since: int = 0, group_id: str = GROUP) -> list[str]:
        """The names of the records' types, a tombstone with a minus before it."""
        return [
            ("" if value is not None else "-")
            + (key.type.name.removeprefix("CONSUMER_GROUP_") if hasattr(key, "type") else "CLASSIC")
            for key, value in self.written(since, group_id)
        ]

    def count(self, group_id: str = GROUP) -> int:
        return len(self.records(group_id))


@dataclass(slots=True)
class ClientMember:
    """Gives up at once what it is to give up, unless `holds`; says what it owns when that changed."""

    world: ConsumerWorld
    member_id: str
    topics: Collection[str] | None = (ORDERS,)
    regex: str | None = None
    instance_id: str | None = None
    group_id: str = GROUP
    holds: bool = False
    epoch: int = 0
    owned: dict[UUID, set[int]] = field(default_factory=dict)
    to_have: dict[UUID, set[int]] = field(default_factory=dict)
    has_news: bool = True

    def beat(self) -> str:
        """One heartbeat; the name of its error."""
        joins = self.epoch == 0
        owned: Mapping[UUID, Collection[int]] | None = None
        if joins:
            owned = {}
        elif self.has_news:
            owned = self.owned
        asked = self.world.heartbeat(
            self.member_id,
            self.epoch,
            group_id=self.group_id,
            topics=self.topics if joins else None,
            regex=self.regex if joins else None,
            instance_id=self.instance_id,
            rebalance_ms=REBALANCE_MS if joins else -1,
            owned=owned,
        )
        if asked.is_waiting:
            self.world.follow(self.group_id)
        answer = asked.answer
        if answer.error_code.name != "none":
            if answer.error_code.name in ("fenced_member_epoch", "unknown_member_id"):
                self.epoch, self.owned, self.to_have, self.has_news = 0, {}, {}, True
            return str(answer.error_code.name)
        self.epoch = answer.member_epoch
        self.has_news = False
        if answer.assignment is not None:
            self.to_have = {
                each.topic_id: set(each.partitions) for each in answer.assignment.topic_partitions
            }
        if not self.holds:
            self.settle()
        return "none"

    def settle(self) -> None:
        if self.owned != self.to_have:
            self.owned = {topic: set(each) for topic, each in self.to_have.items()}
            self.has_news = True

    def leave(self, epoch: int = -1) -> str:
        name = self.world.error(self.member_id, epoch, group_id=self.group_id, instance_id=self.instance_id)
        self.epoch, self.owned, self.to_have, self.has_news = 0, {}, {}, True
        return name

    def orders(self) -> set[int]:
        """The partitions of ORDERS that it has."""
        return self.owned.get(ORDERS_ID, set())


def converge(world: ConsumerWorld, *members: ClientMember, rounds: int = 12) -> None:
    """All beat, in turns, until none has news and all are at the group's epoch."""
    for _ in range(rounds):
        world.pass_time(INTERVAL_MS)
        for member in members:
            assert member.beat() == "none"
        group_ids = {member.group_id for member in members}
        if all(world.state(group_id)[0] == "Stable" for group_id in group_ids) and not any(
            member.has_news for member in members
        ):
            return
    raise AssertionError([world.describe(each) for each in {member.group_id for member in members}])
