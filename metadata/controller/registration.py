"""Registration of brokers and controllers (KIP-631, KIP-858, KIP-919)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from metadata.controller.context import DecisionContext
from metadata.controller.requests import ApiError, ControllerRequest, ControllerResult
from metadata.controller.transitions import unregister_records
from metadata.image.cluster import (
    BrokerRegistration,
    ControllerRegistration,
    SupportedFeature,
    endpoints_from,
    features_from,
)
from metadata.image.directories import is_reserved
from metadata.image.metadata_version import (
    CONTROLLER_REGISTRATION,
    DIRECTORIES,
    METADATA_VERSION,
    MINIMUM_METADATA_VERSION,
)
from metadata.image.records import broker_record, controller_record
from wire.uuids import ZERO_UUID, uuid_to_text


def register_broker(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """A new process gets a new epoch, the offset of its registration; the same one amends what it said before."""
    body = request.body
    existing = context.image.cluster.brokers.get(body.broker_id)
    incarnation_id = body.incarnation_id or ZERO_UUID
    _check_cluster_id(context, body.cluster_id)
    _check_not_duplicate(context, existing, incarnation_id)
    if getattr(body, "is_migrating_zk_broker", False):
        raise ApiError(
            ErrorCode.broker_id_not_registered, "Brokers that migrate from ZooKeeper cannot register here."
        )
    log_dirs = tuple(each or ZERO_UUID for each in getattr(body, "log_dirs", ()))
    if context.metadata_version >= DIRECTORIES:
        _check_directories(context, body.broker_id, log_dirs)
    kept = existing if existing is not None and existing.incarnation_id == incarnation_id else None
    registration = BrokerRegistration(
        id=body.broker_id,
        epoch=context.next_offset if kept is None else kept.epoch,
        incarnation_id=incarnation_id,
        end_points=endpoints_from(body.listeners),
        features=_checked_features(context, body.features),
        rack=body.rack,
        fenced=True if kept is None else kept.fenced,
        in_controlled_shutdown=False if kept is None else kept.in_controlled_shutdown,
        log_dirs=log_dirs if context.metadata_version >= DIRECTORIES else (),
    )

    def after_append(_end_offset: int) -> None:
        context.liveness.register(registration.id, context.now_ms, is_new_incarnation=kept is None)

    return ControllerResult(
        records=(broker_record(registration),),
        response={"throttle_time": 0, "error_code": ErrorCode.none, "broker_epoch": registration.epoch},
        after_append=after_append,
    )


def unregister_broker(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    broker_id = request.body.broker_id
    broker = context.image.cluster.brokers.get(broker_id)
    if broker is None:
        reason = f"Broker ID {broker_id} is not currently registered"
        raise ApiError(ErrorCode.broker_id_not_registered, reason)
    return ControllerResult(
        records=tuple(unregister_records(context, broker)),
        response={"throttle_time": 0, "error_code": ErrorCode.none, "error_message": None},
        is_atomic=False,
        audit_reason=f"unregister broker {broker_id}",
        after_append=lambda _end_offset: context.liveness.remove(broker_id),
    )


def register_controller(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    if context.metadata_version < CONTROLLER_REGISTRATION:
        reason = f"metadata.version {context.metadata_version} has no controller registrations (3.7-IV0 and later do)."
        raise ApiError(ErrorCode.unsupported_version, reason)
    body = request.body
    registration = ControllerRegistration(
        id=body.controller_id,
        incarnation_id=body.incarnation_id or ZERO_UUID,
        end_points=endpoints_from(body.listeners),
        features=features_from(body.features),
    )
    return ControllerResult(
        records=(controller_record(registration),),
        response={"throttle_time": 0, "error_code": ErrorCode.none, "error_message": None},
    )


def _check_cluster_id(context: DecisionContext, cluster_id: str) -> None:
    if cluster_id != context.cluster_id:
        reason = f"Expected cluster ID {context.cluster_id}, but got cluster ID {cluster_id}"
        raise ApiError(ErrorCode.inconsistent_cluster_id, reason)


def _check_not_duplicate(
    context: DecisionContext, existing: BrokerRegistration | None, incarnation_id: UUID
) -> None:
    if existing is None or existing.incarnation_id == incarnation_id:
        return
    if context.liveness.has_valid_session(existing, context.now_ms):
        reason = f"Another process is registered as broker {existing.id} and alive."
        raise ApiError(ErrorCode.duplicate_broker_registration, reason)


def _check_directories(context: DecisionContext, broker_id: int, log_dirs: tuple[UUID, ...]) -> None:
    if not log_dirs:
        raise ApiError(ErrorCode.invalid_registration, "No directories specified in request")
    if any(is_reserved(directory) for directory in log_dirs):
        raise ApiError(ErrorCode.invalid_registration, "Reserved directory ID in request")
    if len(set(log_dirs)) != len(log_dirs):
        raise ApiError(ErrorCode.invalid_registration, "Duplicate directory ID in request")
    for other in context.image.cluster.brokers.values():
        for directory in set(log_dirs) & set(other.log_dirs) if other.id != broker_id else ():
            reason = f"Broker {other.id} is already registered with directory {uuid_to_text(directory)}"
            raise ApiError(ErrorCode.invalid_registration, reason)


@dataclass(frozen=True, slots=True)
class _Range:
    low: int
    high: int


def _checked_features(context: DecisionContext, sent: Iterable[Any]) -> tuple[SupportedFeature, ...]:
    """Every finalised level must be in the broker's range; what it does not mention it supports at 0 only.

    A broker that does not mention metadata.version is from before there was one, and knows just the first level.
    """
    features = features_from(sent)
    ranges = {each.name: _Range(each.min_supported_version, each.max_supported_version) for each in features}
    if METADATA_VERSION not in ranges:
        only = MINIMUM_METADATA_VERSION
        ranges[METADATA_VERSION] = _Range(only, only)
        features = (*features, SupportedFeature(METADATA_VERSION, only, only))
    finalized = context.image.features.finalized
    for name in sorted(set(ranges) | set(finalized)):
        level = context.metadata_version if name == METADATA_VERSION else finalized.get(name, 0)
        _check_range(name, level, ranges.get(name, _Range(0, 0)))
    return features


def _check_range(name: str, level: int, supported: _Range) -> None:
    if not supported.low <= level <= supported.high:
        reason = (
            f"Unable to register because the broker does not support finalized version {level} of {name}. "
            f"It supports {supported.low} to {supported.high}."
        )
        raise ApiError(ErrorCode.unsupported_version, reason)
