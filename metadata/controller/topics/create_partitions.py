"""CreatePartitions: topics that get more partitions; each succeeds or fails alone, what succeeds is one batch."""

from collections import Counter
from collections.abc import Iterator

from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.controller.timeline import Entry
from kquorum.metadata.controller.topics.new_partitions import (
    Placed,
    assigned_replicas,
    new_partitions,
    placer_of,
)
from kquorum.metadata.controller.topics.placement import StripedPlacer
from kquorum.metadata.image.partitions import PADDING
from kquorum.metadata.image.topics import TopicImage
from kquorum.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from kquorum.wire.messages.error_codes import ErrorCode

_NAMES_IN_REASON = 10


def create_partitions(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """Raises POLICY_VIOLATION when the whole request makes more records than one batch may hold."""
    body: CreatePartitionsRequest = request.body
    mentions = Counter([topic.name for topic in body.topics])
    placer = placer_of(context)
    results: list[CreatePartitionsTopicResult] = []
    added: list[tuple[TopicImage, Placed]] = []
    count = 0
    grown: list[str] = []
    for asked in {topic.name: topic for topic in body.topics}.values():
        try:
            _check_mention(mentions[asked.name])
            room = context.config.max_records_per_batch - count
            topic, placed = _more_partitions(context, request, placer, asked, room)
        except ApiError as error:
            if error.code is ErrorCode.policy_violation:
                raise
            refused = CreatePartitionsTopicResult(
                name=asked.name, error_code=error.code, error_message=error.message
            )
            results.append(refused)
            continue
        added.append((topic, placed))
        count += len(placed)
        grown.append(f"{asked.name} to {asked.count}")
        results.append(CreatePartitionsTopicResult(name=asked.name))
    return ControllerResult(
        records=() if body.validate_only else tuple(_records(context, added)),
        response=CreatePartitionsResponse(results=tuple(results)),
        audit_reason=_reason(grown) if grown else None,
    )


def _records(context: DecisionContext, added: list[tuple[TopicImage, Placed]]) -> Iterator[Entry]:
    for topic, placed in added:
        yield from new_partitions(context, topic, placed, len(topic.partitions))


def _check_mention(mentions: int) -> None:
    if mentions > 1:
        raise ApiError(ErrorCode.invalid_request, "Duplicate topic name.")


def _more_partitions(
    context: DecisionContext,
    request: ControllerRequest,
    placer: StripedPlacer,
    asked: CreatePartitionsTopic,
    room: int,
) -> tuple[TopicImage, Placed]:
    topic = context.image.topics.by_name.get(asked.name)
    if topic is None:
        raise ApiError(ErrorCode.unknown_topic_or_partition, f"There is no topic '{asked.name}'.")
    additional = _additional(topic, asked)
    context.charge_mutations(request, additional)
    if additional > room:
        reason = f"Topic '{asked.name}' makes the request too large: it would need more records than one batch holds."
        raise ApiError(ErrorCode.policy_violation, reason)
    return topic, _placed(context, placer, topic, asked)


def _additional(topic: TopicImage, asked: CreatePartitionsTopic) -> int:
    """The number of partitions to add; raises INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT."""
    existing = len(topic.partitions)
    if asked.count == existing:
        raise ApiError(ErrorCode.invalid_partitions, f"Topic already has {existing} partition(s).")
    if asked.count < existing:
        reason = (
            f"The topic {asked.name} currently has {existing} partition(s); {asked.count} would not be an "
            "increase."
        )
        raise ApiError(ErrorCode.invalid_partitions, reason)
    additional = asked.count - existing
    if asked.assignments is not None and len(asked.assignments) != additional:
        reason = (
            f"Attempted to add {additional} additional partition(s), but only {len(asked.assignments)} assignment(s) "
            "were specified."
        )
        raise ApiError(ErrorCode.invalid_replica_assignment, reason)
    return additional


def _placed(
    context: DecisionContext, placer: StripedPlacer, topic: TopicImage, asked: CreatePartitionsTopic
) -> Placed:
    """As many replicas as the topic's first partition has; raises INVALID_REPLICA_ASSIGNMENT or, where we are to place
    them, INVALID_REPLICATION_FACTOR."""
    partitions = topic.partitions
    factor = int((partitions.replicas[0] != PADDING).sum())
    if asked.assignments is None:
        held, led = partitions.replica_counts(), partitions.preferred_counts()
        return placer.place(asked.count - len(partitions), factor, held, led)
    return [
        assigned_replicas(context, partition_id, assignment.broker_ids, factor)
        for partition_id, assignment in enumerate(asked.assignments, len(partitions))
    ]


def _reason(grown: list[str]) -> str:
    more = f" and {len(grown) - _NAMES_IN_REASON} more" if len(grown) > _NAMES_IN_REASON else ""
    return f"create partitions: {', '.join(grown[:_NAMES_IN_REASON])}{more}"
