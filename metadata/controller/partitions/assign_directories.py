"""AssignReplicasToDirs (rule C14; KIP-858): a broker reports the directory of each of its replicas."""

from uuid import UUID

from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.partitions.partition_change import Election, acceptable_leaders, change_of
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.image.directories import MIGRATING, is_online
from kquorum.metadata.image.metadata_version import DIRECTORIES
from kquorum.metadata.image.partition_state import PartitionState, partition_after_change
from kquorum.metadata.image.topics import TopicImage
from kquorum.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    RequestTopicData,
    ResponseDirectoryData,
    ResponsePartitionData,
    ResponseTopicData,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.uuids import ZERO_UUID


class _Assignments:
    """The directory of each partition; the last mention in a request counts."""

    def __init__(self, context: DecisionContext, broker_id: int) -> None:
        self._context = context
        self._broker_id = broker_id
        self._wanted: dict[tuple[UUID, int], tuple[TopicImage, UUID]] = {}

    def add(self, topic: TopicImage, partition_id: int, directory_id: UUID) -> ErrorCode:
        state = topic.partitions.get(partition_id)
        if state is None:
            return ErrorCode.unknown_topic_or_partition
        if self._broker_id not in state.replicas:
            return ErrorCode.not_leader_or_follower
        self._wanted[topic.id, partition_id] = (topic, directory_id)
        return ErrorCode.none

    def records(self) -> list[PartitionChangeRecord]:
        """All directories first. Then the broker leaves ISR and leadership of replicas in directories that it does not
        have."""
        moves: list[PartitionChangeRecord | None] = []
        departures: list[PartitionChangeRecord | None] = []
        for (_, partition_id), (topic, directory_id) in self._wanted.items():
            state = topic.partitions.get(partition_id)
            assert state is not None, "only what is there was added"
            move = self._move(topic, partition_id, state, directory_id)
            moves.append(move)
            if not self._is_online(directory_id):
                moved = state if move is None else partition_after_change(state, move)
                departures.append(self._departure(topic, partition_id, moved))
        return [record for record in (*moves, *departures) if record is not None]

    def _move(
        self, topic: TopicImage, partition_id: int, state: PartitionState, directory_id: UUID
    ) -> PartitionChangeRecord | None:
        directories = {self._broker_id: directory_id}
        return change_of(self._context, topic, partition_id, state, target_directories=directories).record()

    def _departure(
        self, topic: TopicImage, partition_id: int, state: PartitionState
    ) -> PartitionChangeRecord | None:
        is_unclean_allowed = self._context.allows_unclean_election(topic.name)
        change = change_of(
            self._context,
            topic,
            partition_id,
            state,
            Election.UNCLEAN if is_unclean_allowed else Election.ONLINE,
            target_isr=tuple(member for member in state.isr if member != self._broker_id),
        )
        change.is_acceptable = acceptable_leaders(self._context, state, broker_to_remove=self._broker_id)
        return change.record()

    def _is_online(self, directory_id: UUID) -> bool:
        return is_online(directory_id, self._context.image.cluster.brokers[self._broker_id].log_dirs)


def assign_replicas_to_directories(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """Raises UNSUPPORTED_VERSION where partitions have no directories yet, STALE_BROKER_EPOCH."""
    if context.metadata_version < DIRECTORIES:
        raise ApiError(ErrorCode.unsupported_version, "Directory assignment is not supported yet.")
    body: AssignReplicasToDirsRequest = request.body
    context.check_broker_epoch(body.broker_id, body.broker_epoch)
    assignments = _Assignments(context, body.broker_id)
    directories = [
        ResponseDirectoryData(
            id_=directory.id_,
            topics=tuple([_topic(context, assignments, directory.id_, asked) for asked in directory.topics]),
        )
        for directory in body.directories
    ]
    return ControllerResult(
        records=tuple(assignments.records()),
        response=AssignReplicasToDirsResponse(directories=tuple(directories)),
        is_atomic=False,
    )


def _topic(
    context: DecisionContext, assignments: _Assignments, directory_id: UUID, asked: RequestTopicData
) -> ResponseTopicData:
    topic = context.image.topics.by_id.get(asked.topic_id)

    def code(partition_id: int) -> ErrorCode:
        if topic is None:
            return ErrorCode.unknown_topic_id
        return assignments.add(topic, partition_id, MIGRATING if directory_id == ZERO_UUID else directory_id)

    partitions = [
        ResponsePartitionData(partition_index=each.partition_index, error_code=code(each.partition_index))
        for each in asked.partitions
    ]
    return ResponseTopicData(topic_id=asked.topic_id, partitions=tuple(partitions))
