"""AlterPartitionReassignments and ListPartitionReassignments (rule C12; KIP-455, KIP-860): moves of partitions.

A partition that moves keeps its old replicas until all new ones are in sync. Then `PartitionChange` drops the old ones,
in the change that completes the new ISR.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.partitions.partition_change import Election, change_of
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.controller.topics.new_partitions import check_replicas
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.metadata.image.topics import TopicImage
from kquorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kquorum.wire.metadata_records.topics import PartitionChangeRecord

_PLACES_IN_REASON = 10


@dataclass(frozen=True, slots=True)
class _Place:
    topic: TopicImage
    partition_id: int
    state: PartitionState

    def __str__(self) -> str:
        return f"{self.topic.name}:{self.partition_id}"


def alter_partition_reassignments(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """Partitions fail one by one; what succeeds is one atomic batch."""
    body: AlterPartitionReassignmentsRequest = request.body
    may_change_factor = body.allow_replication_factor_change
    records: dict[tuple[str, int], PartitionChangeRecord] = {}
    altered: list[str] = []
    responses: list[ReassignableTopicResponse] = []
    for topic in body.topics:
        partitions: list[ReassignablePartitionResponse] = []
        for wanted in topic.partitions:
            place = f"{topic.name}:{wanted.partition_index}"
            try:
                if (topic.name, wanted.partition_index) in records:
                    raise ApiError(ErrorCode.invalid_request, f"Partition {place} is named more than once.")
                record = _alter(context, topic.name, wanted, may_change_factor=may_change_factor)
            except ApiError as error:
                partitions.append(_entry(wanted.partition_index, error.code, error.message))
                continue
            partitions.append(_entry(wanted.partition_index, ErrorCode.none, None))
            if record is not None:
                records[topic.name, wanted.partition_index] = record
                altered.append(_words(place, wanted.replicas))
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=tuple(partitions)))
    return ControllerResult(
        records=tuple(records.values()),
        response=AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=may_change_factor,
            error_message=None,
            responses=tuple(responses),
        ),
        audit_reason=_reason(altered) if altered else None,
    )


def _alter(
    context: DecisionContext, topic_name: str, wanted: ReassignablePartition, *, may_change_factor: bool
) -> PartitionChangeRecord | None:
    topic = context.image.topics.by_name.get(topic_name)
    if topic is None:
        reason = f"Unable to find a topic named {topic_name}."
        raise ApiError(ErrorCode.unknown_topic_or_partition, reason)
    state = topic.partitions.get(wanted.partition_index)
    if state is None:
        reason = f"Unable to find partition {topic_name}:{wanted.partition_index}."
        raise ApiError(ErrorCode.unknown_topic_or_partition, reason)
    place = _Place(topic, wanted.partition_index, state)
    if wanted.replicas is None:
        return _cancel(context, place)
    target = check_replicas(context, wanted.replicas)
    if not may_change_factor:
        _check_factor(place, target)
    return _reassign(context, place, target)


def _reassign(
    context: DecisionContext, place: _Place, target: tuple[int, ...]
) -> PartitionChangeRecord | None:
    """A reassignment that runs already is altered as it stands: replicas that it was adding may be dropped again.

    Where nothing is added now, the replicas that were being added stay listed, so that a cancel drops them.
    """
    state = place.state
    removing = tuple(sorted(set(state.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(state.replicas)))
    change = change_of(
        context,
        place.topic,
        place.partition_id,
        state,
        target_replicas=(*target, *removing),
        target_removing=removing,
        target_adding=adding or state.adding_replicas,
    )
    return change.record()


def _check_factor(place: _Place, target: tuple[int, ...]) -> None:
    """Raises INVALID_REPLICATION_FACTOR. For a partition under reassignment the target factor counts."""
    current = len(set(place.state.replicas) - set(place.state.removing_replicas))
    if len(target) != current:
        reason = f"The replication factor is changed from {current} to {len(target)}"
        raise ApiError(ErrorCode.invalid_replication_factor, reason)


def _cancel(context: DecisionContext, place: _Place) -> PartitionChangeRecord | None:
    """Back to the original replicas. If none of them is in sync, data is lost; the topic must permit that."""
    state = place.state
    if not (state.adding_replicas or state.removing_replicas):
        raise ApiError(ErrorCode.no_reassignment_in_progress, "No partition reassignment is in progress.")
    replicas = tuple(replica for replica in state.replicas if replica not in state.adding_replicas)
    isr = tuple(member for member in state.isr if member not in state.adding_replicas)
    if not replicas:
        raise ApiError(ErrorCode.invalid_replica_assignment, f"Nothing was there before {place} moved.")
    may_be_unclean = context.allows_unclean_election(place.topic.name)
    if not isr and not may_be_unclean:
        reason = (
            f"Unable to revert partition assignment for {place} because it would require an unclean leader "
            "election."
        )
        raise ApiError(ErrorCode.invalid_replica_assignment, reason)
    change = change_of(
        context,
        place.topic,
        place.partition_id,
        state,
        Election.UNCLEAN if may_be_unclean else Election.ONLINE,
        target_isr=isr or replicas[:1],
        target_replicas=replicas,
        target_removing=(),
        target_adding=(),
    )
    return change.record()


def _entry(partition_id: int, code: ErrorCode, message: str | None) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(partition_index=partition_id, error_code=code, error_message=message)


def _words(place: str, replicas: tuple[int, ...] | None) -> str:
    return f"cancel {place}" if replicas is None else f"{place} to {list(replicas)}"


def _reason(altered: list[str]) -> str:
    more = f" and {len(altered) - _PLACES_IN_REASON} more" if len(altered) > _PLACES_IN_REASON else ""
    return f"reassign partitions: {', '.join(altered[:_PLACES_IN_REASON])}{more}"


def list_partition_reassignments(
    image: MetadataImage, request: ControllerRequest
) -> ListPartitionReassignmentsResponse:
    """`image` is the committed one. Unknown topics and partitions, and those without a reassignment, are left out."""
    body: ListPartitionReassignmentsRequest = request.body
    if body.topics is None:
        # Most topics have none, and all of them are looked at in one turn.
        topics = [topic for topic in image.topics.by_id.values() if topic.partitions.rare_lists]
        moving = (_topic(topic, sorted(topic.partitions.rare_lists)) for topic in topics)
    else:
        moving = (
            _topic(image.topics.by_name[asked.name], asked.partition_indexes)
            for asked in body.topics
            if asked.name in image.topics.by_name
        )
    return ListPartitionReassignmentsResponse(
        error_message=None, topics=tuple([topic for topic in moving if topic.partitions])
    )


def _topic(topic: TopicImage, partition_ids: Iterable[int]) -> OngoingTopicReassignment:
    partitions = (
        _partition(partition_id, topic.partitions.get(partition_id)) for partition_id in partition_ids
    )
    return OngoingTopicReassignment(
        name=topic.name, partitions=tuple([each for each in partitions if each is not None])
    )


def _partition(partition_id: int, state: PartitionState | None) -> OngoingPartitionReassignment | None:
    if state is None or not (state.adding_replicas or state.removing_replicas):
        return None
    return OngoingPartitionReassignment(
        partition_index=partition_id,
        replicas=state.replicas,
        adding_replicas=state.adding_replicas,
        removing_replicas=state.removing_replicas,
    )
