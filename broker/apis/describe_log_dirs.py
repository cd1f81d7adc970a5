"""DescribeLogDirs (api key 35): the log directories of this broker, with the sizes of the logs in them.

kafka-reassign-partitions asks for the log directories before it sends a plan.
"""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from kquorum.broker.apis.api import Authorized, Local
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.data_plane import DirectoryUsage
from kquorum.broker.log.partition_log import PartitionLog
from kquorum.metadata.authorizer.codes import Operation
from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey


def _handle(
    context: RequestContext, request: DescribeLogDirsRequest, services: BrokerServices
) -> DescribeLogDirsResponse:
    if not services.access(context).allows_on_cluster(Operation.DESCRIBE):
        return DescribeLogDirsResponse(error_code=ErrorCode.cluster_authorization_failed)
    broker = services.cache.image.cluster.brokers.get(services.node_id)
    usages = services.data.partitions.directories() or {
        directory_id: DirectoryUsage(path) for directory_id, path in services.log_dirs.items()
    }
    return described_log_dirs(request, usages, broker)


# DESCRIBE on the cluster.
API: Final = Local(ApiKey.DESCRIBE_LOG_DIRS, Authorized.IN_HANDLER, handle=_handle)


def described_log_dirs(
    request: DescribeLogDirsRequest,
    usages: Mapping[UUID, DirectoryUsage],
    broker: BrokerRegistration | None,
) -> DescribeLogDirsResponse:
    """Every directory, whatever partitions were asked for, as in Kafka; None asks for all partitions.

    `broker` is this one as the image knows it, or None.
    """
    cordoned = (broker.cordoned_log_dirs if broker is not None else None) or ()
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    return DescribeLogDirsResponse(
        results=tuple(
            [
                DescribeLogDirsResult(
                    error_code=ErrorCode.kafka_storage_error if usage.is_offline else ErrorCode.none,
                    log_dir=usage.path,
                    topics=_topics(usage, wanted),
                    total_bytes=usage.total_bytes,
                    usable_bytes=usage.usable_bytes,
                    is_cordoned=directory_id in cordoned,
                )
                for directory_id, usage in usages.items()
            ]
        )
    )


def _topics(usage: DirectoryUsage, wanted: set[tuple[str, int]] | None) -> tuple[DescribeLogDirsTopic, ...]:
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    for log in usage.logs:
        if wanted is None or (log.topic, log.partition) in wanted:
            by_topic.setdefault(log.topic, []).append(_described(log))
    for future in usage.futures:
        if wanted is None or (future.log.topic, future.log.partition) in wanted:
            by_topic.setdefault(future.log.topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=future.log.partition,
                    partition_size=future.log.size_bytes,
                    offset_lag=future.lag,
                    is_future_key=True,
                )
            )
    return tuple(
        [
            DescribeLogDirsTopic(name=name, partitions=tuple(partitions))
            for name, partitions in by_topic.items()
        ]
    )


def _described(log: PartitionLog) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(
        partition_index=log.partition,
        partition_size=log.size_bytes,
        offset_lag=max(log.high_watermark - log.log_end_offset, 0),
    )
