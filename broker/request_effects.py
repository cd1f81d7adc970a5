"""What a request has done, as the difference of two images tells it, in the words of its response."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from kquorum.metadata.controller.requests import ControllerRequest, Values
from kquorum.metadata.controller.security.acls import entry_values, filter_of, pattern_values
from kquorum.metadata.controller.security.delegation_tokens import token_owner
from kquorum.metadata.delegation_tokens import token_hmac
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.security import DelegationToken
from kquorum.metadata.image.topics import TopicImage

# The configs in effect of a topic, as CreateTopics tells them.
ConfigsOf = Callable[[MetadataImage, str], Sequence[Values]]


class Change(NamedTuple):
    """`before` is the image before the request was carried out, `after` the one that has it. `is_whole`: as the audit
    note says."""

    before: MetadataImage
    after: MetadataImage
    is_whole: bool


def created_topic(
    _request: ControllerRequest, change: Change, entry: Any, configs_of: ConfigsOf
) -> Values | None:
    topic = change.after.topics.by_name.get(entry.name)
    first = None if topic is None else topic.partitions.get(0)
    was_there = entry.name in change.before.topics.by_name and not change.is_whole
    if topic is None or first is None or was_there:
        return None
    return {
        "name": topic.name,
        "topic_id": topic.id,
        "num_partitions": len(topic.partitions),
        "replication_factor": len(first.replicas),
        "topic_config_error_code": 0,
        "configs": configs_of(change.after, topic.name),
    }


def deleted_topic(_request: ControllerRequest, change: Change, entry: Any, _: ConfigsOf) -> Values | None:
    topic_id = getattr(entry, "topic_id", None)
    topics = change.before.topics
    topic: TopicImage | None = (
        topics.by_name.get(entry.name) if topic_id is None else topics.by_id.get(topic_id)
    )
    if topic is None or topic.id in change.after.topics.by_id:
        return None
    return {"name": topic.name, "topic_id": topic.id}


def grown_topic(request: ControllerRequest, change: Change, entry: Any, _: ConfigsOf) -> Values | None:
    before = change.before.topics.by_name.get(entry.name)
    after = change.after.topics.by_name.get(entry.name)
    wanted = next((asked.count for asked in request.body.topics if asked.name == entry.name), -1)
    if before is None or after is None or not len(before.partitions) < wanted == len(after.partitions):
        return None
    return {"name": entry.name}


def deleted_acls(request: ControllerRequest, change: Change) -> list[Values]:
    """Filter by filter, as the controller tells it."""
    before, after = change.before.security.acls, change.after.security.acls
    gone = [] if before is after else [acl for acl_id, acl in before.items() if acl_id not in after]
    done: Values = {"error_code": ErrorCode.none, "error_message": None}
    return [
        done
        | {
            "matching_acls": [
                done | pattern_values(acl) | entry_values(acl) for acl in filter_of(asked).select(gone)
            ]
        }
        for asked in request.body.filters
    ]


def new_token(request: ControllerRequest, change: Change) -> DelegationToken | None:
    """That of the request; None also where the same principal has made several for the same owner at once."""
    before, owner = change.before.security.delegation_tokens, ":".join(token_owner(request))
    new = [
        token
        for token_id, token in change.after.security.delegation_tokens.items()
        if token_id not in before and (token.requester, token.owner) == (request.principal, owner)
    ]
    return new[0] if len(new) == 1 else None


def token_values(token: DelegationToken, secret_key: str) -> Values:
    return {
        "issue_timestamp": token.issue_timestamp_ms,
        "expiry_timestamp": token.expiration_timestamp_ms,
        "max_timestamp": token.max_timestamp_ms,
        "token_id": token.token_id,
        "hmac": token_hmac(secret_key, token.token_id),
    }
