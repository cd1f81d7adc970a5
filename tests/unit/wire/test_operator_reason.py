"""The operator's reason in the header's tagged fields: there and back, bounded, and in one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquorum.wire.errors import DecodeError
from kquorum.wire.operator_reason import (
    MAX_REASON_CHARACTERS,
    REASON_TAG,
    reason_fields,
    reason_of,
    sanitised_reason,
)
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import (
    RequestHeader,
    decode_request_header,
    encode_request_header,
    read_tagged_fields,
)

FLEXIBLE = (ApiKey.CREATE_TOPICS, 7)
OLD = (ApiKey.CREATE_TOPICS, 2)


def test_it_stands_in_a_flexible_header_beside_other_fields() -> None:
    fields = ((3, b"x"), *reason_fields("moved to the new racks"))
    frame = encode_request_header(*FLEXIBLE, 5, "cli", fields) + b"body"
    header, position = decode_request_header(frame)
    assert header == RequestHeader(*FLEXIBLE, 5, "cli", fields)
    assert frame[position:] == b"body"
    assert reason_of(header.tagged_fields) == "moved to the new racks"


def test_an_older_header_has_no_room_for_it() -> None:
    frame = encode_request_header(*OLD, 5, "cli", reason_fields("why"))
    header, position = decode_request_header(frame)
    assert (header.tagged_fields, position) == ((), len(frame))


def test_no_reason_is_no_field() -> None:
    assert reason_fields(None) == reason_fields("  \n ") == ()
    assert encode_request_header(*FLEXIBLE, 5, "cli") == encode_request_header(*FLEXIBLE, 5, "cli", ())
    assert reason_of(()) is None
    assert reason_of(((REASON_TAG, b" \x00 "),)) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two\nlines\r\n", "two lines"),
        ("bell\x07 and \x1b[31mred", "bell and [31mred"),
        ("turned \u202eround", "turned round"),
        ("Ünicode ☃ stays", "Ünicode ☃ stays"),
    ],
)
def test_it_is_one_printable_line(text: str, expected: str) -> None:
    assert sanitised_reason(text) == expected


def test_it_is_cut_where_it_is_too_long() -> None:
    reason = reason_of(((REASON_TAG, b"x" * 10_000_000),))
    assert reason is not None
    assert len(reason) == MAX_REASON_CHARACTERS
    assert reason.endswith("x...")


@given(st.binary(max_size=3000))
def test_whatever_is_sent_is_harmless(data: bytes) -> None:
    reason = reason_of(((REASON_TAG, data),))
    assert reason is None or (reason.isprintable() and len(reason) <= MAX_REASON_CHARACTERS)


@given(st.binary(max_size=60))
def test_any_bytes_are_fields_or_a_decode_error(data: bytes) -> None:
    try:
        _, position = read_tagged_fields(data, 0)
    except DecodeError:
        return
    assert position <= len(data)
