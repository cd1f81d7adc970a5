"""What is made of records without their entities is what is made of their entities, for every type and version."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquorum.spark_replay.decode.record_rows import Kind, ValueReader, ValueRow
from kquorum.spark_replay.decode.records import ENTITY_EXPRESSIONS, Entity, entity_of, of_resource
from kquorum.wire.audit_note import AUDIT_NOTE_TAG
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.metadata_records.registry import ALL, BY_API_KEY
from kquorum.wire.proto.audit_pb2 import AuditNote
from kquorum.wire.record_frame import decode_record, decode_record_lenient, encode_record
from kquorum.wire.record_json import record_to_json
from kquorum.wire.record_text import Otherwise, row_function
from kquorum.wire.schema import MetadataRecord, plan_of
from tests.support.wire_values import entities, fullest, least

FRAMES = [(cls, version) for cls in ALL for version in range(cls.versions[0], cls.versions[1] + 1)]
IDS = [f"{cls.__name__}-{version}" for cls, version in FRAMES]


def text_of(record: object, *, show_secrets: bool) -> str:
    fields = record_to_json(record, show_secrets=show_secrets)
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def expected_row(value: bytes, *, show_secrets: bool) -> ValueRow:
    """Of a value that can be read."""
    record = decode_record(value)
    kind = Kind(type(record).__name__, type(record).api_key, value[2])
    return (kind, text_of(record, show_secrets=show_secrets), *entity_of(record), None, None)


def texts(cls: type[MetadataRecord], version: int, *, show_secrets: bool) -> Any:
    function = row_function(cls, version, show_secrets=show_secrets)
    assert function is not None, "every type there is has such a function"
    return function


@pytest.mark.parametrize(("cls", "version"), FRAMES, ids=IDS)
@given(data=st.data(), show_secrets=st.booleans())
@settings(deadline=None, max_examples=25)
def test_a_value_has_the_row_of_its_entity(
    cls: type[MetadataRecord], version: int, data: st.DataObject, show_secrets: bool
) -> None:
    record = data.draw(entities(plan_of(cls, version)))
    value = encode_record(record, version)
    assert ValueReader(show_secrets=show_secrets).row(value) == expected_row(value, show_secrets=show_secrets)


@pytest.mark.parametrize("show_secrets", [False, True])
@pytest.mark.parametrize(("cls", "version"), FRAMES, ids=IDS)
def test_the_plainest_and_the_fullest_record_need_no_entity(
    cls: type[MetadataRecord], version: int, show_secrets: bool
) -> None:
    function = texts(cls, version, show_secrets=show_secrets)
    for record in (least(plan_of(cls, version)), fullest(plan_of(cls, version))):
        assert function(encode_record(record, version)) == text_of(record, show_secrets=show_secrets)


@given(data=st.data(), frame=st.sampled_from(FRAMES))
@settings(deadline=None, max_examples=400)
def test_an_invalid_value_has_the_same_message_everywhere(
    data: st.DataObject, frame: tuple[type[MetadataRecord], int]
) -> None:
    cls, version = frame
    value = bytearray(encode_record(data.draw(entities(plan_of(cls, version))), version))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(value) - 1))
        match data.draw(st.sampled_from(["change", "cut", "insert"])):
            case "change":
                value[place] = data.draw(st.integers(0, 255))
            case "cut":
                del value[place : place + data.draw(st.integers(1, 3))]
                value = value or bytearray(1)
            case "insert":
                value[place:place] = data.draw(st.binary(min_size=1, max_size=3))
    row = ValueReader(show_secrets=False).row(bytes(value))
    decoded = decode_record_lenient(bytes(value))
    if decoded.record is None:
        assert row[1] is None
        assert str(decoded.problem) in str(row[-1])
        return
    assert row[0] == (type(decoded.record).__name__, decoded.api_key, decoded.version)
    assert row[1:] == expected_row(bytes(value), show_secrets=False)[1:]


@given(st.text(), st.none() | st.text())
@settings(deadline=None)
def test_a_config_is_shown_or_held_back_alike(name: str, value: str | None) -> None:
    for prefix in ("", "ssl.keystore.password.", "listener.name.x."):
        for end in ("", ".password", ".secret.class"):
            record = ConfigRecord(resource_type=4, resource_name="1", name=prefix + name + end, value=value)
            raw = encode_record(record)
            for show_secrets in (False, True):
                found = ValueReader(show_secrets=show_secrets).row(raw)
                assert found == expected_row(raw, show_secrets=show_secrets)


def test_an_audit_note_is_shown_as_what_it_says() -> None:
    note = AuditNote(principal="User:ana", api_key=19).SerializeToString()
    value = encode_record(NoOpRecord(unknown_tagged_fields=((AUDIT_NOTE_TAG, note),)))
    with pytest.raises(Otherwise):
        texts(NoOpRecord, 0, show_secrets=False)(value)
    row = ValueReader(show_secrets=False).row(value)
    assert row == expected_row(value, show_secrets=False)
    assert '"principal":"User:ana"' in str(row[1])


def test_every_type_that_names_an_entity_does_so_as_an_expression_too() -> None:
    samples = {cls.__name__: fullest(plan_of(cls, cls.versions[1])) for cls in BY_API_KEY.values()}
    naming = {name for name, record in samples.items() if entity_of(record) != Entity()}
    assert naming | {"ConfigRecord"} == set(ENTITY_EXPRESSIONS)


@pytest.mark.parametrize(
    ("name", "broker_id"),
    [
        ("1", 1),
        ("2147483647", 2147483647),
        ("2147483648", None),
        ("9" * 5000, None),
        ("-1", None),
        ("٣", None),
    ],
)
def test_a_broker_of_a_config_is_a_broker_id_that_there_can_be(name: str, broker_id: int | None) -> None:
    assert of_resource(4, name) == Entity(broker_id=broker_id)
