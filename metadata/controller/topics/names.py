"""The checks of a new topic's name: legal (metadata/topic_names.py), and no collision with another topic's."""

from kquorum.metadata.controller.requests import ApiError
from kquorum.metadata.image.topics import TopicsImage, collision_key, has_collision_characters
from kquorum.metadata.topic_names import why_illegal
from kquorum.wire.messages.error_codes import ErrorCode


def check_topic_name(name: str) -> None:
    """Raises INVALID_TOPIC_EXCEPTION."""
    reason = why_illegal(name)
    if reason is not None:
        raise ApiError(ErrorCode.invalid_topic_exception, f"Topic name is invalid: {reason}")


def check_no_collision(name: str, topics: TopicsImage) -> None:
    """Metrics write both '.' and '_' as '_', so topics that differ only in these would have the same metrics."""
    if not has_collision_characters(name):
        return
    others = topics.colliding_names.get(collision_key(name), frozenset()) - {name}
    if others:
        reason = f"Topic '{name}' collides with existing topic: {min(others)}"
        raise ApiError(ErrorCode.invalid_topic_exception, reason)
