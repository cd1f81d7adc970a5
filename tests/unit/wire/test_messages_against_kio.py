"""The messages of `wire.messages` and kio's classes have the same bytes, in every API, version and direction."""

from dataclasses import MISSING, fields
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kquorum.wire.codegen.kinds import FIXED
from kquorum.wire.codegen.plan import FieldPlan, StructPlan
from kquorum.wire.errors import DecodeError
from kquorum.wire.message_codec import decode, decode_bounded, encode, encode_parts
from kquorum.wire.message_schema import Message, plan_of
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.kio import codec
from tests.support.kio.codec import kio_encode
from tests.support.kio.messages import NAMES, from_kio, kio_class, messages_of, versions_of
from tests.support.kio.plans import plan_of as kio_plan_of
from tests.support.wire_values import entities, fullest, least


def check_agreement(entity: Any, cls: type[Message], version: int) -> None:
    message = from_kio(entity, cls, version)
    encoded = encode(message, version)
    assert encoded == codec.encode(entity)
    assert encoded == kio_encode(entity)
    assert b"".join(encode_parts(message, version)) == encoded
    assert decode(cls, version, encoded) == (message, len(encoded))
    assert decode_bounded(cls, version, b"??" + encoded, 2, 10_000) == (message, len(encoded) + 2)


@pytest.mark.parametrize("name", NAMES)
def test_every_version_agrees_on_its_least_and_its_fullest_value(name: str) -> None:
    assert messages_of(name)
    for cls in messages_of(name):
        for version in versions_of(cls):
            plan = kio_plan_of(kio_class(cls, version))
            check_agreement(least(plan), cls, version)
            check_agreement(fullest(plan), cls, version)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_value_agrees(name: str, data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from(messages_of(name)), label="class")
    version = data.draw(st.sampled_from(versions_of(cls)), label="version")
    entity = data.draw(entities(kio_plan_of(kio_class(cls, version))), label="entity")
    check_agreement(entity, cls, version)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_what_was_written_is_read_again(name: str, data: st.DataObject) -> None:
    """Values that kio has no objects for are among them, such as points in time before 1970."""
    cls = data.draw(st.sampled_from(messages_of(name)), label="class")
    version = data.draw(st.sampled_from(versions_of(cls)), label="version")
    message = data.draw(entities(plan_of(cls, version)), label="message")
    encoded = encode(message, version)
    assert decode(cls, version, encoded) == (message, len(encoded))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_mutilated_messages_are_refused_or_read_but_never_crash(name: str, data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from(messages_of(name)), label="class")
    version = data.draw(st.sampled_from(versions_of(cls)), label="version")
    encoded = bytearray(encode(fullest(plan_of(cls, version)), version))
    for _ in range(data.draw(st.integers(1, 4)) if encoded else 0):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    del encoded[data.draw(st.integers(0, len(encoded))) :]
    for read in (
        lambda: decode(cls, version, encoded),
        lambda: decode_bounded(cls, version, encoded, 0, 100),
    ):
        try:
            _, end = read()
        except DecodeError:
            continue
        assert end <= len(encoded)


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_those_of_kio(name: str) -> None:
    """A message that is made without values has kio's defaults where there are any, and else zeros."""
    for cls in messages_of(name):
        for version in versions_of(cls):
            kio_plan = kio_plan_of(kio_class(cls, version))
            of_kio = kio_plan.cls(**{field.name: _kio_default(kio_plan, field) for field in kio_plan.fields})
            assert from_kio(of_kio, cls, version) == cls()


def _kio_default(plan: StructPlan, field: FieldPlan) -> Any:
    (declared,) = (each for each in fields(plan.cls) if each.name == field.name)
    if declared.default is not MISSING:
        return declared.default
    if field.is_array:
        return ()
    if field.nested is not None:
        return field.nested.cls(
            **{each.name: _kio_default(field.nested, each) for each in field.nested.fields}
        )
    zeros = {"string": "", "bytes": b"", "error_code": ErrorCode.none}
    return zeros[field.kind] if field.kind in zeros else FIXED[field.kind].zero
