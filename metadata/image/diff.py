"""What differs between two images, as state: which broker, topic, partition or config changed, and which of its fields.

For a removed topic its partitions are counted, not listed. For a new topic each partition is listed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar
from uuid import UUID

import numpy as np

from kquorum.metadata.image.cluster import (
    BrokerRegistration,
    ControllerRegistration,
    Endpoint,
    SupportedFeature,
)
from kquorum.metadata.image.configs import BROKER, TOPIC, ConfigResource, ConfigsImage
from kquorum.metadata.image.features import FeaturesImage
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.metadata.image.partitions import EMPTY_PARTITIONS, PartitionTable
from kquorum.metadata.image.quotas import ClientQuotasImage, QuotaEntity
from kquorum.metadata.image.security import ScramCredential, SecurityImage
from kquorum.metadata.image.topics import TopicImage, TopicsImage
from kquorum.wire.sensitive_configs import is_sensitive_config
from kquorum.wire.uuids import uuid_to_text

Plain = None | bool | int | float | str | tuple["Plain", ...]
_K = TypeVar("_K")
_V = TypeVar("_V")

WITHHELD = "(withheld)"


class StateKind(StrEnum):
    """In the order in which they are shown."""

    QUORUM = "quorum"
    FEATURE = "feature"
    BROKER = "broker"
    CONTROLLER = "controller"
    TOPIC = "topic"
    PARTITION = "partition"
    CONFIG = "config"
    CLIENT_QUOTA = "client quota"
    PRODUCER_IDS = "producer ids"
    ACL = "acl"
    SCRAM = "scram credential"
    DELEGATION_TOKEN = "delegation token"  # noqa: S105 - a kind's name


class Action(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """None stands for a field of something that is not there; secrets are shown as WITHHELD on either side."""

    name: str
    before: Plain
    after: Plain


@dataclass(frozen=True, slots=True)
class StateChange:
    """`keys` name the subject for programs, `subject` for people."""

    kind: StateKind
    action: Action
    subject: str
    keys: tuple[tuple[str, Plain], ...]
    fields: tuple[FieldChange, ...]


def plain(value: object) -> Plain:
    """Ids, endpoints and supported features as text; tuples stay tuples."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case UUID():
            return uuid_to_text(value)
        case Endpoint():
            return f"{value.name}://{value.host}:{value.port}"
        case SupportedFeature():
            return f"{value.name} {value.min_supported_version}-{value.max_supported_version}"
        case tuple() | list():
            return tuple(plain(item) for item in value)
    return str(value)


def field_changes(
    before: object | None, after: object | None, names: tuple[str, ...]
) -> tuple[FieldChange, ...]:
    """The fields of these names that differ; where one side is missing, all that are set on the other."""
    found = []
    for name in names:
        old = None if before is None else getattr(before, name)
        new = None if after is None else getattr(after, name)
        # A new entity's empty fields say nothing and are left out; between two states an emptied field is a change.
        is_change = old != new if before is not None and after is not None else (old or new) not in (None, ())
        if is_change:
            found.append(FieldChange(name, plain(old), plain(new)))
    return tuple(found)


def action_of(before: object | None, after: object | None) -> Action:
    return Action.ADDED if before is None else Action.REMOVED if after is None else Action.CHANGED


def differing(
    before: Mapping[_K, _V], after: Mapping[_K, _V], order: Callable[[_K], Any]
) -> Iterator[tuple[_K, _V | None, _V | None]]:
    """(key, value before, value after) of each key whose values differ, sorted."""
    if before is after:
        return
    keys = {key for key, value in before.items() if after.get(key) != value}
    keys |= {key for key in after if key not in before}
    for key in sorted(keys, key=order):
        yield key, before.get(key), after.get(key)


_PARTITION_FIELDS = (
    "leader",
    "leader_epoch",
    "isr",
    "replicas",
    "removing_replicas",
    "adding_replicas",
    "elr",
    "last_known_elr",
    "leader_recovery_state",
    "partition_epoch",
    "directories",
)


def diff_topics(before: TopicsImage, after: TopicsImage) -> Iterator[StateChange]:
    if before is after:
        return
    by_name = sorted(_changed_ids(before.by_id, after.by_id), key=lambda pair: pair[0])
    for _, topic_id in by_name:
        yield from _topic(before.by_id.get(topic_id), after.by_id.get(topic_id))


def _changed_ids(
    before: Mapping[UUID, TopicImage], after: Mapping[UUID, TopicImage]
) -> Iterator[tuple[tuple[str, int], UUID]]:
    """Topics that may differ, with what they are sorted by; a topic that is the same object on both sides cannot."""
    for topic_id, topic in before.items():
        if after.get(topic_id) is not topic:
            yield (topic.name, topic_id.int), topic_id
    for topic_id, topic in after.items():
        if topic_id not in before:
            yield (topic.name, topic_id.int), topic_id


def _topic(old: TopicImage | None, new: TopicImage | None) -> Iterator[StateChange]:
    if new is None:
        assert old is not None, "the topic is on one side at least"
        yield _topic_change(old, Action.REMOVED, (FieldChange("partitions", len(old.partitions), None),))
        return
    if old is None:
        yield _topic_change(new, Action.ADDED, (FieldChange("partitions", None, len(new.partitions)),))
    elif old.name != new.name:
        yield _topic_change(new, Action.CHANGED, (FieldChange("name", old.name, new.name),))
    old_table = EMPTY_PARTITIONS if old is None else old.partitions
    yield from _partitions(new, old_table)


def _topic_change(topic: TopicImage, action: Action, fields: tuple[FieldChange, ...]) -> StateChange:
    topic_id = uuid_to_text(topic.id)
    return StateChange(
        StateKind.TOPIC, action, topic.name, (("topic", topic.name), ("topic_id", topic_id)), fields
    )


def _partitions(topic: TopicImage, old_table: PartitionTable) -> Iterator[StateChange]:
    for partition_id, old, new in _differing(old_table, topic.partitions):
        action = Action.ADDED if old is None else Action.REMOVED if new is None else Action.CHANGED
        keys = (
            ("topic", topic.name),
            ("topic_id", uuid_to_text(topic.id)),
            ("partition", partition_id),
        )
        fields = field_changes(old, new, _PARTITION_FIELDS)
        yield StateChange(StateKind.PARTITION, action, f"{topic.name}-{partition_id}", keys, fields)


def _differing(
    old_table: PartitionTable, new_table: PartitionTable
) -> Iterator[tuple[int, PartitionState | None, PartitionState | None]]:
    """The partitions that are not the same in both tables; the columns tell which, so only these are looked at."""
    changed = new_table.ids_not_in(old_table)
    removed = np.setdiff1d(old_table.ids, new_table.ids)
    for partition_id in np.union1d(changed, removed).tolist():
        yield partition_id, old_table.get(partition_id), new_table.get(partition_id)


_RESOURCE_TYPES = {TOPIC: "topic", BROKER: "broker", 16: "client metrics", 32: "group"}


def diff_images(before: MetadataImage, after: MetadataImage) -> Iterator[StateChange]:
    """Every difference, by kind; provenance does not count. Nothing is yielded exactly when the images are equal."""
    yield from _features(before.features, after.features)
    yield from _brokers(before.cluster.brokers, after.cluster.brokers)
    yield from _controllers(before.cluster.controllers, after.cluster.controllers)
    yield from diff_topics(before.topics, after.topics)
    yield from _configs(before.configs, after.configs)
    yield from _quotas(before.client_quotas, after.client_quotas)
    if before.producer_ids != after.producer_ids:
        changes = field_changes(before.producer_ids, after.producer_ids, ("next_producer_id",))
        yield StateChange(StateKind.PRODUCER_IDS, Action.CHANGED, "producer ids", (), changes)
    yield from _security(before.security, after.security)


def _features(before: FeaturesImage, after: FeaturesImage) -> Iterator[StateChange]:
    for name, old, new in differing(before.finalized, after.finalized, str):
        changes = (FieldChange("level", old, new),)
        yield StateChange(StateKind.FEATURE, action_of(old, new), name, (("feature", name),), changes)
    old, new = before.zk_migration_state, after.zk_migration_state
    if old != new:
        changes = (FieldChange("state", old, new),)
        yield StateChange(StateKind.FEATURE, action_of(old, new), "ZooKeeper migration", (), changes)


_BROKER_FIELDS = (
    "epoch",
    "incarnation_id",
    "end_points",
    "features",
    "rack",
    "fenced",
    "in_controlled_shutdown",
    "log_dirs",
    "cordoned_log_dirs",
    "is_migrating_zk_broker",
)
_CONTROLLER_FIELDS = ("incarnation_id", "zk_migration_ready", "end_points", "features")


def _brokers(
    before: Mapping[int, BrokerRegistration], after: Mapping[int, BrokerRegistration]
) -> Iterator[StateChange]:
    for broker_id, old, new in differing(before, after, int):
        changes = field_changes(old, new, _BROKER_FIELDS)
        yield StateChange(
            StateKind.BROKER, action_of(old, new), str(broker_id), (("broker", broker_id),), changes
        )


def _controllers(
    before: Mapping[int, ControllerRegistration], after: Mapping[int, ControllerRegistration]
) -> Iterator[StateChange]:
    for controller_id, old, new in differing(before, after, int):
        changes = field_changes(old, new, _CONTROLLER_FIELDS)
        keys = (("controller", controller_id),)
        yield StateChange(StateKind.CONTROLLER, action_of(old, new), str(controller_id), keys, changes)


def _configs(before: ConfigsImage, after: ConfigsImage) -> Iterator[StateChange]:
    for resource, old, new in differing(before.resources, after.resources, tuple):
        keys = (("resource_type", resource.type), ("resource_name", resource.name))
        changes = tuple(
            _secret_aware(name, old_value, new_value)
            for name, old_value, new_value in differing(old or {}, new or {}, str)
        )
        yield StateChange(StateKind.CONFIG, action_of(old, new), _resource_text(resource), keys, changes)


def _secret_aware(name: str, old: str | None, new: str | None) -> FieldChange:
    if not is_sensitive_config(name):
        return FieldChange(name, old, new)
    return FieldChange(name, None if old is None else WITHHELD, None if new is None else WITHHELD)


def _resource_text(resource: ConfigResource) -> str:
    kind = _RESOURCE_TYPES.get(resource.type, f"type {resource.type}")
    return f"{kind} {resource.name}" if resource.name else f"all {kind}s"


def _quotas(before: ClientQuotasImage, after: ClientQuotasImage) -> Iterator[StateChange]:
    for entity, old, new in differing(before.entities, after.entities, repr):
        keys = tuple((kind, name) for kind, name in entity)
        changes = tuple(FieldChange(*change) for change in differing(old or {}, new or {}, str))
        yield StateChange(StateKind.CLIENT_QUOTA, action_of(old, new), _entity_text(entity), keys, changes)


def _entity_text(entity: QuotaEntity) -> str:
    return " ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in entity)


_ACL_FIELDS = (
    "resource_type",
    "resource_name",
    "pattern_type",
    "principal",
    "host",
    "operation",
    "permission_type",
)
_TOKEN_FIELDS = (
    "owner",
    "requester",
    "renewers",
    "issue_timestamp_ms",
    "max_timestamp_ms",
    "expiration_timestamp_ms",
)


def _security(before: SecurityImage, after: SecurityImage) -> Iterator[StateChange]:
    for acl_id, old, new in differing(before.acls, after.acls, lambda key: key.int):
        name = uuid_to_text(acl_id)
        yield StateChange(
            StateKind.ACL, action_of(old, new), name, (("id", name),), field_changes(old, new, _ACL_FIELDS)
        )
    for user, old_one, new_one in differing(before.scram, after.scram, tuple):
        user_keys = (("user", user.name), ("mechanism", user.mechanism))
        changes = field_changes(old_one, new_one, ("iterations",)) + _secret_changes(old_one, new_one)
        subject = f"{user.name} (mechanism {user.mechanism})"
        yield StateChange(StateKind.SCRAM, action_of(old_one, new_one), subject, user_keys, changes)
    for token_id, old_token, new_token in differing(before.delegation_tokens, after.delegation_tokens, str):
        changes = field_changes(old_token, new_token, _TOKEN_FIELDS)
        keys = (("token_id", token_id),)
        yield StateChange(
            StateKind.DELEGATION_TOKEN, action_of(old_token, new_token), token_id, keys, changes
        )


def _secret_changes(old: ScramCredential | None, new: ScramCredential | None) -> tuple[FieldChange, ...]:
    return tuple(
        FieldChange(
            change.name, *(None if side is None else WITHHELD for side in (change.before, change.after))
        )
        for change in field_changes(old, new, ("salt", "stored_key", "server_key"))
    )
