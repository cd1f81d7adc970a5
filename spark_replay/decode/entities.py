"""Which topic, partition or broker a record is about: the key columns that filters and tables go by."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kquorum.wire.uuids import uuid_to_text

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
_LAST_BROKER_ID = 2**31 - 1
_BROKER_DIGITS = 10


class Entity(NamedTuple):
    topic_id: str | None = None
    topic_name: str | None = None
    partition_id: int | None = None
    broker_id: int | None = None


NOTHING = Entity()


def entity_of(record: object) -> Entity:
    """The entity named by the record itself; a topic's id is not resolved to its name here."""
    reader = _READERS.get(type(record).__name__)
    return NOTHING if reader is None else reader(record)


def _topic(record: Any) -> Entity:
    return Entity(topic_id=uuid_to_text(record.topic_id), topic_name=record.name)


def _topic_id(record: Any) -> Entity:
    return Entity(topic_id=uuid_to_text(record.topic_id))


def _partition(record: Any) -> Entity:
    return Entity(topic_id=uuid_to_text(record.topic_id), partition_id=record.partition_id)


def _broker(record: Any) -> Entity:
    # A snapshot's ProducerIdsRecord names no broker: -1.
    return Entity(broker_id=record.broker_id) if record.broker_id >= 0 else NOTHING


def _fencing(record: Any) -> Entity:
    return Entity(broker_id=record.id)


def _resource(record: Any) -> Entity:
    return of_resource(record.resource_type, record.resource_name)


def of_resource(resource_type: int, name: str) -> Entity:
    """The topic or the broker that a config is of."""
    if resource_type == TOPIC_RESOURCE:
        return Entity(topic_name=name)
    if resource_type == BROKER_RESOURCE and len(name) <= _BROKER_DIGITS and name.isascii() and name.isdigit():
        broker_id = int(name)
        return Entity(broker_id=broker_id) if broker_id <= _LAST_BROKER_ID else NOTHING
    return NOTHING


def _cleared_topic(record: Any) -> Entity:
    return Entity(topic_name=record.topic_name or None)


_READERS: dict[str, Callable[[Any], Entity]] = {
    "TopicRecord": _topic,
    "RemoveTopicRecord": _topic_id,
    "PartitionRecord": _partition,
    "PartitionChangeRecord": _partition,
    "RegisterBrokerRecord": _broker,
    "UnregisterBrokerRecord": _broker,
    "BrokerRegistrationChangeRecord": _broker,
    "ProducerIdsRecord": _broker,
    "FenceBrokerRecord": _fencing,
    "UnfenceBrokerRecord": _fencing,
    "ConfigRecord": _resource,
    "ClearElrRecord": _cleared_topic,
}

_PARTITION = "v_topic_id, None, v_partition_id, None"
_BROKER = "None, None, None, (v_broker_id if v_broker_id >= 0 else None)"
# The same as expressions, for `wire.record_text`: of records that are read without an object for each.
ENTITY_EXPRESSIONS: Final[Mapping[str, str]] = {
    "TopicRecord": "v_topic_id, v_name, None, None",
    "RemoveTopicRecord": "v_topic_id, None, None, None",
    "PartitionRecord": _PARTITION,
    "PartitionChangeRecord": _PARTITION,
    "RegisterBrokerRecord": _BROKER,
    "UnregisterBrokerRecord": _BROKER,
    "BrokerRegistrationChangeRecord": _BROKER,
    "ProducerIdsRecord": _BROKER,
    "FenceBrokerRecord": "None, None, None, v_id",
    "UnfenceBrokerRecord": "None, None, None, v_id",
    "ConfigRecord": "*of_resource(v_resource_type, v_resource_name)",
    "ClearElrRecord": "None, (v_topic_name or None), None, None",
}
ENTITY_NAMES: Final[Mapping[str, object]] = {"of_resource": of_resource}
