"""Why an operator wants a change: words that travel in a tagged field of the request's header.

Only flexible headers (version 2, KIP-482) have tagged fields. Kafka's servers skip those that they do not know, so the
words reach kquorum's controllers through any broker that forwards a request as it came, and do not disturb others.
"""

from typing import Final

TaggedFields = tuple[tuple[int, bytes], ...]

REASON_TAG: Final = 7000
MAX_REASON_CHARACTERS: Final = 500
_MAX_BYTES_PER_CHARACTER = 4
_CUT = "..."


def sanitised_reason(text: str) -> str:
    """On one line, without control characters and what else does not print, and of bounded length."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    reason = " ".join(printable.split())
    if len(reason) > MAX_REASON_CHARACTERS:
        reason = reason[: MAX_REASON_CHARACTERS - len(_CUT)] + _CUT
    return reason


def reason_fields(reason: str | None) -> TaggedFields:
    """The header's tagged fields for a reason; none for no reason."""
    sanitised = sanitised_reason(reason or "")
    return ((REASON_TAG, sanitised.encode()),) if sanitised else ()


def reason_of(fields: TaggedFields) -> str | None:
    """The reason in a header's tagged fields, which are untrusted input."""
    for tag, value in fields:
        if tag == REASON_TAG:
            text = value[: (MAX_REASON_CHARACTERS + 1) * _MAX_BYTES_PER_CHARACTER].decode(errors="replace")
            return sanitised_reason(text) or None
    return None
