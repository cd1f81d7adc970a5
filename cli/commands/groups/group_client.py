"""Consumer groups as a client of brokers sees and changes them: each request goes to the group's coordinator."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from kquorum.cli.clients.cluster_client import ClusterClient
from kquorum.cli.clients.coordinator_client import CoordinatedKey, CoordinatorClient, check
from kquorum.cli.failures import CliError
from kquorum.wire.errors import DecodeError, UnsupportedVersion
from kquorum.wire.message_codec import decode
from kquorum.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
)
from kquorum.wire.messages.consumer_group_describe import DescribedGroup as ConsumerGroup
from kquorum.wire.messages.consumer_group_describe import Member as ConsumerMember
from kquorum.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kquorum.wire.messages.delete_groups import DeleteGroupsRequest
from kquorum.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsRequest
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.list_groups import ListedGroup, ListGroupsRequest
from kquorum.wire.messages.metadata import MetadataRequest
from kquorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kquorum.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

_LATEST: Final = -1
# What a coordinator says that has no consumer group of the name, or knows none.
_NO_CONSUMER_GROUP: Final = frozenset({ErrorCode.group_id_not_found, ErrorCode.unsupported_version})
_CLASSIC_MEMBER: Final = 0
Place = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[Place, ...]
    target: tuple[Place, ...] | None = None
    """What the member is to have; None in a classic group, whose members have what they are to have."""
    epoch: int | None = None
    speaks_classic: bool = True
    subscription: str | None = None
    """The topics that it names, and its regular expression; None if the coordinator does not say."""
    rack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffset:
    """`end` is None where the partition has no leader or is gone; `lag` follows from both offsets."""

    topic: str
    partition: int
    committed: int | None
    end: int | None
    member_id: str | None

    @property
    def lag(self) -> int | None:
        return None if self.committed is None or self.end is None else max(self.end - self.committed, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """`protocol` is the assignor. `type` is classic or consumer; only a consumer group has epochs."""

    group: str
    state: str
    protocol: str
    coordinator: int
    members: tuple[GroupMember, ...]
    offsets: tuple[GroupOffset, ...]
    type: str = "classic"
    epoch: int | None = None
    assignment_epoch: int | None = None


class GroupClient(CoordinatorClient):
    """`timeout_ms` bounds each call. Used within `async with`."""

    key_type = CoordinatedKey.GROUP

    async def groups(self) -> list[ListedGroup]:
        """Of all brokers, by name."""

        async def ask() -> list[ListedGroup]:
            found: dict[str, ListedGroup] = {}
            for broker_id in await self.look_up_brokers():
                answer = await self._call(await self._connection(broker_id), ListGroupsRequest())
                check(answer.error_code, f"broker {broker_id}")
                found.update((each.group_id, each) for each in answer.groups)
            return [found[name] for name in sorted(found)]

        return await self._until_it_passes(ask, "listing groups")

    async def describe(self, group: str) -> GroupView:
        """Raises CliError for a group that is not there."""
        coordinator, found = await self._described(group)
        view = (
            _classic_view(coordinator, found)
            if isinstance(found, DescribedGroup)
            else _consumer_view(coordinator, found)
        )
        committed = await self.committed(group)
        owners = {place: member.member_id for member in view.members for place in member.partitions}
        places = sorted({*committed, *owners})
        ends = await self.ends(places)
        return replace(
            view,
            offsets=tuple(
                GroupOffset(
                    topic=place[0],
                    partition=place[1],
                    committed=committed.get(place),
                    end=ends.get(place),
                    member_id=owners.get(place),
                )
                for place in places
            ),
        )

    async def committed(self, group: str) -> dict[Place, int]:
        async def ask() -> dict[Place, int]:
            asked = OffsetFetchRequestGroup(group_id=group, topics=None)
            request = OffsetFetchRequest(groups=(asked,), require_stable=True)
            answer = await self.at_coordinator(group, request)
            [found] = answer.groups
            check(found.error_code, f"group {group}")
            names = await self._names() if any(not topic.name for topic in found.topics) else {}
            return {
                (topic.name or names.get(topic.topic_id.hex, topic.topic_id.hex), each.partition_index): (
                    each.committed_offset
                )
                for topic in found.topics
                for each in topic.partitions
                if each.committed_offset >= 0
            }

        return await self._until_it_passes(ask, f"reading the offsets of group {group}")

    async def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """Of those partitions whose topics exist."""
        found: dict[Place, int] = {}
        by_topic: dict[str, list[int]] = {}
        for topic, partition in places:
            by_topic.setdefault(topic, []).append(partition)
        for topic, partitions in by_topic.items():
            try:
                place = await self.topic(topic)
            except CliError:
                continue
            for partition in partitions:
                if partition in place.leaders:
                    found[topic, partition] = await self.offset(place, partition, _LATEST)
        return found

    async def commit(self, group: str, offsets: Mapping[Place, int]) -> None:
        """As a client that is no member: the group must have none. Raises CliError."""
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            topics.setdefault(topic, []).append(
                OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
            )
        ids = {topic: (await self.topic(topic)).id for topic in topics}
        request = OffsetCommitRequest(
            group_id=group,
            topics=tuple(
                OffsetCommitRequestTopic(name=topic, topic_id=ids[topic], partitions=tuple(partitions))
                for topic, partitions in topics.items()
            ),
        )

        async def ask() -> None:
            answer = await self.at_coordinator(group, request)
            for topic in answer.topics:
                for each in topic.partitions:
                    if each.error_code is ErrorCode.unknown_member_id:
                        raise CliError(f"group {group} has members: stop them before its offsets are reset")
                    check(each.error_code, f"group {group}")

        await self._until_it_passes(ask, f"committing offsets of group {group}")

    async def delete(self, group: str) -> None:
        async def ask() -> None:
            answer = await self.at_coordinator(group, DeleteGroupsRequest(groups_names=(group,)))
            [result] = answer.results
            if result.error_code is ErrorCode.non_empty_group:
                raise CliError(f"group {group} has members: stop them before the group is deleted")
            if result.error_code is ErrorCode.group_id_not_found:
                raise CliError(f"there is no group {group}")
            check(result.error_code, f"group {group}")

        await self._until_it_passes(ask, f"deleting group {group}")

    # Parts

    async def _described(self, group: str) -> tuple[int, DescribedGroup | ConsumerGroup]:
        """As a consumer group; if it is none, or the coordinator knows none, as a classic one."""

        async def ask() -> tuple[int, DescribedGroup | ConsumerGroup]:
            coordinator = await self.coordinator(group)
            connection = await self._connection(coordinator)
            with suppress(UnsupportedVersion):
                answer = await self._call(connection, ConsumerGroupDescribeRequest(group_ids=(group,)))
                [consumers] = answer.groups
                if consumers.error_code not in _NO_CONSUMER_GROUP:
                    check(consumers.error_code, f"group {group}")
                    return coordinator, consumers
            classic = await self._call(connection, DescribeGroupsRequest(groups=(group,)))
            [described] = classic.groups
            is_absent = described.error_code is ErrorCode.group_id_not_found
            if is_absent or described.group_state == "Dead":
                raise CliError(f"there is no consumer group {group}, and no classic one")
            check(described.error_code, f"group {group}")
            return coordinator, described

        return await self._until_it_passes(ask, f"describing group {group}")

    async def _names(self) -> dict[str, str]:
        async with ClusterClient(self._addresses, self._timeout_ms) as cluster:
            found = await cluster.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False))
        return {topic.topic_id.hex: topic.name or "" for topic in found.topics}


def _classic_view(coordinator: int, found: DescribedGroup) -> GroupView:
    members = [
        _member(each, each.group_instance_id, _assigned(each.member_assignment)) for each in found.members
    ]
    return _view(coordinator, found, found.protocol_data, members)


def _consumer_view(coordinator: int, found: ConsumerGroup) -> GroupView:
    members = [
        replace(
            _member(each, each.instance_id, _places(each.assignment)),
            target=_places(each.target_assignment),
            epoch=each.member_epoch,
            speaks_classic=each.member_type == _CLASSIC_MEMBER,
            subscription=_subscription(each),
            rack=each.rack_id,
        )
        for each in found.members
    ]
    return replace(
        _view(coordinator, found, found.assignor_name, members),
        type="consumer",
        epoch=found.group_epoch,
        assignment_epoch=found.assignment_epoch,
    )


def _view(
    coordinator: int, found: DescribedGroup | ConsumerGroup, protocol: str, members: Iterable[GroupMember]
) -> GroupView:
    return GroupView(
        group=found.group_id,
        state=found.group_state,
        protocol=protocol,
        coordinator=coordinator,
        members=tuple(members),
        offsets=(),
    )


def _member(
    found: DescribedGroupMember | ConsumerMember, instance_id: str | None, partitions: tuple[Place, ...]
) -> GroupMember:
    return GroupMember(
        member_id=found.member_id,
        instance_id=instance_id,
        client_id=found.client_id,
        host=found.client_host.removeprefix("/"),
        partitions=partitions,
    )


def _subscription(member: ConsumerMember) -> str:
    parts = [*member.subscribed_topic_names]
    if member.subscribed_topic_regex:
        parts.append(f"/{member.subscribed_topic_regex}/")
    return " ".join(parts)


def _places(assignment: Assignment) -> tuple[Place, ...]:
    return tuple(
        (topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def _assigned(assignment: bytes) -> tuple[Place, ...]:
    """Of a consumer; what another kind of member has is not for us to read."""
    try:
        found, _ = decode(ConsumerProtocolAssignment, 0, assignment, 2)
    except DecodeError:
        return ()
    return tuple(
        (topic.topic, partition) for topic in found.assigned_partitions for partition in topic.partitions
    )
