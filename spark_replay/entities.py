"""Which topic, partition or broker a record is about: the key columns that filters and tables go by."""

from collections.abc import Callable
from typing import Any, NamedTuple

from wire.uuids import uuid_to_text

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4


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
    name: str = record.resource_name
    if record.resource_type == TOPIC_RESOURCE:
        return Entity(topic_name=name)
    if record.resource_type == BROKER_RESOURCE and name.isascii() and name.isdigit():
        return Entity(broker_id=int(name))
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
