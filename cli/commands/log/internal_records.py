"""Records of the internal topics in words: whose record it is, and what it says. Topics that are not here show their
keys and values as they are."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final
from uuid import UUID

from kquorum.broker.coordinators.partitioning import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kquorum.cli.commands.log.transaction_state import transaction_fields
from kquorum.wire.consumer_group_records import (
    CONSUMER_TYPES,
    decode_consumer_key,
    decode_consumer_value,
)
from kquorum.wire.data_batch import Record
from kquorum.wire.errors import DecodeError
from kquorum.wire.offsets_records import (
    GroupKey,
    ModernKey,
    OffsetKey,
    RecordType,
    UnknownKey,
    decode_group_value,
    decode_key,
    decode_offset_value,
)
from kquorum.wire.uuids import uuid_to_text

_NAMES: Final = {
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: "member",
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: "member",
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: "member",
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: "regular_expression",
}


def group_record(record: Record) -> dict[str, Any]:
    """Of `__consumer_offsets`: its type in Kafka's words, its key, and its value unless it is a tombstone. Raises
    DecodeError."""
    if record.key is None:
        raise DecodeError("a record of __consumer_offsets has no key")
    key = decode_key(bytes(record.key))
    value = None if record.value is None else bytes(record.value)
    told: dict[str, Any]
    if isinstance(key, OffsetKey):
        told = {
            "type": "OffsetCommit",
            "group": key.group_id,
            "topic": key.topic,
            "topic_partition": key.partition,
        }
        return told | _value(None if value is None else decode_offset_value(value))
    if isinstance(key, GroupKey):
        told = {"type": "GroupMetadata", "group": key.group_id}
        return told | _value(None if value is None else decode_group_value(value))
    if isinstance(key, UnknownKey):
        return {"type": key.type, "value_bytes": None if value is None else len(value)}
    assert isinstance(key, ModernKey)
    told = {"type": _type(key.type), "group": key.group_id}
    if key.type not in CONSUMER_TYPES:
        return told | {"is_tombstone": value is None, "value_bytes": None if value is None else len(value)}
    consumer_key = decode_consumer_key(key.type, bytes(record.key))
    if consumer_key.type in _NAMES:
        told[_NAMES[consumer_key.type]] = consumer_key.name
    return told | _value(None if value is None else decode_consumer_value(key.type, value))


DECODERS: Final[Mapping[str, Callable[[Record], dict[str, Any]]]] = {
    OFFSETS_TOPIC: group_record,
    TRANSACTIONS_TOPIC: transaction_fields,
}


def _type(kind: RecordType) -> str:
    return "".join(word.capitalize() for word in kind.name.split("_"))


def _value(value: object) -> dict[str, Any]:
    if value is None:
        return {"is_tombstone": True}
    found: dict[str, Any] = _plain(value)
    # The row has a field of this name: where the record stands in the log.
    return {"committed_offset" if name == "offset" else name: each for name, each in found.items()}


def _plain(value: object) -> Any:
    """Of a decoded struct: dicts, lists, and texts."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, UUID):
        return uuid_to_text(value)
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    return value
