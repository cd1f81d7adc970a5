"""Which topic names are allowed (Kafka's rules)."""

import re

from kio.schema.errors import ErrorCode

from metadata.controller.requests import ApiError
from metadata.image.topics import TopicsImage, collision_key, has_collision_characters

MAX_NAME_LENGTH = 249
METADATA_TOPIC_NAME = "__cluster_metadata"

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Raises INVALID_TOPIC_EXCEPTION."""
    problem = _problem(name)
    if problem is not None:
        raise ApiError(ErrorCode.invalid_topic_exception, f"Topic name is invalid: {problem}")


def check_no_collision(name: str, topics: TopicsImage) -> None:
    """Metrics write both '.' and '_' as '_': two topics which differ in nothing else could not be told apart."""
    if not has_collision_characters(name):
        return
    others = topics.colliding_names.get(collision_key(name), frozenset()) - {name}
    if others:
        reason = f"Topic '{name}' collides with existing topic: {min(others)}"
        raise ApiError(ErrorCode.invalid_topic_exception, reason)


def _problem(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not _LEGAL.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None
