"""What differs between two images, as state: which broker, topic, partition or config is another, and in what."""

from collections.abc import Iterator, Mapping

from metadata.image.cluster import BrokerRegistration, ControllerRegistration
from metadata.image.configs import BROKER, TOPIC, ConfigResource, ConfigsImage
from metadata.image.features import FeaturesImage
from metadata.image.image import MetadataImage
from metadata.image.quotas import ClientQuotasImage, QuotaEntity
from metadata.image.security import ScramCredential, SecurityImage
from metadata.image.state_change import (
    WITHHELD,
    Action,
    FieldChange,
    StateChange,
    StateKind,
    action_of,
    differing,
    field_changes,
)
from metadata.image.topics_diff import diff_topics
from wire.sensitive_configs import is_sensitive_config
from wire.uuids import uuid_to_text

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
