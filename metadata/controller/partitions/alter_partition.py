"""AlterPartition: a partition's leader reports who is in sync (KIP-497, KIP-841, KIP-903)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from metadata.controller.context import DecisionContext
from metadata.controller.partitions.isr_growth import Members, isr_growth
from metadata.controller.partitions.partition_change import Election, PartitionChange
from metadata.controller.partitions.transitions import acceptable_leaders
from metadata.controller.requests import ControllerRequest, Values
from metadata.controller.results import ControllerResult
from metadata.image.partition_state import (
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    PartitionState,
    partition_after_change,
)
from metadata.image.topics import TopicImage
from wire.metadata_records.topics import PartitionChangeRecord
from wire.uuids import ZERO_UUID

NO_BROKER_EPOCH = -1


def alter_partition(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """Where many ISRs grow these are decided together, and whatever else was asked for one by one."""
    body = request.body
    context.check_broker_epoch(body.broker_id, body.broker_epoch)
    records: list[PartitionChangeRecord] = []
    topics: list[Values] = []
    eligibility = _Eligibility(context)
    known = [context.image.topics.by_id.get(asked.topic_id or ZERO_UUID) for asked in body.topics]
    growth = None
    if not _names_one_twice(body.topics):
        asked_of = [(topic, asked.partitions) for topic, asked in zip(known, body.topics, strict=True)]
        growth = isr_growth(context, body.broker_id, asked_of, _members, eligibility.of)
    grown = {} if growth is None else growth.grown
    seen: set[tuple[UUID, int]] = set()
    for number, (topic, asked) in enumerate(zip(known, body.topics, strict=True)):
        partitions = []
        states = _states_of_others(topic, asked.partitions, number, grown)
        for place, wanted in enumerate(asked.partitions):
            after = grown.get((number, place))
            if after is not None:
                partitions.append(_grown(wanted, body.broker_id, *after))
                continue
            identity = (asked.topic_id or ZERO_UUID, wanted.partition_index)
            # A second change would be checked against the state before the first, and undo half of it.
            partitions.append(
                _refused(wanted, ErrorCode.invalid_request)
                if identity in seen
                else _alter(context, eligibility, body.broker_id, topic, states, wanted, records)
            )
            seen.add(identity)
        topics.append({"topic_id": asked.topic_id, "partitions": partitions})
    return ControllerResult(
        records=(*records, *((growth.run,) if growth is not None and growth.run else ())),
        response={"throttle_time": 0, "error_code": ErrorCode.none, "topics": topics},
        is_atomic=False,
    )


def _names_one_twice(topics: Sequence[Any]) -> bool:
    if len({asked.topic_id for asked in topics}) < len(topics):
        return True
    return any(
        len({wanted.partition_index for wanted in asked.partitions}) < len(asked.partitions)
        for asked in topics
    )


def _states_of_others(
    topic: TopicImage | None, partitions: Sequence[Any], number: int, grown: Collection[tuple[int, int]]
) -> Mapping[int, PartitionState]:
    """Of the partitions of the topic with this number in the request, those that were not decided together."""
    if topic is None:
        return {}
    ids = [each.partition_index for place, each in enumerate(partitions) if (number, place) not in grown]
    return topic.partitions.found(ids) if ids else {}


class _Eligibility:
    """Who may be in an ISR, found out once for each broker and epoch: a request names the same few again and again.

    A broker whose session is over counts as fenced: it is about to be, and what it led may take many turns.
    """

    def __init__(self, context: DecisionContext) -> None:
        self._context = context
        self._known: dict[tuple[int, int], bool] = {}

    def of(self, member: tuple[int, int]) -> bool:
        known = self._known.get(member)
        if known is None:
            known = self._known[member] = self._find(*member)
        return known

    def _find(self, broker_id: int, broker_epoch: int) -> bool:
        context = self._context
        broker = context.image.cluster.brokers.get(broker_id)
        if broker is None or not broker.is_active or context.liveness.is_being_removed(broker_id):
            return False
        if not context.liveness.has_valid_session(broker, context.now_ms):
            return False
        return broker_epoch in (NO_BROKER_EPOCH, broker.epoch)


def _alter(
    context: DecisionContext,
    eligibility: _Eligibility,
    broker_id: int,
    topic: TopicImage | None,
    states: Mapping[int, PartitionState],
    wanted: Any,
    records: list[PartitionChangeRecord],
) -> Values:
    """Checks one partition, adds its record to `records`, and answers its entry of the response."""
    if topic is None:
        return _refused(wanted, ErrorCode.unknown_topic_id)
    state = states.get(wanted.partition_index)
    if state is None:
        return _refused(wanted, ErrorCode.unknown_topic_or_partition)
    members = _members(wanted)
    error = _epoch_error(broker_id, state, wanted) or _isr_error(eligibility, state, wanted, members)
    if error is not None:
        return _refused(wanted, error)
    record = _change(context, topic, state, wanted, members)
    if record is None:
        return _accepted(wanted, state)
    records.append(record)
    if record.leader not in (broker_id, NO_LEADER_CHANGE):
        # The change completed a reassignment which took the leader away: it must learn of that first.
        return _refused(wanted, ErrorCode.new_leader_elected)
    return _accepted(wanted, partition_after_change(state, record))


def _members(wanted: Any) -> Members:
    with_epochs = getattr(wanted, "new_isr_with_epochs", None)
    if with_epochs is None:
        return [(member, NO_BROKER_EPOCH) for member in wanted.new_isr]
    return [(member.broker_id, member.broker_epoch) for member in with_epochs]


def _epoch_error(broker_id: int, state: PartitionState, wanted: Any) -> ErrorCode | None:
    """A leader which knows more than we do has heard of a newer controller."""
    if wanted.leader_epoch > state.leader_epoch or wanted.partition_epoch > state.partition_epoch:
        return ErrorCode.not_controller
    if wanted.leader_epoch < state.leader_epoch:
        return ErrorCode.fenced_leader_epoch
    if broker_id != state.leader:
        return ErrorCode.invalid_request
    if wanted.partition_epoch < state.partition_epoch:
        return ErrorCode.invalid_update_version
    return None


def _isr_error(
    eligibility: _Eligibility, state: PartitionState, wanted: Any, members: Members
) -> ErrorCode | None:
    isr = [broker_id for broker_id, _ in members]
    if len(set(isr)) != len(isr) or not set(isr) <= set(state.replicas) or state.leader not in isr:
        return ErrorCode.invalid_request
    recovery = wanted.leader_recovery_state
    if recovery not in (RECOVERED, RECOVERING) or (recovery == RECOVERING and len(isr) > 1):
        return ErrorCode.invalid_request
    if recovery == RECOVERING and state.leader_recovery_state == RECOVERED:
        return ErrorCode.invalid_request
    if not all(map(eligibility.of, members)):
        return ErrorCode.ineligible_replica
    return None


def _change(
    context: DecisionContext, topic: TopicImage, state: PartitionState, wanted: Any, members: Members
) -> PartitionChangeRecord | None:
    if _is_mere_growth(context, state, wanted, members):
        isr = tuple(broker_id for broker_id, _ in members)
        if isr == state.isr:
            return None
        return PartitionChangeRecord(topic_id=topic.id, partition_id=wanted.partition_index, isr=isr)
    is_unclean_allowed = context.allows_unclean_election(topic.name)
    return PartitionChange(
        topic_id=topic.id,
        partition_id=wanted.partition_index,
        partition=state,
        metadata_version=context.metadata_version,
        is_acceptable=acceptable_leaders(context, state),
        default_directory=context.default_directory,
        election=Election.UNCLEAN if is_unclean_allowed else Election.ONLINE,
        target_isr=tuple(broker_id for broker_id, _ in members),
        target_recovery_state=wanted.leader_recovery_state,
        min_in_sync_replicas=context.min_in_sync_replicas(topic.name),
    ).record()


def _is_mere_growth(context: DecisionContext, state: PartitionState, wanted: Any, members: Members) -> bool:
    """Whether nothing can follow from the change but a longer ISR, which is so of nearly all: nobody leaves it, its
    leader may stay, and neither a reassignment nor eligible replicas wait for it.

    A broker that comes back is to be added to as many ISRs as it has replicas, all at once.
    """
    if state.adding_replicas or state.removing_replicas or state.elr or state.last_known_elr:
        return False
    if wanted.leader_recovery_state != state.leader_recovery_state:
        return False
    in_sync = {broker_id for broker_id, _ in members}
    return in_sync.issuperset(state.isr) and acceptable_leaders(context, state)(state.leader)


def _refused(wanted: Any, error: ErrorCode) -> Values:
    return {
        "partition_index": wanted.partition_index,
        "error_code": error,
        "leader_id": 0,
        "leader_epoch": 0,
        "isr": (),
        "leader_recovery_state": 0,
        "partition_epoch": 0,
    }


def _grown(wanted: Any, leader_id: int, isr: tuple[int, ...], partition_epoch: int) -> Values:
    return {
        "partition_index": wanted.partition_index,
        "error_code": ErrorCode.none,
        "leader_id": leader_id,
        "leader_epoch": wanted.leader_epoch,
        "isr": isr,
        "leader_recovery_state": RECOVERED,
        "partition_epoch": partition_epoch,
    }


def _accepted(wanted: Any, state: PartitionState) -> Values:
    return {
        "partition_index": wanted.partition_index,
        "error_code": ErrorCode.none,
        "leader_id": state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": state.isr,
        "leader_recovery_state": state.leader_recovery_state,
        "partition_epoch": state.partition_epoch,
    }
