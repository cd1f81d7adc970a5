"""Whether any version of a struct has a field: tells one that this version lacks from a misspelt one."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import Any, Final

from kio.schema.index import schema_name_map

_SCHEMA_PACKAGE = "kio.schema"

# Names that the newest version of a struct has no more, by package, kind and class.
FORMER_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "add_partitions_to_txn.request.AddPartitionsToTxnRequest": frozenset(
        (
            "v3_and_below_producer_epoch",
            "v3_and_below_producer_id",
            "v3_and_below_topics",
            "v3_and_below_transactional_id",
        )
    ),
    "add_partitions_to_txn.response.AddPartitionsToTxnResponse": frozenset(
        ("results_by_topic_v3_and_below",)
    ),
    "alter_partition.request.PartitionData": frozenset(("new_isr",)),
    "delete_topics.request.DeleteTopicsRequest": frozenset(("topic_names",)),
    "end_quorum_epoch.request.PartitionData": frozenset(("preferred_successors",)),
    "fetch.request.FetchTopic": frozenset(("topic",)),
    "fetch.request.ForgottenTopic": frozenset(("topic",)),
    "fetch.request.FetchRequest": frozenset(("replica_id",)),
    "fetch.response.FetchableTopicResponse": frozenset(("topic",)),
    "find_coordinator.request.FindCoordinatorRequest": frozenset(("key",)),
    "find_coordinator.response.FindCoordinatorResponse": frozenset(
        (
            "error_code",
            "error_message",
            "host",
            "node_id",
            "port",
        )
    ),
    "leave_group.request.LeaveGroupRequest": frozenset(("member_id",)),
    "metadata.request.MetadataRequest": frozenset(("include_cluster_authorized_operations",)),
    "metadata.response.MetadataResponse": frozenset(("cluster_authorized_operations",)),
    "offset_commit.request.OffsetCommitRequestTopic": frozenset(("name",)),
    "offset_commit.request.OffsetCommitRequest": frozenset(
        (
            "retention_time",
            "retention_time_ms",
        )
    ),
    "offset_commit.response.OffsetCommitResponseTopic": frozenset(("name",)),
    "offset_fetch.request.OffsetFetchRequestTopic": frozenset(
        (
            "name",
            "partition_indexes",
        )
    ),
    "offset_fetch.request.OffsetFetchRequest": frozenset(
        (
            "group_id",
            "topics",
        )
    ),
    "offset_fetch.request.OffsetFetchRequestTopics": frozenset(("name",)),
    "offset_fetch.response.OffsetFetchResponsePartition": frozenset(
        (
            "committed_leader_epoch",
            "committed_offset",
            "error_code",
            "metadata",
            "partition_index",
        )
    ),
    "offset_fetch.response.OffsetFetchResponseTopic": frozenset(
        (
            "name",
            "partitions",
        )
    ),
    "offset_fetch.response.OffsetFetchResponse": frozenset(
        (
            "error_code",
            "topics",
        )
    ),
    "offset_fetch.response.OffsetFetchResponseTopics": frozenset(("name",)),
    "produce.request.TopicProduceData": frozenset(("name",)),
    "produce.response.TopicProduceResponse": frozenset(("name",)),
    "update_features.request.FeatureUpdateKey": frozenset(("allow_downgrade",)),
    "update_features.response.UpdatableFeatureResult": frozenset(
        (
            "error_code",
            "error_message",
            "feature",
        )
    ),
    "update_features.response.UpdateFeaturesResponse": frozenset(("results",)),
}


@cache
def is_field_of_another_version(module: str, class_name: str, name: str) -> bool:
    """Imports the newest version at the most, which a node has imported before it serves: it builds answers in its
    loop, and each version takes 10 ms and more."""
    package, _, rest = module.removeprefix(_SCHEMA_PACKAGE + ".").partition(".")
    _, _, kind = rest.partition(".")
    if name in FORMER_FIELDS.get(f"{package}.{kind}.{class_name}", ()):
        return True
    newest = max(schema_name_map.get(package, (0,)))
    struct = _struct(package, newest, kind, class_name)
    return struct is not None and name in field_names(struct)


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
