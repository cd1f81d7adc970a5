"""By what a broker knows a request that it forwarded again in an audit note, whatever the client called it.

Client id and correlation id are alike in every run of a tool. So the broker draws an id for each request that it
forwards, the same for all attempts. It travels as a tagged field of the envelope's own header, which Kafka's
controllers skip and no client can write to.
"""

from typing import Final

FORWARDING_ID_TAG: Final = 7001
FORWARDING_ID_BYTES: Final = 16


def forwarding_fields(forwarding_id: bytes) -> tuple[tuple[int, bytes], ...]:
    """The header's tagged fields for it."""
    return ((FORWARDING_ID_TAG, forwarding_id),)


def forwarding_id_of(fields: tuple[tuple[int, bytes], ...]) -> bytes:
    """What an envelope's header says; empty where it says nothing, or something of another size."""
    for tag, value in fields:
        if tag == FORWARDING_ID_TAG and len(value) == FORWARDING_ID_BYTES:
            return value
    return b""
