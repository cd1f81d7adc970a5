"""UpdateFeatures (KIP-584, KIP-778, KIP-1022; rule C17), and which levels the cluster's nodes support.

All of a request's updates are done, or none. kraft.version is no record of the metadata: its upgrade from 0 to 1 moves
the static voters of the configuration into the log, from which time they can be changed (KIP-853; rule
R11.5). A committed level that this program cannot run is fatal (KIP-919).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.partitions.elr import elr_safety_records
from kquorum.metadata.controller.quorum.activation import LogUnsupported
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.features import (
    NOT_SUPPORTED,
    SUPPORTED_FEATURES,
    reason_not_supported,
    unmet_dependency,
)
from kquorum.metadata.image.cluster import SupportedFeature
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.metadata_version import (
    CONTROLLER_REGISTRATION,
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    loses_metadata,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kquorum.wire.metadata_records.features import FeatureLevelRecord, NoOpRecord
from kquorum.wire.schema import MetadataRecord

Range = tuple[int, int]


def reason_unsupported(context: DecisionContext, name: str, level: int) -> str | None:
    """Why the cluster cannot run the level: the first node that does not support it, or whose range is unknown. Fenced
    brokers count as well: otherwise they could not register again."""
    for what, supported in _nodes(context, name):
        reason = reason_not_supported(what, level, supported)
        if reason is not None:
            return reason
    return _unregistered_controller(context)


def _nodes(context: DecisionContext, name: str) -> Iterator[tuple[str, Range]]:
    """This controller, the brokers, and from 3.7-IV0 on the other controllers, by id."""
    yield f"Local controller {context.node_id}", SUPPORTED_FEATURES.get(name, NOT_SUPPORTED)
    cluster = context.image.cluster
    for broker_id, broker in sorted(cluster.brokers.items()):
        yield f"Broker {broker_id}", _range(broker.features, name)
    if context.metadata_version >= CONTROLLER_REGISTRATION:
        for controller_id, controller in sorted(cluster.controllers.items()):
            if controller_id != context.node_id:
                yield f"Controller {controller_id}", _range(controller.features, name)


def _range(features: Iterable[SupportedFeature], name: str) -> Range:
    """A feature that is not mentioned is supported at 0 only."""
    for feature in features:
        if feature.name == name:
            return feature.min_supported_version, feature.max_supported_version
    return NOT_SUPPORTED


def _unregistered_controller(context: DecisionContext) -> str | None:
    if context.metadata_version < CONTROLLER_REGISTRATION:
        return None
    known = {*context.image.cluster.controllers, context.node_id}
    missing = next((each for each in sorted(context.voter_ids()) if each not in known), None)
    if missing is None:
        return None
    return f"controller {missing} has not registered, and may not support this feature"


def check_levels(image: MetadataImage, delta: MetadataDelta) -> None:
    """For what was committed: raises LogUnsupported for a level that this program cannot run, which is fatal.

    A controller that went on would misread, or fail to keep, what the level brings.
    """
    for name in sorted(delta.changed_features & set(image.features.finalized)):
        level = image.features.finalized[name]
        low, high = SUPPORTED_FEATURES.get(name, NOT_SUPPORTED)
        if not low <= level <= high:
            raise LogUnsupported(
                f"the metadata log finalizes {name} {level}, but this program runs levels {low} to {high} of it: run "
                "a version that knows the level. Nothing was written into the log"
            )


class UpgradeType(IntEnum):
    """`FeatureUpdateKey.UpgradeType`."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class Update(NamedTuple):
    name: str
    level: int
    current: int
    type: UpgradeType


def update_features(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """Raises INVALID_UPDATE_VERSION for the whole request at the first invalid update."""
    body: UpdateFeaturesRequest = request.body
    updates = _updates(context, body)
    # All updates take effect together, so each is checked against the levels that the request leaves behind.
    resulting = _current_levels(context) | {update.name: update.level for update in updates}
    for update in updates:
        _check(context, update, resulting)
    is_dry_run = not updates or body.validate_only
    kraft_level = next((update.level for update in updates if _concerns_kraft(update)), None)
    return ControllerResult(
        records=() if is_dry_run else tuple(_records(context, updates)),
        response=_accepted(updates),
        audit_reason="set features: " + ", ".join(f"{update.name} {update.level}" for update in updates),
        after_append=None if is_dry_run or kraft_level is None else _upgrade(context, kraft_level),
        waits_for_log_end=not is_dry_run and kraft_level is not None,
    )


def _updates(context: DecisionContext, body: UpdateFeaturesRequest) -> tuple[Update, ...]:
    """Of a feature that is named twice the first counts, as in Kafka, where they are keys of a set."""
    current = _current_levels(context)
    updates: dict[str, Update] = {}
    for asked in body.feature_updates:
        level = asked.max_version_level
        before = current.get(asked.feature, 0)
        updates.setdefault(asked.feature, Update(asked.feature, level, before, _type(asked, level, before)))
    return tuple(updates.values())


def _type(asked: FeatureUpdateKey, level: int, current: int) -> UpgradeType:
    """Version 0 has no type, which reads as UPGRADE; it only says whether a downgrade is allowed."""
    if asked.allow_downgrade and level < current:
        return UpgradeType.SAFE_DOWNGRADE
    known = set(map(int, UpgradeType))
    return UpgradeType(asked.upgrade_type) if asked.upgrade_type in known else UpgradeType.UNKNOWN


def _current_levels(context: DecisionContext) -> dict[str, int]:
    levels = dict(context.image.features.finalized)
    return levels | {METADATA_VERSION: context.metadata_version, KRAFT_VERSION: context.kraft_version()}


def _concerns_kraft(update: Update) -> bool:
    return update.name == KRAFT_VERSION and update.type is UpgradeType.UPGRADE


def _check(context: DecisionContext, update: Update, resulting: Mapping[str, int]) -> None:
    """In the order of Kafka's checks: the client gets the first failure."""
    if update.type is UpgradeType.UNKNOWN:
        raise _refused(update, "The controller does not support the given upgrade type.")
    if update.level < 0:
        raise _refused(update, "A feature version cannot be less than 0.")
    reason = reason_unsupported(context, update.name, update.level)
    if reason is not None:
        raise _refused(update, reason)
    _check_direction(update)
    if update.name == METADATA_VERSION:
        _check_metadata_version(update, resulting)
        return
    reason = unmet_dependency(update.name, update.level, resulting[METADATA_VERSION])
    if reason is None and _concerns_kraft(update):
        reason = context.upgrade_kraft_version(update.level, True)
    if reason is not None:
        raise _refused(update, reason)


def _check_direction(update: Update) -> None:
    is_upgrade = update.type is UpgradeType.UPGRADE
    if update.level < update.current and is_upgrade:
        raise _refused(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        )
    if update.level > update.current and not is_upgrade:
        raise _refused(update, "Can't downgrade to a newer version.")
    if update.name == KRAFT_VERSION and update.level < update.current:
        raise _refused(update, "Can't downgrade the version of this feature.")


def _check_metadata_version(update: Update, resulting: Mapping[str, int]) -> None:
    """A downgrade past a level that added metadata might lose some; Kafka does not support that yet (KAFKA-13896)."""
    if update.level < update.current and loses_metadata(update.current, update.level):
        why = (
            "Refusing to perform the requested downgrade because it might delete metadata information."
            if update.type is UpgradeType.SAFE_DOWNGRADE
            else "Unsafe metadata downgrade is not supported in this version."
        )
        raise _refusal(
            f"Unsupported {METADATA_VERSION} downgrade from {update.current} to {update.level}. {why}"
        )
    for name, level in sorted(resulting.items()):
        reason = unmet_dependency(name, level, update.level)
        if reason is not None:
            raise _refusal(f"Invalid {METADATA_VERSION} {update.level}. {reason}")


def _records(context: DecisionContext, updates: tuple[Update, ...]) -> list[MetadataRecord]:
    """What eligible leader replicas ask for comes first. The quorum's own feature has no record, but a no-op to carry
    the audit note."""
    records: list[MetadataRecord] = []
    # Turned off, the lists stay until a partition changes, as in Kafka: some partitions have no other replica to lead
    # them.
    if any(update.name == ELIGIBLE_LEADER_REPLICAS_VERSION and update.level > 0 for update in updates):
        records += elr_safety_records(context)
    for update in updates:
        if update.name == KRAFT_VERSION:
            records += [NoOpRecord()] if update.level > update.current else []
        else:
            records.append(FeatureLevelRecord(name=update.name, feature_level=update.level))
    return records


def _upgrade(context: DecisionContext, level: int) -> Callable[[int], None]:
    def upgrade(_end_offset: int) -> None:
        reason = context.upgrade_kraft_version(level, False)
        assert reason is None, f"what was validated is refused: {reason}"

    return upgrade


def _accepted(updates: tuple[Update, ...]) -> UpdateFeaturesResponse:
    results = [UpdatableFeatureResult(feature=update.name, error_message=None) for update in updates]
    return UpdateFeaturesResponse(error_message=None, results=tuple(results))


def _refused(update: Update, reason: str) -> ApiError:
    return _refusal(f"Invalid update version {update.level} for feature {update.name}. {reason}")


def _refusal(reason: str) -> ApiError:
    return ApiError(
        ErrorCode.invalid_update_version,
        f"The update failed for all features since the following feature had an error: {reason}",
    )
