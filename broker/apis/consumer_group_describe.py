"""ConsumerGroupDescribe (api key 69): the epochs, the members and the assignments of groups of the consumer protocol
(rules G7.65 to G7.67)."""

from collections.abc import Collection, Mapping
from itertools import islice
from typing import Final
from uuid import UUID

from kquorum.broker.apis.api import Advance, Authorized, Sliced
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.groups.committed_groups import CommittedGroup
from kquorum.broker.groups.consumer_group import ConsumerMember
from kquorum.metadata.authorizer.access import Access
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.metadata.controller.requests import messages_of_entries
from kquorum.metadata.image.topics import TopicsImage
from kquorum.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import EncodedBody, encode_body

_IN_A_SLICE: Final = 100
_CLASSIC, _CONSUMER = 0, 1
_NOT_THERE: Final = "There is no consumer group of this id."
_HIDDEN: Final = "The group has described topic(s) that the client is not authorized to describe."


def begin_describe_consumer_groups(
    context: RequestContext, request: ConsumerGroupDescribeRequest, services: BrokerServices
) -> Advance:
    """In slices: a few bytes of a request name a group. One that is named often is described once."""
    access = services.access(context)
    version = context.header.api_version
    messages = messages_of_entries(_NOT_THERE)
    left = iter(dict.fromkeys(request.group_ids))
    found: list[DescribedGroup] = []

    def described(group_id: str) -> DescribedGroup:
        if not services.offers_consumer_groups:
            return DescribedGroup(group_id=group_id, error_code=ErrorCode.unsupported_version)
        if not access.allows(Operation.DESCRIBE, ResourceType.GROUP, group_id):
            return DescribedGroup(group_id=group_id, error_code=ErrorCode.group_authorization_failed)
        if not group_id:
            return DescribedGroup(group_id=group_id, error_code=ErrorCode.invalid_group_id)
        shard = services.groups.shard_of(group_id)
        if isinstance(shard, ErrorCode):
            return DescribedGroup(group_id=group_id, error_code=shard)
        group = shard.described(group_id)
        if group is None:
            return DescribedGroup(
                group_id=group_id, error_code=ErrorCode.group_id_not_found, error_message=next(messages)
            )
        default = shard.settings.consumer_assignors[0]
        answer = _described(group, services.cache.image.topics, access, default)
        if request.include_authorized_operations and answer.error_code is ErrorCode.none:
            answer.authorized_operations = access.operations_on(ResourceType.GROUP, group_id)
        return answer

    def advance() -> EncodedBody | None:
        before = len(found)
        found.extend(described(group_id) for group_id in islice(left, _IN_A_SLICE))
        if len(found) - before == _IN_A_SLICE:
            return None
        return EncodedBody(encode_body(ConsumerGroupDescribeResponse(groups=tuple(found)), version))

    return advance


# DESCRIBE on each group, and on each topic that its members have or are to have.
API: Final = Sliced(
    ApiKey.CONSUMER_GROUP_DESCRIBE, Authorized.IN_HANDLER, begin=begin_describe_consumer_groups
)


def _described(
    group: CommittedGroup, topics: TopicsImage, access: Access, default_assignor: str
) -> DescribedGroup:
    members = tuple([_member(member, group, topics) for member in group.members.values()])
    names = {
        each.topic_name
        for member in members
        for assignment in (member.assignment, member.target_assignment)
        for each in assignment.topic_partitions
    }
    if not all(access.allows_on_topic(Operation.DESCRIBE, name) for name in sorted(names)):
        return DescribedGroup(
            group_id=group.group_id,
            error_code=ErrorCode.topic_authorization_failed,
            error_message=_HIDDEN,
        )
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor or default_assignor,
        members=members,
    )


def _member(member: ConsumerMember, group: CommittedGroup, topics: TopicsImage) -> Member:
    """A member has what it is to give up until it says that it did."""
    has: dict[UUID, set[int]] = {}
    for part in (member.assigned, member.pending_revocation):
        for topic_id, partitions in part.items():
            has.setdefault(topic_id, set()).update(partitions)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topics)),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(has, topics),
        target_assignment=_assignment(group.target(member.member_id), topics),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _assignment(assignment: Mapping[UUID, Collection[int]], topics: TopicsImage) -> Assignment:
    """Topics that are gone are left out."""
    return Assignment(
        topic_partitions=tuple(
            [
                TopicPartitions(
                    topic_id=topic_id,
                    topic_name=topics.by_id[topic_id].name,
                    partitions=tuple(sorted(partitions)),
                )
                for topic_id, partitions in sorted(assignment.items())
                if topic_id in topics.by_id
            ]
        )
    )
