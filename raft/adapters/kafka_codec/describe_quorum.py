"""DescribeQuorum (55), versions 0 to 2: 1 adds timestamps (KIP-836), 2 directories and listeners (KIP-853).

Responses may carry an annotation of our own in all of them (`wire.protocol.extensions`).
"""

from collections.abc import Sequence

from kquorum.raft.adapters.kafka_codec.partition import (
    PARTITION,
    TOPIC_NAME,
    ApiCodec,
    Refusal,
    find_partition,
    known,
    listeners_from,
    listeners_of,
)
from kquorum.raft.messages import DescribeQuorumRequest, DescribeQuorumResponse, ReplicaStatus
from kquorum.raft.voters import Endpoint
from kquorum.wire.messages import describe_quorum as kafka
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey


def decode_request(request: kafka.DescribeQuorumRequest) -> DescribeQuorumRequest | Refusal:
    if find_partition(request.topics) is not None:
        return DescribeQuorumRequest()
    topics = tuple([_unknown_topic(topic) for topic in request.topics])
    return Refusal(kafka.DescribeQuorumResponse(error_message=None, topics=topics))


def _unknown_topic(topic: kafka.RequestTopicData) -> kafka.ResponseTopicData:
    error = ErrorCode.unknown_topic_or_partition
    return kafka.ResponseTopicData(
        topic_name=topic.topic_name,
        partitions=tuple(
            [
                kafka.ResponsePartitionData(
                    partition_index=partition.partition_index,
                    error_code=error,
                    error_message=error.name,
                    leader_id=-1,
                    leader_epoch=-1,
                    high_watermark=-1,
                )
                for partition in topic.partitions
            ]
        ),
    )


def encode_request(_request: DescribeQuorumRequest, _version: int) -> kafka.DescribeQuorumRequest:
    partition = kafka.RequestPartitionData(partition_index=PARTITION)
    return kafka.DescribeQuorumRequest(
        topics=(kafka.RequestTopicData(topic_name=TOPIC_NAME, partitions=(partition,)),)
    )


def decode_response(response: kafka.DescribeQuorumResponse, _listener: str) -> DescribeQuorumResponse:
    if response.error_code is not ErrorCode.none:
        return DescribeQuorumResponse(error=response.error_code, is_top_level=True)
    partition = known(find_partition(response.topics))
    return DescribeQuorumResponse(
        error=partition.error_code,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        high_watermark=partition.high_watermark,
        current_voters=_statuses(partition.current_voters),
        observers=_statuses(partition.observers),
        nodes={node.node_id: listeners_of(node.listeners) for node in response.nodes},
        annotation=response.annotation,
    )


def _statuses(states: Sequence[kafka.ReplicaState]) -> tuple[ReplicaStatus, ...]:
    return tuple(
        ReplicaStatus(
            replica_id=state.replica_id,
            directory_id=state.replica_directory_id,
            log_end_offset=state.log_end_offset,
            last_fetch_timestamp_ms=state.last_fetch_timestamp,
            last_caught_up_timestamp_ms=state.last_caught_up_timestamp,
        )
        for state in states
    )


def encode_response(
    response: DescribeQuorumResponse, _leader: Endpoint | None
) -> kafka.DescribeQuorumResponse:
    error = response.error
    if response.is_top_level:
        return kafka.DescribeQuorumResponse(error_code=error, error_message=None)
    partition = kafka.ResponsePartitionData(
        partition_index=PARTITION,
        error_code=error,
        error_message=None if error is ErrorCode.none else error.name,
        leader_id=response.leader_id,
        leader_epoch=response.leader_epoch,
        high_watermark=response.high_watermark,
        current_voters=_states(response.current_voters),
        observers=_states(response.observers),
    )
    return kafka.DescribeQuorumResponse(
        error_message=None,
        topics=(kafka.ResponseTopicData(topic_name=TOPIC_NAME, partitions=(partition,)),),
        nodes=tuple(
            kafka.Node(node_id=node_id, listeners=listeners_from(kafka.Listener, endpoints))
            for node_id, endpoints in response.nodes.items()
        ),
        annotation=response.annotation,
    )


def _states(statuses: Sequence[ReplicaStatus]) -> tuple[kafka.ReplicaState, ...]:
    return tuple(
        kafka.ReplicaState(
            replica_id=status.replica_id,
            replica_directory_id=status.directory_id,
            log_end_offset=status.log_end_offset,
            last_fetch_timestamp=status.last_fetch_timestamp_ms,
            last_caught_up_timestamp=status.last_caught_up_timestamp_ms,
        )
        for status in statuses
    )


CODEC = ApiCodec(
    ApiKey.DESCRIBE_QUORUM, (0, 2), decode_request, encode_request, decode_response, encode_response
)
