"""DeleteTopics, by name or by id."""

from collections import Counter
from uuid import UUID

from kio.schema.errors import ErrorCode

from metadata.controller.context import DecisionContext
from metadata.controller.requests import ApiError, ControllerRequest, ControllerResult, Values
from metadata.image.topics import TopicImage
from wire.metadata_records.topics import RemoveTopicRecord
from wire.uuids import ZERO_UUID, uuid_to_text

# What a request may name a topic by: (name, id), either of them None.
Named = tuple[str | None, UUID | None]

_NAMES_IN_REASON = 10


def delete_topics(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """Topics fail one by one; a topic named twice, in whatever way, is not deleted at all."""
    if not context.config.delete_topic_enable:
        code = ErrorCode.topic_deletion_disabled if request.api_version >= 3 else ErrorCode.invalid_request
        raise ApiError(code, "Topic deletion is disabled.")
    asked = _named(request)
    mentions = Counter(asked)
    targets = {named: _find(context, named) for named in mentions}
    uses = Counter(topic.id for topic in targets.values() if isinstance(topic, TopicImage))
    deleted: list[TopicImage] = []
    responses: list[Values] = []
    for named, target in targets.items():
        error = _refusal(named, target, mentions[named], uses)
        if error is None and isinstance(target, TopicImage):
            deleted.append(target)
        responses.append(_response(named, target, error))
    return ControllerResult(
        records=tuple(RemoveTopicRecord(topic_id=topic.id) for topic in deleted),
        response={"throttle_time": 0, "responses": responses},
        audit_reason=_reason(deleted),
    )


def _named(request: ControllerRequest) -> list[Named]:
    by_name_or_id = getattr(request.body, "topics", None)
    if by_name_or_id is None:
        return [(name, None) for name in request.body.topic_names]
    return [(topic.name, None if topic.topic_id == ZERO_UUID else topic.topic_id) for topic in by_name_or_id]


def _find(context: DecisionContext, named: Named) -> TopicImage | ApiError:
    name, topic_id = named
    topics = context.image.topics
    if name is None and topic_id is None:
        return ApiError(ErrorCode.invalid_request, "Neither topic name nor id were specified.")
    if name is not None and topic_id is not None:
        return ApiError(ErrorCode.invalid_request, "You may not specify both topic name and topic id.")
    if name is not None:
        missing = ApiError(ErrorCode.unknown_topic_or_partition, f"There is no topic '{name}'.")
        return topics.by_name.get(name) or missing
    assert topic_id is not None, "one of the two is given"
    unknown = ApiError(ErrorCode.unknown_topic_id, f"There is no topic with id {uuid_to_text(topic_id)}.")
    return topics.by_id.get(topic_id) or unknown


def _refusal(
    named: Named, target: TopicImage | ApiError, mentions: int, uses: Counter[UUID]
) -> ApiError | None:
    name, topic_id = named
    if mentions > 1 and (name is None) != (topic_id is None):
        reason = "Duplicate topic name." if name is not None else "Duplicate topic id."
        return ApiError(ErrorCode.invalid_request, reason)
    if isinstance(target, ApiError):
        return target
    if uses[target.id] > 1:
        reason = "The provided topic name maps to an ID that was already supplied."
        return ApiError(ErrorCode.invalid_request, reason)
    return None


def _response(named: Named, target: TopicImage | ApiError, error: ApiError | None) -> Values:
    name, topic_id = named
    found = target if isinstance(target, TopicImage) and error is None else None
    return {
        "name": name if found is None else found.name,
        "topic_id": topic_id if found is None else found.id,
        "error_code": ErrorCode.none if error is None else error.code,
        "error_message": None if error is None else error.message,
    }


def _reason(deleted: list[TopicImage]) -> str:
    names = [topic.name for topic in deleted]
    more = f" and {len(names) - _NAMES_IN_REASON} more" if len(names) > _NAMES_IN_REASON else ""
    return f"delete topics: {', '.join(names[:_NAMES_IN_REASON])}{more}"
