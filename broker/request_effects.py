"""What a request has done, as the difference of two images tells it, in the words of its response."""

from collections.abc import Callable
from typing import NamedTuple

from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.controller.security.acls import filter_of, matched
from kquorum.metadata.controller.security.delegation_tokens import token_owner
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.security import DelegationToken
from kquorum.metadata.image.topics import TopicImage
from kquorum.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopicResult
from kquorum.wire.messages.create_topics import CreatableTopicConfigs, CreatableTopicResult
from kquorum.wire.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest
from kquorum.wire.messages.delete_topics import DeletableTopicResult
from kquorum.wire.uuids import ZERO_UUID

# The configs in effect of a topic, as CreateTopics tells them.
ConfigsOf = Callable[[MetadataImage, str], tuple[CreatableTopicConfigs, ...]]


class Change(NamedTuple):
    """`before` is the image before the request was carried out, `after` the one that has it. `is_whole`: as the audit
    note says."""

    before: MetadataImage
    after: MetadataImage
    is_whole: bool


def created_topic(
    change: Change, entry: CreatableTopicResult, configs_of: ConfigsOf
) -> CreatableTopicResult | None:
    topic = change.after.topics.by_name.get(entry.name)
    first = None if topic is None else topic.partitions.get(0)
    was_there = entry.name in change.before.topics.by_name and not change.is_whole
    if topic is None or first is None or was_there:
        return None
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.id,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=len(first.replicas),
        configs=configs_of(change.after, topic.name),
    )


def deleted_topic(change: Change, entry: DeletableTopicResult) -> DeletableTopicResult | None:
    topics = change.before.topics
    topic: TopicImage | None = (
        topics.by_name.get(entry.name or "")
        if entry.topic_id == ZERO_UUID
        else topics.by_id.get(entry.topic_id)
    )
    if topic is None or topic.id in change.after.topics.by_id:
        return None
    return DeletableTopicResult(name=topic.name, topic_id=topic.id)


def grown_topic(
    request: CreatePartitionsRequest, change: Change, entry: CreatePartitionsTopicResult
) -> CreatePartitionsTopicResult | None:
    before = change.before.topics.by_name.get(entry.name)
    after = change.after.topics.by_name.get(entry.name)
    wanted = next((asked.count for asked in request.topics if asked.name == entry.name), -1)
    if before is None or after is None or not len(before.partitions) < wanted == len(after.partitions):
        return None
    return CreatePartitionsTopicResult(name=entry.name)


def deleted_acls(request: DeleteAclsRequest, change: Change) -> tuple[DeleteAclsFilterResult, ...]:
    """Filter by filter, as the controller tells it."""
    before, after = change.before.security.acls, change.after.security.acls
    removed = [] if before is after else [acl for acl_id, acl in before.items() if acl_id not in after]
    return tuple([matched(filter_of(asked).select(removed)) for asked in request.filters])


def new_token(request: ControllerRequest, change: Change) -> DelegationToken | None:
    """That of the request; None also where the same principal has made several for the same owner at once."""
    before, owner = change.before.security.delegation_tokens, ":".join(token_owner(request))
    new = [
        token
        for token_id, token in change.after.security.delegation_tokens.items()
        if token_id not in before and (token.requester, token.owner) == (request.principal, owner)
    ]
    return new[0] if len(new) == 1 else None
