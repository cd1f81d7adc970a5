"""Answers that are made in slices, read as a client reads them."""

from typing import Any

from kquorum.metadata.describe.slices import Elements, encoded_in_slices
from kquorum.wire.message_codec import decode
from kquorum.wire.message_schema import Response


def whole(answer: Response | Elements, version: int) -> Any:
    """The response, from the bytes of its last slice."""
    if isinstance(answer, Response):
        return answer
    *_, last = encoded_in_slices(answer, version)
    assert last is not None
    response, end = decode(type(answer.empty), version, last.data)
    assert end == len(last.data)
    return response
