"""DeleteTopics, by name or by id."""

from collections import Counter
from uuid import UUID

from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.image.topics import TopicImage
from kquorum.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.topics import RemoveTopicRecord
from kquorum.wire.uuids import ZERO_UUID, uuid_to_text

# What a request may name a topic by: (name, id), either of them None.
Named = tuple[str | None, UUID | None]

_NAMES_IN_REASON = 10


def delete_topics(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """Topics fail one by one; a topic named twice, in any way, is not deleted at all."""
    if not context.config.delete_topic_enable:
        code = ErrorCode.topic_deletion_disabled if request.api_version >= 3 else ErrorCode.invalid_request
        raise ApiError(code, "Topic deletion is disabled.")
    mentions = Counter(_named(request.body))
    deleted: list[TopicImage] = []
    responses: list[DeletableTopicResult] = []
    for named, count in mentions.items():
        try:
            topic = _find(context, named, count)
            other = (None, topic.id) if named[1] is None else (topic.name, None)
            if other in mentions:
                # One answer for both, that of the name, if that has not gone wrong by itself.
                if named[1] is None or mentions[other] > 1:
                    responses.append(_response(topic.name, topic.id, _named_twice()))
                continue
            context.charge_mutations(request, len(topic.partitions))
        except ApiError as error:
            responses.append(_response(*named, error))
            continue
        deleted.append(topic)
        responses.append(_response(topic.name, topic.id))
    return ControllerResult(
        records=tuple(RemoveTopicRecord(topic_id=topic.id) for topic in deleted),
        response=DeleteTopicsResponse(responses=tuple(responses)),
        audit_reason=_reason(deleted) if deleted else None,
    )


def _named(request: DeleteTopicsRequest) -> list[Named]:
    """`topics` is empty below version 6, and `topic_names` from then on."""
    by_name: list[Named] = [(name, None) for name in request.topic_names]
    return by_name + [
        (topic.name, None if topic.topic_id == ZERO_UUID else topic.topic_id) for topic in request.topics
    ]


def _find(context: DecisionContext, named: Named, mentions: int) -> TopicImage:
    name, topic_id = named
    topics = context.image.topics
    if name is None and topic_id is None:
        raise ApiError(ErrorCode.invalid_request, "Neither topic name nor id were specified.")
    if name is not None and topic_id is not None:
        raise ApiError(ErrorCode.invalid_request, "You may not specify both topic name and topic id.")
    if mentions > 1:
        reason = "Duplicate topic name." if name is not None else "Duplicate topic id."
        raise ApiError(ErrorCode.invalid_request, reason)
    if name is not None:
        topic = topics.by_name.get(name)
        if topic is None:
            raise ApiError(ErrorCode.unknown_topic_or_partition, f"There is no topic '{name}'.")
        return topic
    assert topic_id is not None, "one of the two is given"
    topic = topics.by_id.get(topic_id)
    if topic is None:
        reason = f"There is no topic with id {uuid_to_text(topic_id)}."
        raise ApiError(ErrorCode.unknown_topic_id, reason)
    return topic


def _named_twice() -> ApiError:
    reason = "The provided topic name maps to an ID that was already supplied."
    return ApiError(ErrorCode.invalid_request, reason)


def _response(name: str | None, topic_id: UUID | None, error: ApiError | None = None) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name,
        topic_id=topic_id or ZERO_UUID,
        error_code=ErrorCode.none if error is None else error.code,
        error_message=None if error is None else error.message,
    )


def _reason(deleted: list[TopicImage]) -> str:
    names = [topic.name for topic in deleted]
    more = f" and {len(names) - _NAMES_IN_REASON} more" if len(names) > _NAMES_IN_REASON else ""
    return f"delete topics: {', '.join(names[:_NAMES_IN_REASON])}{more}"
