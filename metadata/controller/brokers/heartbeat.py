"""Broker heartbeats: the states of a broker, and which records each change of state writes (rule C7; KIP-631)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from kquorum.metadata.controller.brokers.state_records import (
    controlled_shutdown_records,
    cordoned_directories_records,
    fence_record,
    online_directories_records,
    unfence_record,
)
from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.partitions.batched_update import (
    BatchedPartitionUpdate,
    BrokerRemoval,
    Departure,
)
from kquorum.metadata.controller.partitions.broker_movement import Movement
from kquorum.metadata.controller.partitions.change_batch import PartitionChangeBatch, whole_run
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.metadata.image.metadata_version import DIRECTORIES
from kquorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kquorum.wire.schema import MetadataRecord


class BrokerState(Enum):
    """SHUTDOWN_NOW is transient: the broker is fenced, and the answer says that it may stop."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"

    @property
    def is_fenced(self) -> bool:
        return self in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)


def heartbeat(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """Handles failed directories first: the broker must not become leader of a replica in one of them."""
    body: BrokerHeartbeatRequest = request.body
    broker = context.check_broker_epoch(body.broker_id, body.broker_epoch)
    caught_up_offset = context.registration_offsets.get(broker.id, broker.epoch)
    is_caught_up = body.current_metadata_offset >= caught_up_offset
    current = _current_state(context, broker)
    following = _next_state(context, broker, body, current, is_caught_up=is_caught_up)
    failed = _failed_directories(context, broker, body)
    if failed and current is BrokerState.FENCED and following is BrokerState.UNFENCED:
        following = current
    step = _step(context, broker, current, following, failed)
    if step.removal is not None:
        context.liveness.refresh(broker.id, context.now_ms)
        return ControllerResult(response=None, removal_first=step.removal)
    context.liveness.touch(
        broker.id, context.now_ms, body.current_metadata_offset, fenced=following.is_fenced
    )
    cordoned = cordoned_directories_records(context, broker, body.cordoned_log_dirs)

    def after_append(end_offset: int) -> None:
        if following is BrokerState.CONTROLLED_SHUTDOWN:
            context.liveness.begin_controlled_shutdown(broker.id, end_offset)

    return ControllerResult(
        records=(*step.before, *((step.run,) if step.run else ()), *step.after, *cordoned),
        response=BrokerHeartbeatResponse(
            is_caught_up=is_caught_up,
            is_fenced=following.is_fenced,
            should_shut_down=following is BrokerState.SHUTDOWN_NOW,
        ),
        is_atomic=False,
        after_append=after_append,
        batched_update=step.batched_update,
    )


def _failed_directories(
    context: DecisionContext, broker: BrokerRegistration, body: BrokerHeartbeatRequest
) -> frozenset[UUID]:
    """The failed directories that the registration still lists. Every heartbeat repeats them."""
    if context.metadata_version < DIRECTORIES:
        return frozenset()
    return frozenset(body.offline_log_dirs) & frozenset(broker.log_dirs)


def _current_state(context: DecisionContext, broker: BrokerRegistration) -> BrokerState:
    if broker.fenced:
        return BrokerState.FENCED
    if context.liveness.shutdown_offset(broker.id) is not None:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.UNFENCED


def _next_state(
    context: DecisionContext,
    broker: BrokerRegistration,
    body: BrokerHeartbeatRequest,
    current: BrokerState,
    *,
    is_caught_up: bool,
) -> BrokerState:
    if current is BrokerState.FENCED:
        if body.want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        if context.liveness.is_being_removed(broker.id):
            return BrokerState.FENCED
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
    """The broker may shut down once it leads nothing and every other broker has replayed the leader changes."""
    if context.image.topics.is_leading_any(broker.id):
        return BrokerState.CONTROLLED_SHUTDOWN
    shutdown_offset = context.liveness.shutdown_offset(broker.id)
    assert shutdown_offset is not None, "only a broker with a shutdown offset is in controlled shutdown"
    lowest = context.liveness.lowest_active_offset(context.image.cluster.brokers.values())
    if lowest is None or shutdown_offset <= lowest:
        return BrokerState.SHUTDOWN_NOW
    return BrokerState.CONTROLLED_SHUTDOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """What a broker's step writes, in this order, as one decision. Where its partitions are too many for one,
    `batched_update` changes them afterwards, or `removal` before anything else."""

    before: Sequence[MetadataRecord] = ()
    run: PartitionChangeBatch | None = None
    after: Sequence[MetadataRecord] = ()
    batched_update: BatchedPartitionUpdate | None = None
    removal: BrokerRemoval | None = None


def _step(
    context: DecisionContext,
    broker: BrokerRegistration,
    current: BrokerState,
    following: BrokerState,
    failed: frozenset[UUID],
) -> _Step:
    if following is current:
        return _offline(context, broker, failed) if failed else _Step()
    if following is BrokerState.SHUTDOWN_NOW and broker.fenced:
        return _Step()
    movement = Movement(broker_id=broker.id, is_leaving=following is not BrokerState.UNFENCED)
    if following.is_fenced:
        movement = Departure(broker_id=broker.id).movement(context)
    run = whole_run(context, movement)
    batched_update = BatchedPartitionUpdate(context, broker, movement) if run is None else None
    if following is BrokerState.UNFENCED:
        return _Step(before=[unfence_record(context, broker)], run=run, batched_update=batched_update)
    if following is BrokerState.CONTROLLED_SHUTDOWN:
        return _Step(
            before=controlled_shutdown_records(context, broker), run=run, batched_update=batched_update
        )
    return _Step(run=run, after=[fence_record(context, broker)], batched_update=batched_update)


def _offline(context: DecisionContext, broker: BrokerRegistration, failed: frozenset[UUID]) -> _Step:
    departure = Departure(broker_id=broker.id, failed_directories=failed)
    run = departure.whole_run(context)
    if run is None:
        return _Step(removal=BrokerRemoval(context, departure))
    return _Step(run=run, after=online_directories_records(broker, failed))
