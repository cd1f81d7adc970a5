"""Broker heartbeats: the table of a broker's states and what each step writes (KIP-631)."""

from enum import Enum
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from metadata.controller.broker_removal import BrokerRemoval, Departure, records_or_removal
from metadata.controller.context import DecisionContext
from metadata.controller.requests import ControllerRequest
from metadata.controller.results import ControllerResult
from metadata.controller.sweep import PartitionSweep
from metadata.controller.transitions import (
    controlled_shutdown_records,
    cordoned_directories_records,
    fence_record,
    online_directories_records,
    unfence_record,
)
from metadata.image.cluster import BrokerRegistration
from metadata.image.metadata_version import DIRECTORIES
from wire.schema import MetadataRecord
from wire.uuids import ZERO_UUID


class BrokerState(Enum):
    """SHUTDOWN_NOW is no state to stay in: the broker is fenced and told that it may go."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"

    @property
    def is_fenced(self) -> bool:
        return self in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)


def heartbeat(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """A broker's directories that failed are dealt with first: it must not come to lead what lies in one of them."""
    body = request.body
    broker = context.check_broker_epoch(body.broker_id, body.broker_epoch)
    caught_up_offset = context.registration_offsets.get(broker.id, broker.epoch)
    is_caught_up = body.current_metadata_offset >= caught_up_offset
    current = _current_state(context, broker)
    following = _next_state(context, broker, request, current, is_caught_up=is_caught_up)
    failed = _failed_directories(context, broker, body)
    if failed and current is BrokerState.FENCED and following is BrokerState.UNFENCED:
        following = current
    records, rest = _records(context, broker, current, following, failed)
    if isinstance(rest, BrokerRemoval):
        context.liveness.refresh(broker.id, context.now_ms)
        return ControllerResult(response={}, removal_first=rest)
    context.liveness.touch(
        broker.id, context.now_ms, body.current_metadata_offset, fenced=following.is_fenced
    )
    records += cordoned_directories_records(context, broker, getattr(body, "cordoned_log_dirs", None))

    def after_append(end_offset: int) -> None:
        if following is BrokerState.CONTROLLED_SHUTDOWN:
            context.liveness.begin_controlled_shutdown(broker.id, end_offset)

    return ControllerResult(
        records=tuple(records),
        response={
            "throttle_time": 0,
            "error_code": ErrorCode.none,
            "is_caught_up": is_caught_up,
            "is_fenced": following.is_fenced,
            "should_shut_down": following is BrokerState.SHUTDOWN_NOW,
        },
        is_atomic=False,
        after_append=after_append,
        sweep=rest,
    )


def _failed_directories(context: DecisionContext, broker: BrokerRegistration, body: Any) -> frozenset[UUID]:
    """Those that the registration still counts on. A broker tells of them in every heartbeat."""
    if context.metadata_version < DIRECTORIES:
        return frozenset()
    told = {each or ZERO_UUID for each in getattr(body, "offline_log_dirs", ())}
    return frozenset(told & set(broker.log_dirs))


def _current_state(context: DecisionContext, broker: BrokerRegistration) -> BrokerState:
    if broker.fenced:
        return BrokerState.FENCED
    if context.liveness.shutdown_offset(broker.id) is not None:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.UNFENCED


def _next_state(
    context: DecisionContext,
    broker: BrokerRegistration,
    request: ControllerRequest,
    current: BrokerState,
    *,
    is_caught_up: bool,
) -> BrokerState:
    body = request.body
    if current is BrokerState.FENCED:
        if body.want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        return BrokerState.UNFENCED if not body.want_fence and is_caught_up else BrokerState.FENCED
    if current is BrokerState.CONTROLLED_SHUTDOWN:
        return _next_while_leaving(context, broker)
    if body.want_fence:
        return BrokerState.SHUTDOWN_NOW if body.want_shut_down else BrokerState.FENCED
    if body.want_shut_down:
        is_leading = context.image.topics.is_leading_any(broker.id)
        return BrokerState.CONTROLLED_SHUTDOWN if is_leading else BrokerState.SHUTDOWN_NOW
    return BrokerState.UNFENCED


def _next_while_leaving(context: DecisionContext, broker: BrokerRegistration) -> BrokerState:
    """It may go once it leads nothing and every other broker has read who leads instead."""
    if context.image.topics.is_leading_any(broker.id):
        return BrokerState.CONTROLLED_SHUTDOWN
    shutdown_offset = context.liveness.shutdown_offset(broker.id)
    assert shutdown_offset is not None, "only a broker with a shutdown offset is in controlled shutdown"
    lowest = context.liveness.lowest_active_offset(context.image.cluster.brokers.values())
    if lowest is None or shutdown_offset <= lowest:
        return BrokerState.SHUTDOWN_NOW
    return BrokerState.CONTROLLED_SHUTDOWN


def _records(
    context: DecisionContext,
    broker: BrokerRegistration,
    current: BrokerState,
    following: BrokerState,
    failed: frozenset[UUID],
) -> tuple[list[MetadataRecord], PartitionSweep | BrokerRemoval | None]:
    """What changes, or its first slice with the sweep that does the rest, or what has to be done before."""
    if following is current:
        return _offline_records(context, broker, failed) if failed else ([], None)
    if following is BrokerState.UNFENCED:
        return _begin(context, broker, [unfence_record(context, broker)], is_leaving=False)
    if following is BrokerState.CONTROLLED_SHUTDOWN:
        return _begin(context, broker, controlled_shutdown_records(context, broker), is_leaving=True)
    if broker.fenced:
        return [], None
    partitions, removal = records_or_removal(context, Departure(broker_id=broker.id))
    return [*partitions, fence_record(context, broker)], removal


def _offline_records(
    context: DecisionContext, broker: BrokerRegistration, failed: frozenset[UUID]
) -> tuple[list[MetadataRecord], BrokerRemoval | None]:
    departure = Departure(broker_id=broker.id, failed_directories=failed)
    partitions, removal = records_or_removal(context, departure)
    return [*partitions, *online_directories_records(broker, failed)], removal


def _begin(
    context: DecisionContext, broker: BrokerRegistration, records: list[MetadataRecord], *, is_leaving: bool
) -> tuple[list[MetadataRecord], PartitionSweep | None]:
    sweep = PartitionSweep(context, broker, is_leaving=is_leaving)
    records = [*records, *sweep.next_records(context)]
    return records, None if sweep.is_done else sweep
