"""Which topic names are lawful and which are Kafka's own."""

import re

_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


def is_legal_topic_name(name: str) -> bool:
    return _LEGAL.fullmatch(name) is not None and name not in (".", "..")


def is_internal_topic(name: str) -> bool:
    return name in _INTERNAL
