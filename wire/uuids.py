"""Kafka's text form of uuids: the 16 bytes in URL-safe Base64 without padding, 22 characters."""

import base64
import re
from typing import Final
from uuid import UUID

ZERO_UUID: Final = UUID(int=0)
METADATA_TOPIC_ID: Final = UUID(int=1)

_TEXT: Final = re.compile(r"([A-Za-z0-9_-]{22})(==)?", re.ASCII)


def uuid_to_text(value: UUID) -> str:
    return base64.urlsafe_b64encode(value.bytes).decode("ascii").rstrip("=")


def uuid_from_text(text: str) -> UUID:
    """Read 22 characters, or 24 with the padding that Kafka's own parser tolerates.

    Raises ValueError, naming the text, if it is anything else.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a uuid in Kafka's text form: 22 characters of URL-safe Base64")
    return UUID(bytes=base64.urlsafe_b64decode(match[1] + "=="))
