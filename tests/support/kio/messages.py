"""kio's classes as the oracle of `wire.messages`: the class of each version, and each of its entities as a message."""

import datetime as dt
import importlib
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any
from uuid import UUID

from kio.static.constants import EntityType

from kquorum.wire.codegen.plan import StructPlan
from kquorum.wire.message_schema import Data, Message, Request, Response, plan_of
from kquorum.wire.messages.index import MESSAGES
from kquorum.wire.uuids import ZERO_UUID
from tests.support.kio.classes import request_class, response_class
from tests.support.kio.known_fields import kafka_name
from tests.support.wire_values import EPOCH
from tools.render_messages import DATA

NAMES = (*(each.module for each in MESSAGES.values()), *DATA)


@cache
def messages_of(name: str) -> tuple[type[Message], ...]:
    """The request and the response of an API, or the data message of a module of `wire.messages`."""
    module = importlib.import_module(f"kquorum.wire.messages.{name}")
    found = [value for value in vars(module).values() if isinstance(value, type)]
    return tuple(cls for cls in found if issubclass(cls, Message) and cls.__module__ == module.__name__)


def versions_of(cls: type[Message]) -> range:
    return range(cls.versions[0], cls.versions[1] + 1)


def kio_class(cls: type[Message], version: int) -> Any:
    if issubclass(cls, Request):
        return request_class(cls.api_key, version)
    if issubclass(cls, Response):
        return response_class(cls.api_key, version)
    assert issubclass(cls, Data)
    module = importlib.import_module(f"kio.schema.{cls.__module__.rpartition('.')[2]}.v{version}.data")
    return getattr(module, cls.__name__)


def from_kio(entity: Any, cls: type[Message], version: int) -> Any:
    """The message with the values of kio's entity; fields that the version lacks have their defaults."""
    assert entity.__type__ is not EntityType.nested
    return _struct_from_kio(entity, plan_of(cls, version))


def _struct_from_kio(entity: Any, plan: StructPlan) -> Any:
    values = {
        kafka_name(field.name, field.metadata.get("kafka_type", "")): (
            getattr(entity, field.name),
            field.metadata.get("kafka_type"),
        )
        for field in fields(entity)
    }
    assert values.keys() == {field.name for field in plan.fields}
    arguments = {}
    for field in plan.fields:
        value, kafka_type = values[field.name]
        is_null_array = value is None and field.is_array
        arguments[field.name] = None if is_null_array else _plain(value, kafka_type, field.nested)
    return plan.cls(**arguments)


def _plain(value: Any, kafka_type: str | None, nested: StructPlan | None) -> Any:
    match value:
        case tuple():
            return tuple(_plain(item, kafka_type, nested) for item in value)
        case dt.timedelta():
            return value // dt.timedelta(milliseconds=1)
        case dt.datetime():
            return (value - EPOCH) // dt.timedelta(milliseconds=1)
        case None if kafka_type == "uuid":
            return ZERO_UUID
        case None if kafka_type == "datetime_i64":
            return -1
        case None | UUID():
            return value
        case _ if is_dataclass(value):
            assert nested is not None
            return _struct_from_kio(value, nested)
        case _:
            return value
