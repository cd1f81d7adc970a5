"""What eligible leader replicas (KIP-966) ask of changes of configs and features.

The lists rest on min.insync.replicas: while fewer are in sync, nothing is committed that those on the list lack. So all
nodes must see the same value, and a list that was kept under another one is worth nothing.
"""

from collections.abc import Iterable, Iterator

from kquorum.metadata.controller.context import MIN_IN_SYNC_REPLICAS, DecisionContext
from kquorum.metadata.image.configs import BROKER, CLUSTER_DEFAULT, TOPIC, ConfigResource
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.topics import ClearElrRecord, PartitionChangeRecord
from kquorum.wire.schema import MetadataRecord


def clear_elr_records(context: DecisionContext, records: Iterable[MetadataRecord]) -> list[ClearElrRecord]:
    """For the end of a change of configs: every list whose min.insync.replicas these records change is cleared, that of
    a topic or those of all. Keys of groups and the like, which may have any name, are no matter."""
    if not context.is_elr_enabled:
        return []
    return [
        ClearElrRecord(topic_name=record.resource_name if record.resource_type == TOPIC else "")
        for record in records
        if isinstance(record, ConfigRecord)
        and record.name == MIN_IN_SYNC_REPLICAS
        and record.resource_type in (TOPIC, BROKER)
    ]


def elr_safety_records(context: DecisionContext) -> list[MetadataRecord]:
    """For the beginning of a change that turns the feature on: one value for the cluster, none of single brokers, and
    no list from before it was turned off."""
    stale = () if context.is_elr_enabled else _without_stale_lists(context)
    return [*_cluster_value(context), *_without_broker_values(context), *stale]


def cluster_minimum(value: int) -> ConfigRecord:
    return _broker_config(CLUSTER_DEFAULT, str(value))


def _cluster_value(context: DecisionContext) -> Iterator[MetadataRecord]:
    resource = ConfigResource(BROKER, CLUSTER_DEFAULT)
    if context.image.configs.value(resource, MIN_IN_SYNC_REPLICAS) is None:
        yield cluster_minimum(context.config.min_insync_replicas)


def _without_broker_values(context: DecisionContext) -> Iterator[MetadataRecord]:
    for resource, values in sorted(context.image.configs.resources.items()):
        if resource.type == BROKER and resource.name != CLUSTER_DEFAULT and MIN_IN_SYNC_REPLICAS in values:
            yield _broker_config(resource.name, None)


def _without_stale_lists(context: DecisionContext) -> Iterator[MetadataRecord]:
    """While the lists were not maintained, the ISR may have committed records that the listed replicas lack. A list is
    kept only where the ISR was empty: nothing was written then, and the list is the only record of which replicas have
    the data."""
    for topic in context.image.topics.by_id.values():
        stale: list[int] = []
        is_whole_topic = True
        for partition_id, lists in sorted(topic.partitions.rare_lists.items()):
            if not (lists.elr or lists.last_known_elr):
                continue
            state = topic.partitions.get(partition_id)
            if state is not None and state.isr:
                stale.append(partition_id)
            else:
                is_whole_topic = False
        if stale and is_whole_topic:
            yield ClearElrRecord(topic_name=topic.name)
            continue
        for partition_id in stale:
            yield PartitionChangeRecord(
                topic_id=topic.id,
                partition_id=partition_id,
                eligible_leader_replicas=(),
                last_known_elr=(),
            )


def _broker_config(name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=BROKER, resource_name=name, name=MIN_IN_SYNC_REPLICAS, value=value)
