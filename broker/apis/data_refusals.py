"""The answers to clients that want coordinators, or moves between directories, which these brokers do not have yet.

Not to offer these APIs would be simpler, but clients in the field take that badly: librdkafka's consumer spins
or stays silent for ever, and kafka-python takes a broker for one of release 1.0. So they are offered in every version,
and refused with an error that all of these clients take as final. There is no code for "not here"; no client retries
for want of authorization.
"""

from collections.abc import Mapping

from kquorum.broker.apis.group_refusals import NO_GROUPS
from kquorum.metadata.controller.requests import messages_of_entries
from kquorum.wire.messages import (
    alter_replica_log_dirs,
    find_coordinator,
)
from kquorum.wire.messages.error_codes import ErrorCode

NO_TRANSACTIONS = "kquorum brokers do not coordinate transactions yet"
_GROUP_KEY, _TRANSACTION_KEY = 0, 1
_COORDINATORS: Mapping[int, tuple[ErrorCode, str]] = {
    _GROUP_KEY: (ErrorCode.group_authorization_failed, NO_GROUPS),
    _TRANSACTION_KEY: (ErrorCode.transactional_id_authorization_failed, NO_TRANSACTIONS),
}
# Coordinators of share groups are asked for by brokers only; as Kafka's brokers without one.
_NO_SUCH_KIND = (ErrorCode.invalid_request, "there is no coordinator of this kind here")


def refuse_find_coordinator(
    request: find_coordinator.FindCoordinatorRequest, _version: int
) -> find_coordinator.FindCoordinatorResponse:
    """Each kind of coordinator with its own code: a producer retries for ever on the error for groups."""
    error, message = _COORDINATORS.get(request.key_type, _NO_SUCH_KIND)
    messages = messages_of_entries(message)
    return find_coordinator.FindCoordinatorResponse(
        error_code=error,
        error_message=message,
        node_id=-1,
        port=-1,
        coordinators=tuple(
            [
                find_coordinator.Coordinator(
                    key=key, node_id=-1, port=-1, error_code=error, error_message=next(messages)
                )
                for key in request.coordinator_keys
            ]
        ),
    )


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
