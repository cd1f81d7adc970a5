"""Which topic names are legal, and which topics are Kafka's own (Kafka's org.apache.kafka.common.internals.Topic)."""

import re
from typing import Final

MAX_NAME_LENGTH: Final = 249
METADATA_TOPIC_NAME: Final = "__cluster_metadata"
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


def is_legal_topic_name(name: str) -> bool:
    return why_illegal(name) is None


def is_internal_topic(name: str) -> bool:
    return name in _INTERNAL


def why_illegal(name: str) -> str | None:
    """Why a topic may not have this name, in Kafka's words; None if it may."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not _LEGAL.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None
