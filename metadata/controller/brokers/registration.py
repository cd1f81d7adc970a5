"""Registration of brokers and controllers (rule C6; KIP-631, KIP-858, KIP-919)."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from kquorum.metadata.controller.brokers.state_records import fence_record
from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.partitions.batched_update import BrokerRemoval, Departure
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.image.cluster import (
    BrokerRegistration,
    ControllerRegistration,
    Endpoint,
    SupportedFeature,
    WireEndpoint,
    WireFeature,
    endpoints_from,
    features_from,
)
from kquorum.metadata.image.directories import is_reserved
from kquorum.metadata.image.metadata_version import (
    CONTROLLER_REGISTRATION,
    CORDONED_DIRECTORIES,
    DIRECTORIES,
    KRAFT_VERSION,
    METADATA_VERSION,
    MINIMUM_METADATA_VERSION,
)
from kquorum.metadata.image.records import broker_record, controller_record
from kquorum.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from kquorum.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from kquorum.wire.metadata_records.cluster import UnregisterBrokerRecord
from kquorum.wire.uuids import uuid_to_text

# PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL.
_SECURITY_PROTOCOLS = range(4)
_PORTS = range(1, 1 << 16)


def register_broker(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """A new process gets a new broker epoch, the offset of its registration; the same process updates its registration.
    Before a new process is registered, the old one leaves its ISRs. After an unclean shutdown it also stops being an
    eligible leader: records that it had not flushed may be lost."""
    body: BrokerRegistrationRequest = request.body
    existing = context.image.cluster.brokers.get(body.broker_id)
    _check_cluster_id(context, body.cluster_id)
    _check_broker_id(body.broker_id)
    _check_not_duplicate(context, existing, body.incarnation_id)
    if body.is_migrating_zk_broker:
        raise ApiError(
            ErrorCode.broker_id_not_registered, "Brokers that migrate from ZooKeeper cannot register here."
        )
    if context.metadata_version >= DIRECTORIES:
        _check_directories(context, body.broker_id, body.log_dirs)
    kept = existing if existing is not None and existing.incarnation_id == body.incarnation_id else None
    registration = BrokerRegistration(
        id=body.broker_id,
        epoch=context.next_offset if kept is None else kept.epoch,
        incarnation_id=body.incarnation_id,
        end_points=_checked_endpoints(body.listeners),
        features=_checked_features(context, body.features),
        rack=body.rack,
        fenced=True if kept is None else kept.fenced,
        in_controlled_shutdown=False if kept is None else kept.in_controlled_shutdown,
        log_dirs=body.log_dirs if context.metadata_version >= DIRECTORIES else (),
        cordoned_log_dirs=_cordoned(context, kept),
    )
    is_clean = kept is not None or _was_shut_down_cleanly(body, existing)
    return _registered(context, registration, is_new=kept is None, is_clean=is_clean)


def _registered(
    context: DecisionContext,
    registration: BrokerRegistration,
    *,
    is_new: bool,
    is_clean: bool,
) -> ControllerResult:
    run = None
    if is_new:
        departure = Departure(broker_id=registration.id, is_for_good=not is_clean)
        run = departure.whole_run(context)
        if run is None:
            return removed_first(context, departure)

    def after_append(_end_offset: int) -> None:
        context.liveness.register(registration.id, context.now_ms, is_new_incarnation=is_new)

    return ControllerResult(
        records=(*((run,) if run else ()), broker_record(registration)),
        response=BrokerRegistrationResponse(broker_epoch=registration.epoch),
        after_append=after_append,
    )


def _was_shut_down_cleanly(body: BrokerRegistrationRequest, existing: BrokerRegistration | None) -> bool:
    """True if the request has the previous broker epoch, which a broker sends only after a clean shutdown (KIP-966).
    Below version 3 the field does not exist and reads as -1."""
    return existing is not None and body.previous_broker_epoch == existing.epoch


def _cordoned(context: DecisionContext, kept: BrokerRegistration | None) -> tuple[UUID, ...] | None:
    """The directories that take no new replicas (KIP-1066): heartbeats tell of them."""
    if context.metadata_version < CORDONED_DIRECTORIES or kept is None:
        return None
    return kept.cordoned_log_dirs


def unregister_broker(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    body: UnregisterBrokerRequest = request.body
    broker_id = body.broker_id
    broker = context.image.cluster.brokers.get(broker_id)
    if broker is None:
        reason = f"Broker ID {broker_id} is not currently registered"
        raise ApiError(ErrorCode.broker_id_not_registered, reason)
    departure = Departure(broker_id=broker_id, is_for_good=True)
    run = departure.whole_run(context)
    if run is None:
        return removed_first(context, departure)
    unregister = UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch)
    return ControllerResult(
        records=(*((run,) if run else ()), unregister),
        response=UnregisterBrokerResponse(error_message=None),
        audit_reason=f"unregister broker {broker_id}",
        after_append=lambda _end_offset: context.liveness.remove(broker_id),
    )


def removed_first(context: DecisionContext, departure: Departure) -> ControllerResult:
    """For a broker with more partitions than one decision may hold: it is fenced, and leaves its partitions first."""
    broker = context.image.cluster.brokers.get(departure.broker_id)
    fence = () if broker is None or broker.fenced else (fence_record(context, broker),)
    return ControllerResult(response=None, records=fence, removal_first=BrokerRemoval(context, departure))


def register_controller(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    if context.metadata_version < CONTROLLER_REGISTRATION:
        reason = f"metadata.version {context.metadata_version} has no controller registrations (3.7-IV0 and later do)."
        raise ApiError(ErrorCode.unsupported_version, reason)
    body: ControllerRegistrationRequest = request.body
    registration = ControllerRegistration(
        id=body.controller_id,
        incarnation_id=body.incarnation_id,
        end_points=_checked_endpoints(body.listeners),
        features=features_from(body.features),
    )
    return ControllerResult(
        records=(controller_record(registration),),
        response=ControllerRegistrationResponse(error_message=None),
    )


def _checked_endpoints(listeners: Iterable[WireEndpoint]) -> tuple[Endpoint, ...]:
    """Refuses endpoints that no client could connect to, or that a snapshot could not hold."""
    end_points = endpoints_from(listeners)
    for each in end_points:
        if each.security_protocol not in _SECURITY_PROTOCOLS:
            reason = f"Unknown security protocol {each.security_protocol} in listener {each.name}"
            raise ApiError(ErrorCode.invalid_registration, reason)
        if each.port not in _PORTS or not each.host.strip():
            reason = f"Listener {each.name} has no address to connect to: {each.host}:{each.port}"
            raise ApiError(ErrorCode.invalid_registration, reason)
    return end_points


def _check_cluster_id(context: DecisionContext, cluster_id: str) -> None:
    if cluster_id != context.cluster_id:
        reason = f"Expected cluster ID {context.cluster_id}, but got cluster ID {cluster_id}"
        raise ApiError(ErrorCode.inconsistent_cluster_id, reason)


def _check_broker_id(broker_id: int) -> None:
    """Negative ids mean no broker: a partition that such a broker led would count as one without a leader."""
    if broker_id < 0:
        raise ApiError(ErrorCode.invalid_registration, f"Broker id {broker_id} is negative.")


def _check_not_duplicate(
    context: DecisionContext, existing: BrokerRegistration | None, incarnation_id: UUID
) -> None:
    if existing is None or existing.incarnation_id == incarnation_id:
        return
    if context.liveness.has_valid_session(existing, context.now_ms):
        ends_in_ms = context.liveness.session_ends_in_ms(existing.id, context.now_ms)
        reason = (
            f"Another process is registered as broker {existing.id}, and its session ends in {ends_in_ms} ms unless it "
            "sends a heartbeat."
        )
        raise ApiError(ErrorCode.duplicate_broker_registration, reason, ends_in_ms=ends_in_ms)


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


def _checked_features(context: DecisionContext, sent: Iterable[WireFeature]) -> tuple[SupportedFeature, ...]:
    """Every finalized level must be in the broker's range; a feature that the broker does not list is supported at
    level 0 only. A broker that does not list metadata.version predates it, and knows only the first level."""
    features = features_from(sent)
    ranges = {each.name: _Range(each.min_supported_version, each.max_supported_version) for each in features}
    if METADATA_VERSION not in ranges:
        only = MINIMUM_METADATA_VERSION
        ranges[METADATA_VERSION] = _Range(only, only)
        features = (*features, SupportedFeature(METADATA_VERSION, only, only))
    finalized = dict(context.image.features.finalized)
    finalized |= {METADATA_VERSION: context.metadata_version, KRAFT_VERSION: context.kraft_version()}
    for name in sorted(set(ranges) | set(finalized)):
        _check_range(name, finalized.get(name, 0), ranges.get(name, _Range(0, 0)))
    return features


def _check_range(name: str, level: int, supported: _Range) -> None:
    if not supported.low <= level <= supported.high:
        reason = (
            f"Unable to register because the broker does not support finalized version {level} of {name}. "
            f"The broker wants a version between {supported.low} and {supported.high}, inclusive."
        )
        raise ApiError(ErrorCode.unsupported_version, reason)
