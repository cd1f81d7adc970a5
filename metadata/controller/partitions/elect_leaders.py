"""ElectLeaders (KIP-460): back to the preferred replicas, or any leader at all rather than none."""

from collections.abc import Iterator
from enum import IntEnum

from kio.schema.errors import ErrorCode

from metadata.controller.context import DecisionContext
from metadata.controller.partitions.election_candidates import leaderless, without_preferred_leader
from metadata.controller.partitions.partition_change import Election
from metadata.controller.partitions.partition_change_builder import change_of
from metadata.controller.requests import ApiError, ControllerRequest, Values
from metadata.controller.results import ControllerResult
from metadata.image.partition_state import NO_LEADER, PartitionState
from metadata.image.topics import TopicImage
from wire.metadata_records.topics import PartitionChangeRecord


class ElectionType(IntEnum):
    """As the request numbers them."""

    PREFERRED = 0
    UNCLEAN = 1


class _Elections:
    """The elections of one request: their records, and the results by topic."""

    def __init__(self, context: DecisionContext, kind: ElectionType) -> None:
        self._context = context
        self._kind = kind
        self.records: dict[tuple[str, int], PartitionChangeRecord] = {}
        self.results: dict[str, list[Values]] = {}

    def hold(self, topic_name: str, partition_id: int) -> None:
        results = self.results.setdefault(topic_name, [])
        try:
            self._elect(topic_name, partition_id)
        except ApiError as error:
            results.append(_entry(partition_id, error.code, error.message))
        else:
            results.append(_entry(partition_id, ErrorCode.none, None))
        if len(self.records) > self._context.config.max_records_per_batch:
            raise _too_many(self._context)

    def _elect(self, topic_name: str, partition_id: int) -> None:
        if (topic_name, partition_id) in self.records:
            return
        topic, state = _find(self._context, topic_name, partition_id)
        self.records[topic_name, partition_id] = self._record(topic, partition_id, state)

    def _record(self, topic: TopicImage, partition_id: int, state: PartitionState) -> PartitionChangeRecord:
        is_preferred = self._kind is ElectionType.PREFERRED
        is_content = state.leader == state.preferred_replica if is_preferred else state.leader != NO_LEADER
        if is_content:
            raise ApiError(ErrorCode.election_not_needed, "Leader election not needed for topic partition.")
        election = Election.PREFERRED if is_preferred else Election.UNCLEAN
        record = change_of(self._context, topic, partition_id, state, election).record()
        if record is None and is_preferred:
            reason = "The preferred leader was not available."
            raise ApiError(ErrorCode.preferred_leader_not_available, reason)
        if record is None:
            reason = "Eligible topic partition leaders are not available."
            raise ApiError(ErrorCode.eligible_leaders_not_available, reason)
        return record


def elect_leaders(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """Raises INVALID_REQUEST for a kind of election that there is not, POLICY_VIOLATION for too many records.

    Without a list of partitions, all that need the election are meant, and only these are answered.
    """
    kind = _kind(getattr(request.body, "election_type", ElectionType.PREFERRED))
    elections = _Elections(context, kind)
    for topic_name, partition_id in _wanted(context, request, kind):
        elections.hold(topic_name, partition_id)
    return ControllerResult(
        records=tuple(elections.records.values()),
        response={
            "throttle_time": 0,
            "error_code": ErrorCode.none,
            "replica_election_results": [
                {"topic": name, "partition_result": results} for name, results in elections.results.items()
            ],
        },
        is_atomic=False,
        audit_reason=f"elect {kind.name.lower()} leaders of {len(elections.records)} partition(s)"
        if elections.records
        else None,
    )


def _kind(number: int) -> ElectionType:
    try:
        return ElectionType(number)
    except ValueError:
        raise ApiError(ErrorCode.invalid_request, f"Unknown election type {number}") from None


def _wanted(
    context: DecisionContext, request: ControllerRequest, kind: ElectionType
) -> Iterator[tuple[str, int]]:
    if request.body.topic_partitions is not None:
        for asked in request.body.topic_partitions:
            for partition_id in asked.partitions:
                yield asked.topic, partition_id
        return
    find = without_preferred_leader if kind is ElectionType.PREFERRED else leaderless
    for topic, partition_ids in find(context.image.topics.by_id.values()):
        for partition_id in partition_ids.tolist():
            yield topic.name, partition_id


def _find(context: DecisionContext, topic_name: str, partition_id: int) -> tuple[TopicImage, PartitionState]:
    topic = context.image.topics.by_name.get(topic_name)
    if topic is None:
        raise ApiError(ErrorCode.unknown_topic_or_partition, f"No such topic as {topic_name}")
    state = topic.partitions.get(partition_id)
    if state is None:
        reason = f"No such partition as {topic_name}-{partition_id}"
        raise ApiError(ErrorCode.unknown_topic_or_partition, reason)
    return topic, state


def _too_many(context: DecisionContext) -> ApiError:
    limit = context.config.max_records_per_batch
    reason = f"The request elects leaders of more than {limit} partitions. Ask for less at a time."
    return ApiError(ErrorCode.policy_violation, reason)


def _entry(partition_id: int, code: ErrorCode, message: str | None) -> Values:
    return {"partition_id": partition_id, "error_code": code, "error_message": message}
