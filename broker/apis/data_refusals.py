"""The answers to clients that want records or group coordination, which these brokers do not have.

Not to offer these APIs would be simpler, but clients in the field take that badly: librdkafka's consumer spins
or stays silent for ever, franz-go takes a broker without Produce for one whose versions it does not know, and
kafka-python for one of release 1.0. So they are offered in every version, and refused with an error that all
of these clients take as final. There is no code for "not here"; no client retries for want of authorization.
"""

from collections.abc import Mapping

from kquorum.broker.apis.group_refusals import NO_GROUPS
from kquorum.metadata.controller.requests import messages_of_entries
from kquorum.wire.messages import (
    alter_replica_log_dirs,
    delete_records,
    describe_producers,
    fetch,
    find_coordinator,
    offset_for_leader_epoch,
    produce,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NO_RECORDS = "this kquorum broker serves metadata only and stores no records"
NO_TRANSACTIONS = "this kquorum broker serves metadata only and coordinates no transactions"
_GROUP_KEY, _TRANSACTION_KEY = 0, 1
_COORDINATORS: Mapping[int, tuple[ErrorCode, str]] = {
    _GROUP_KEY: (ErrorCode.group_authorization_failed, NO_GROUPS),
    _TRANSACTION_KEY: (ErrorCode.transactional_id_authorization_failed, NO_TRANSACTIONS),
}
# Coordinators of share groups are asked for by brokers only; as Kafka's brokers without one.
_NO_SUCH_KIND = (ErrorCode.invalid_request, "there is no coordinator of this kind here")


def refuse_produce(request: produce.ProduceRequest, _version: int) -> produce.ProduceResponse | None:
    """None for acks=0: such a producer awaits no answer, so only its connection can tell it (as in Kafka)."""
    if request.acks == 0:
        return None
    messages = messages_of_entries(NO_RECORDS)
    return produce.ProduceResponse(
        responses=tuple(
            [
                produce.TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=tuple(
                        [_produced(partition.index, next(messages)) for partition in topic.partition_data]
                    ),
                )
                for topic in request.topic_data
            ]
        )
    )


def _produced(index: int, message: str | None) -> produce.PartitionProduceResponse:
    return produce.PartitionProduceResponse(
        index=index,
        error_code=ErrorCode.topic_authorization_failed,
        base_offset=-1,
        error_message=message,
    )


def refuse_fetch(request: fetch.FetchRequest, _version: int) -> fetch.FetchResponse:
    return fetch.FetchResponse(
        responses=tuple(
            [
                fetch.FetchableTopicResponse(
                    topic=topic.topic,
                    topic_id=topic.topic_id,
                    partitions=tuple([_fetched(partition.partition) for partition in topic.partitions]),
                )
                for topic in request.topics
            ]
        )
    )


def _fetched(index: int) -> fetch.PartitionData:
    """Records are empty, not null: librdkafka takes null for damage and asks again at once."""
    return fetch.PartitionData(
        partition_index=index,
        error_code=ErrorCode.topic_authorization_failed,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )


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


def refuse_init_producer_id(_request: InitProducerIdRequest, _version: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=ErrorCode.cluster_authorization_failed, producer_epoch=-1)


def refuse_delete_records(
    request: delete_records.DeleteRecordsRequest, _version: int
) -> delete_records.DeleteRecordsResponse:
    return delete_records.DeleteRecordsResponse(
        topics=tuple(
            [
                delete_records.DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=tuple(
                        [
                            delete_records.DeleteRecordsPartitionResult(
                                partition_index=partition.partition_index,
                                low_watermark=-1,
                                error_code=ErrorCode.topic_authorization_failed,
                            )
                            for partition in topic.partitions
                        ]
                    ),
                )
                for topic in request.topics
            ]
        )
    )


def refuse_offset_for_leader_epoch(
    request: offset_for_leader_epoch.OffsetForLeaderEpochRequest, _version: int
) -> offset_for_leader_epoch.OffsetForLeaderEpochResponse:
    return offset_for_leader_epoch.OffsetForLeaderEpochResponse(
        topics=tuple(
            [
                offset_for_leader_epoch.OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=tuple(
                        [
                            offset_for_leader_epoch.EpochEndOffset(
                                partition=partition.partition,
                                error_code=ErrorCode.topic_authorization_failed,
                            )
                            for partition in topic.partitions
                        ]
                    ),
                )
                for topic in request.topics
            ]
        )
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


def refuse_describe_producers(
    request: describe_producers.DescribeProducersRequest, _version: int
) -> describe_producers.DescribeProducersResponse:
    messages = messages_of_entries(NO_RECORDS)
    return describe_producers.DescribeProducersResponse(
        topics=tuple(
            [
                describe_producers.TopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        [
                            describe_producers.PartitionResponse(
                                partition_index=index,
                                error_code=ErrorCode.topic_authorization_failed,
                                error_message=next(messages),
                            )
                            for index in topic.partition_indexes
                        ]
                    ),
                )
                for topic in request.topics
            ]
        )
    )
