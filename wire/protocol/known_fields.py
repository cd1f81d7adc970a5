"""Whether any version of a struct has a field: tells one that this version lacks from a misspelt one."""

from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import Any

from kio.schema.index import schema_name_map

_SCHEMA_PACKAGE = "kio.schema"


@cache
def is_field_of_another_version(module: str, class_name: str, name: str) -> bool:
    """Looks from the newest version down, as that one has most names; imports only the versions it has to."""
    package, _, rest = module.removeprefix(_SCHEMA_PACKAGE + ".").partition(".")
    _, _, kind = rest.partition(".")
    versions = schema_name_map.get(package, {})
    return any(
        name in field_names(struct)
        for version in sorted(versions, reverse=True)
        if (struct := _struct(package, version, kind, class_name)) is not None
    )


def _struct(package: str, version: int, kind: str, class_name: str) -> type[Any] | None:
    """Kafka's schemas give a struct one name in all versions, so its class has one name in all modules."""
    module = import_module(f"{_SCHEMA_PACKAGE}.{package}.v{version}.{kind}")
    struct: type[Any] | None = getattr(module, class_name, None)
    return struct


def field_names(cls: type[Any]) -> frozenset[str]:
    """Kafka's names and kio's, which leaves the unit off a duration."""
    names: set[str] = set()
    for field in fields(cls):
        names.add(field.name)
        names.add(kafka_name(field.name, field.metadata.get("kafka_type", "")))
    return frozenset(names)


def kafka_name(kio_name: str, kafka_type: str) -> str:
    """`timeout` is `timeout_ms` in Kafka, as is every field that kio made a duration or a point in time."""
    return f"{kio_name}_ms" if kafka_type.startswith(("timedelta", "datetime")) else kio_name
