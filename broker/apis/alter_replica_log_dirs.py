"""AlterReplicaLogDirs (api key 34): move replicas of this broker to other log directories (KIP-113).

The answer says that the moves have begun; DescribeLogDirs shows how far they are. A directory for a replica that the
broker does not have yet is remembered: kafka-reassign-partitions names it before the replica comes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from kquorum.broker.apis.api import Advance, Authorized, Sliced
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.data_plane import DirectoryUsage
from kquorum.broker.log.errors import LogError
from kquorum.broker.log.folder_names import FolderKind, marked_folder_name
from kquorum.broker.replica.log_moves import LogMoves
from kquorum.broker.replica.partition import TopicPartition
from kquorum.metadata.authorizer.codes import Operation
from kquorum.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import EncodedBody, encode_body
from kquorum.wire.uuids import ZERO_UUID

log = logging.getLogger("broker.replica")
_IN_A_SLICE: Final = 500


def _begin(context: RequestContext, request: AlterReplicaLogDirsRequest, services: BrokerServices) -> Advance:
    """A partition that moves ends its slice: the log that it begins takes the disk a moment."""
    is_allowed = services.access(context).allows_on_cluster(Operation.ALTER)
    moves, usages = services.data.moves, services.data.partitions.directories()
    by_path = {usage.path: directory_id for directory_id, usage in usages.items()}
    asked = iter(
        [
            (TopicPartition(topic.name, index), by_path.get(directory.path.rstrip("/") or "/"))
            for directory in request.dirs
            for topic in directory.topics
            for index in topic.partitions
        ]
    )
    outcomes: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}

    def advance() -> EncodedBody | None:
        for number, (topic_partition, directory_id) in enumerate(asked, start=1):
            code = ErrorCode.cluster_authorization_failed
            if is_allowed and moves is not None:
                code = _move(services, moves, topic_partition, directory_id, usages)
            outcomes.setdefault(topic_partition.topic, []).append(
                AlterReplicaLogDirPartitionResult(partition_index=topic_partition.partition, error_code=code)
            )
            if code is ErrorCode.none or number == _IN_A_SLICE:
                return None
        services.data.settle_soon()
        return EncodedBody(encode_body(_response(outcomes), context.header.api_version))

    return advance


def _response(
    outcomes: Mapping[str, list[AlterReplicaLogDirPartitionResult]],
) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        results=tuple(
            [
                AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(partitions))
                for name, partitions in outcomes.items()
            ]
        )
    )


# ALTER on the cluster.
API: Final = Sliced(ApiKey.ALTER_REPLICA_LOG_DIRS, Authorized.IN_HANDLER, begin=_begin)


def _move(
    services: BrokerServices,
    moves: LogMoves,
    topic_partition: TopicPartition,
    directory_id: UUID | None,
    usages: Mapping[UUID, DirectoryUsage],
) -> ErrorCode:
    try:
        marked_folder_name(*topic_partition, FolderKind.FUTURE, ZERO_UUID)
    except ValueError:
        return ErrorCode.invalid_topic_exception
    if directory_id is None:
        return ErrorCode.log_dir_not_found
    if usages[directory_id].is_offline:
        return ErrorCode.kafka_storage_error
    image, partitions = services.cache.image, services.data.partitions
    broker = image.cluster.brokers.get(services.node_id)
    if broker is not None and directory_id in (broker.cordoned_log_dirs or ()):
        return ErrorCode.invalid_replica_assignment
    partition = partitions.online(topic_partition)
    if partition is None:
        if partitions.is_offline(topic_partition):
            return ErrorCode.kafka_storage_error
        moves.prefer(topic_partition, directory_id)
        topic = image.topics.by_name.get(topic_partition.topic)
        is_known = topic is not None and topic.partitions.get(topic_partition.partition) is not None
        return ErrorCode.replica_not_available if is_known else ErrorCode.unknown_topic_or_partition
    try:
        moves.move(partition, directory_id)
    except LogError as error:
        log.error("%s-%d cannot be moved: %s", *topic_partition, error)
        return type(error).error_code
    return ErrorCode.none
