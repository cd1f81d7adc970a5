"""The answers to clients that want to move replicas between directories, which these brokers do not do yet.

Not to offer such an API would be simpler, but clients in the field take that badly: librdkafka's consumer spins
or stays silent for ever, and kafka-python takes a broker for one of release 1.0. So it is offered in every version,
and refused with an error that all of these clients take as final. There is no code for "not here"; no client retries
for want of authorization.
"""

from kquorum.wire.messages import alter_replica_log_dirs
from kquorum.wire.messages.error_codes import ErrorCode


def refuse_alter_replica_log_dirs(
    request: alter_replica_log_dirs.AlterReplicaLogDirsRequest, _version: int
) -> alter_replica_log_dirs.AlterReplicaLogDirsResponse:
    """A response is by topic, a request by directory first."""
    partitions: dict[str, list[int]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            partitions.setdefault(topic.name, []).extend(topic.partitions)
    return alter_replica_log_dirs.AlterReplicaLogDirsResponse(
        results=tuple(
            [
                alter_replica_log_dirs.AlterReplicaLogDirTopicResult(
                    topic_name=name,
                    partitions=tuple(
                        [
                            alter_replica_log_dirs.AlterReplicaLogDirPartitionResult(
                                partition_index=index, error_code=ErrorCode.cluster_authorization_failed
                            )
                            for index in indexes
                        ]
                    ),
                )
                for name, indexes in partitions.items()
            ]
        )
    )
