"""Kafka's text form of uuids."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquorum.wire.uuids import METADATA_TOPIC_ID, ZERO_UUID, uuid_from_text, uuid_to_text


def test_the_two_known_constants() -> None:
    assert uuid_to_text(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_to_text(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"


@given(st.uuids())
def test_round_trip_with_and_without_padding(value: UUID) -> None:
    text = uuid_to_text(value)
    assert len(text) == 22
    assert uuid_from_text(text) == uuid_from_text(text + "==") == value


@pytest.mark.parametrize(
    "text", ["", "AAAA", "A" * 21, "A" * 23, "A" * 26, "+" * 22, "ä" * 22, "A" * 21 + "="]
)
def test_anything_else_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="is not a uuid"):
        uuid_from_text(text)
