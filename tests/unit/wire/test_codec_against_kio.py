"""The codec and kio's own agree, byte for byte and value for value, on every class that kio has."""

import importlib
import pkgutil
from dataclasses import is_dataclass
from functools import cache
from typing import Any

import kio.schema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.serial import entity_reader
from kio.static.constants import EntityType

from kquorum.wire.errors import DecodeError
from tests.support.kio.codec import decode, encode, kio_encode
from tests.support.kio.plans import plan_of
from tests.support.wire_values import entities, fullest, least

NO_MESSAGES = {"errors", "index", "types"}
APIS = sorted(m.name for m in pkgutil.iter_modules(kio.schema.__path__) if m.name not in NO_MESSAGES)
QUORUM_APIS = [
    "alter_partition",
    "api_versions",
    "broker_heartbeat",
    "broker_registration",
    "create_topics",
    "describe_quorum",
    "envelope",
    "fetch",
    "fetch_snapshot",
    "metadata",
    "produce",
    "vote",
]


@cache
def classes_of(api: str) -> tuple[Any, ...]:
    """The request, response, header and data classes of all versions of an API."""
    package = importlib.import_module(f"kio.schema.{api}")
    names = [m.name for m in pkgutil.walk_packages(package.__path__, package.__name__ + ".") if not m.ispkg]
    found = [value for name in names for value in vars(importlib.import_module(name)).values()]
    return tuple(
        cls
        for cls in found
        if isinstance(cls, type)
        and is_dataclass(cls)
        and cls.__module__.startswith(package.__name__)
        and cls.__type__ is not EntityType.nested  # type: ignore[attr-defined]
    )


def check_agreement(entity: Any) -> None:
    encoded = encode(entity)
    assert encoded == kio_encode(entity)
    assert decode(type(entity), encoded) == (entity, len(encoded))
    assert entity_reader(type(entity))(encoded, 0) == (entity, len(encoded))


@pytest.mark.parametrize("api", APIS)
def test_every_class_agrees_on_its_least_and_its_fullest_value(api: str) -> None:
    classes = classes_of(api)
    assert classes
    for cls in classes:
        plan = plan_of(cls)
        check_agreement(least(plan))
        check_agreement(fullest(plan))


@pytest.mark.parametrize("api", QUORUM_APIS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_value_agrees(api: str, data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from(classes_of(api)), label="class")
    check_agreement(data.draw(entities(plan_of(cls)), label="entity"))


@pytest.mark.parametrize("api", ["fetch", "broker_registration"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_mutilated_messages_are_refused_or_read_but_never_crash(api: str, data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from(classes_of(api)), label="class")
    encoded = bytearray(encode(fullest(plan_of(cls))))
    for _ in range(data.draw(st.integers(1, 4))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    try:
        _, end = decode(cls, encoded)
    except DecodeError:
        return
    assert end <= len(encoded)
