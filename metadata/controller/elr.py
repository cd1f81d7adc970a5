"""What eligible leader replicas (KIP-966) ask of changes of configs and features.

The lists rest on min.insync.replicas: while fewer are in sync, nothing is committed that those on the list lack. So all
nodes must see the same value, and a list that was kept under another one is worth nothing.
"""

from collections.abc import Iterable, Iterator

from metadata.controller.context import MIN_IN_SYNC_REPLICAS, DecisionContext
from metadata.image.configs import BROKER, CLUSTER_DEFAULT, TOPIC, ConfigResource
from wire.metadata_records.configs import ConfigRecord
from wire.metadata_records.topics import ClearElrRecord
from wire.schema import MetadataRecord


def clear_elr_records(context: DecisionContext, records: Iterable[MetadataRecord]) -> list[MetadataRecord]:
    """For the end of a change of configs: every list whose min.insync.replicas these records change is cleared."""
    if not context.is_elr_enabled:
        return []
    return [
        ClearElrRecord(topic_name=record.resource_name if record.resource_type == TOPIC else "")
        for record in records
        if isinstance(record, ConfigRecord) and record.name == MIN_IN_SYNC_REPLICAS
    ]


def elr_safety_records(context: DecisionContext) -> list[MetadataRecord]:
    """For the beginning of a change that turns the feature on: one value for the cluster, none of single brokers."""
    return [*_cluster_value(context), *_without_broker_values(context)]


def cluster_minimum(value: int) -> ConfigRecord:
    return _broker_config(CLUSTER_DEFAULT, str(value))


def elr_lists_to_clear(context: DecisionContext) -> list[MetadataRecord]:
    """For the beginning of a change that turns the feature off: nobody would keep the lists any more."""
    tables = (topic.partitions for topic in context.image.topics.by_id.values())
    has_any = any(
        lists.elr or lists.last_known_elr for table in tables for lists in table.rare_lists.values()
    )
    return [ClearElrRecord(topic_name="")] if has_any else []


def _cluster_value(context: DecisionContext) -> Iterator[MetadataRecord]:
    resource = ConfigResource(BROKER, CLUSTER_DEFAULT)
    if context.image.configs.value(resource, MIN_IN_SYNC_REPLICAS) is None:
        yield cluster_minimum(context.config.min_insync_replicas)


def _without_broker_values(context: DecisionContext) -> Iterator[MetadataRecord]:
    for resource, values in sorted(context.image.configs.resources.items()):
        if resource.type == BROKER and resource.name != CLUSTER_DEFAULT and MIN_IN_SYNC_REPLICAS in values:
            yield _broker_config(resource.name, None)


def _broker_config(name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=BROKER, resource_name=name, name=MIN_IN_SYNC_REPLICAS, value=value)
