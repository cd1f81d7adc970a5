"""The real controller's records and image, told in the model's words."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any
from uuid import UUID

from kquorum.metadata.image.configs import TOPIC
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import (
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    RECOVERING,
    PartitionState,
)
from kquorum.wire.metadata_records import cluster, configs, features, topics
from kquorum.wire.schema import MetadataRecord
from tests.reference_model.objects import Cluster, Partition, Record


def told_records(records: Iterable[MetadataRecord], names: Mapping[UUID, str]) -> list[Record]:
    """`names` are of all topics that there were; NoOpRecords are left out, and runs of partition changes sorted."""
    known = dict(names)
    told: list[Record] = []
    for record in records:
        if isinstance(record, topics.TopicRecord):
            known[record.topic_id] = record.name
        if not isinstance(record, features.NoOpRecord):
            told.append(_told(record, known))
    return in_order(told)


def in_order(records: Iterable[Record]) -> list[Record]:
    """The order of topics and partitions within one decision says nothing."""
    runs = groupby(records, key=lambda record: record[0] in ("change", "clear elr"))
    return [
        record
        for is_change, run in runs
        for record in (sorted(run, key=lambda each: each[:3]) if is_change else run)
    ]


def _told(record: MetadataRecord, names: Mapping[UUID, str]) -> Record:
    told = _told_of_broker(record) or _told_of_topic(record, names)
    if told is not None:
        return told
    match record:
        case features.FeatureLevelRecord():
            return ("feature", record.name, record.feature_level)
        case configs.ConfigRecord():
            kind = "topic" if record.resource_type == TOPIC else "broker"
            return ("config", kind, record.resource_name, record.name, record.value)
    return (type(record).__name__,)


def _told_of_broker(record: MetadataRecord) -> Record | None:
    match record:
        case cluster.RegisterBrokerRecord():
            states = (record.fenced, record.in_controlled_shutdown)
            return ("register", record.broker_id, record.broker_epoch, *states)
        case cluster.UnregisterBrokerRecord():
            return ("unregister", record.broker_id)
        case cluster.FenceBrokerRecord():
            return ("fence", record.id, "fenced")
        case cluster.UnfenceBrokerRecord():
            return ("unfence", record.id, "unfenced")
        case cluster.BrokerRegistrationChangeRecord():
            if record.log_dirs:
                return ("broker directories", record.broker_id, [each.int for each in record.log_dirs])
            what = {1: "fenced", -1: "unfenced"}.get(record.fenced)
            return ("broker", record.broker_id, what or ("leaving" if record.in_controlled_shutdown else ""))
    return None


def _told_of_topic(record: MetadataRecord, names: Mapping[UUID, str]) -> Record | None:
    match record:
        case topics.TopicRecord():
            return ("topic", record.name)
        case topics.RemoveTopicRecord():
            return ("remove topic", names[record.topic_id])
        case topics.PartitionRecord():
            state = ([*record.replicas], [*record.isr], record.leader)
            return ("partition", names[record.topic_id], record.partition_id, *state)
        case topics.PartitionChangeRecord():
            return ("change", names[record.topic_id], record.partition_id, _told_fields(record))
        case topics.ClearElrRecord():
            return ("clear elr", record.topic_name)
    return None


def _told_fields(record: topics.PartitionChangeRecord) -> dict[str, Any]:
    lists = {
        "replicas": record.replicas,
        "isr": record.isr,
        "adding": record.adding_replicas,
        "removing": record.removing_replicas,
        "last_known": record.last_known_elr,
    }
    fields: dict[str, Any] = {name: [*value] for name, value in lists.items() if value is not None}
    if record.directories is not None:
        fields["directories"] = [each.int for each in record.directories]
    if record.eligible_leader_replicas is not None:
        fields["eligible"] = set(record.eligible_leader_replicas)
    if record.leader != NO_LEADER_CHANGE:
        fields["leader"] = record.leader
    if record.leader_recovery_state != NO_RECOVERY_CHANGE:
        fields["is_recovering"] = record.leader_recovery_state == RECOVERING
    return fields


def told_image(image: MetadataImage) -> dict[str, Any]:
    """What the model knows too."""
    return {
        "brokers": {
            each.id: (each.epoch, each.incarnation_id.int, each.fenced, each.in_controlled_shutdown)
            for each in image.cluster.brokers.values()
        },
        "topics": {
            topic.name: [told_partition(state) for _, state in topic.partitions.items()]
            for topic in image.topics.by_id.values()
        },
        "configs": {
            (resource.type, resource.name): dict(values)
            for resource, values in image.configs.resources.items()
        },
    }


def told_model(model: Cluster) -> dict[str, Any]:
    return {
        "brokers": {
            each.id: (each.epoch, each.incarnation, each.fenced, each.leaving)
            for each in model.brokers.values()
        },
        "topics": {name: topic.partitions for name, topic in model.topics.items()},
        "configs": {(2 if name else 4, name): values for name, values in model.configs.items()},
    }


def told_partition(state: PartitionState) -> Partition:
    return Partition(
        replicas=[*state.replicas],
        isr=[*state.isr],
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        adding=[*state.adding_replicas],
        removing=[*state.removing_replicas],
        eligible=set(state.elr),
        last_known=[*state.last_known_elr],
        is_recovering=state.leader_recovery_state == RECOVERING,
        directories=[each.int for each in state.directories],
    )


def differences(told: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[str]:
    """Only what differs: whole images do not fit a screen."""
    for part, values in expected.items():
        for key in sorted(values.keys() | told[part].keys(), key=str):
            got, wanted = told[part].get(key), values.get(key)
            if got != wanted:
                yield f"{part} {key}:\n  controller {got}\n  rules      {wanted}"
