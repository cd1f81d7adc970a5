"""Broker heartbeats: the table of a broker's states and what each step writes (KIP-631)."""

from enum import Enum

from kio.schema.errors import ErrorCode

from metadata.controller.context import DecisionContext
from metadata.controller.requests import ControllerRequest, ControllerResult
from metadata.controller.sweep import PartitionSweep
from metadata.controller.transitions import (
    controlled_shutdown_records,
    fence_records,
    offline_directory_records,
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
    body = request.body
    broker = context.check_broker_epoch(body.broker_id, body.broker_epoch)
    caught_up_offset = context.registration_offsets.get(broker.id, broker.epoch)
    is_caught_up = body.current_metadata_offset >= caught_up_offset
    current = _current_state(context, broker)
    following = _next_state(context, broker, request, current, is_caught_up=is_caught_up)
    records, sweep = _records(context, broker, current, following)
    context.liveness.touch(
        broker.id, context.now_ms, body.current_metadata_offset, fenced=following.is_fenced
    )
    if context.metadata_version >= DIRECTORIES and following is current:
        offline = [each or ZERO_UUID for each in getattr(body, "offline_log_dirs", ())]
        records += offline_directory_records(context, broker, offline)

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
        sweep=sweep,
    )


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
    context: DecisionContext, broker: BrokerRegistration, current: BrokerState, following: BrokerState
) -> tuple[list[MetadataRecord], PartitionSweep | None]:
    """The first slice of what changes, and the rest if there is more."""
    if following is current:
        return [], None
    if following is BrokerState.UNFENCED:
        return _begin(context, broker, [unfence_record(context, broker)], is_leaving=False)
    if following is BrokerState.CONTROLLED_SHUTDOWN:
        return _begin(context, broker, controlled_shutdown_records(context, broker), is_leaving=True)
    return ([] if broker.fenced else fence_records(context, broker)), None


def _begin(
    context: DecisionContext, broker: BrokerRegistration, records: list[MetadataRecord], *, is_leaving: bool
) -> tuple[list[MetadataRecord], PartitionSweep | None]:
    sweep = PartitionSweep(context, broker, is_leaving=is_leaving)
    records = [*records, *sweep.next_records(context)]
    return records, None if sweep.is_done else sweep
