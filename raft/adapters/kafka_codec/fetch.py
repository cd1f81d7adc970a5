"""Fetch (1) of the metadata partition, versions 12 to 18.

12 is the first with epoch checks and the topic's name, 13 has the topic's id, 15 the replica in a struct, 16 the
leader's endpoint, 17 the replica's directory, 18 the high watermark that the replica knows (KIP-1166). Requests may
carry an annotation of our own in all of them (`wire.protocol.extensions`).
"""

from kquorum.raft.adapters.kafka_codec.partition import (
    PARTITION,
    TOPIC_NAME,
    ApiCodec,
    Refusal,
    known,
    leader_endpoints,
    node_endpoints,
)
from kquorum.raft.messages import FetchRequest, FetchResponse, LogSlice
from kquorum.raft.voters import Endpoint, ReplicaKey
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages import fetch as kafka
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.uuids import METADATA_TOPIC_ID

_HIGH_WATERMARK_ABSENT = 2**63 - 1
_NO_REPLICA = -1
_FIRST_WITH_REPLICA_STATE = 15
_NO_REPLICA_STATE = kafka.ReplicaState()
_NO_EPOCH = kafka.EpochEndOffset()
_NO_SNAPSHOT = kafka.SnapshotId()


def decode_request(request: kafka.FetchRequest) -> FetchRequest | Refusal:
    partition = _requested_partition(request.topics)
    if partition is None:
        return Refusal(kafka.FetchResponse(error_code=ErrorCode.invalid_request))
    replica_id = request.replica_id
    if replica_id == _NO_REPLICA:
        replica_id = request.replica_state.replica_id
    high_watermark = partition.high_watermark
    return FetchRequest(
        cluster_id=request.cluster_id,
        replica=ReplicaKey(replica_id, partition.replica_directory_id),
        current_leader_epoch=partition.current_leader_epoch,
        fetch_offset=partition.fetch_offset,
        last_fetched_epoch=partition.last_fetched_epoch,
        max_wait_ms=request.max_wait_ms,
        max_bytes=request.max_bytes,
        high_watermark=None if high_watermark == _HIGH_WATERMARK_ABSENT else high_watermark,
        annotation=request.annotation,
    )


def _requested_partition(topics: tuple[kafka.FetchTopic, ...]) -> kafka.FetchPartition | None:
    """The metadata partition; None unless it is the only one named."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    topic, partition = topics[0], topics[0].partitions[0]
    return partition if _is_metadata(topic) and partition.partition == PARTITION else None


def _is_metadata(topic: kafka.FetchTopic | kafka.FetchableTopicResponse) -> bool:
    """A version has the topic's name or its id."""
    return topic.topic_id == METADATA_TOPIC_ID or topic.topic == TOPIC_NAME


def encode_request(request: FetchRequest, version: int) -> kafka.FetchRequest:
    high_watermark = request.high_watermark
    partition = kafka.FetchPartition(
        partition=PARTITION,
        current_leader_epoch=request.current_leader_epoch,
        fetch_offset=request.fetch_offset,
        last_fetched_epoch=request.last_fetched_epoch,
        partition_max_bytes=request.max_bytes,
        replica_directory_id=request.replica.directory_id,
        high_watermark=_HIGH_WATERMARK_ABSENT if high_watermark is None else high_watermark,
    )
    has_state = version >= _FIRST_WITH_REPLICA_STATE
    return kafka.FetchRequest(
        cluster_id=request.cluster_id,
        replica_id=_NO_REPLICA if has_state else request.replica.id,
        replica_state=kafka.ReplicaState(replica_id=request.replica.id) if has_state else _NO_REPLICA_STATE,
        max_wait_ms=request.max_wait_ms,
        max_bytes=request.max_bytes,
        topics=(kafka.FetchTopic(topic=TOPIC_NAME, topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
        annotation=request.annotation,
    )


def decode_response(response: kafka.FetchResponse, listener: str) -> FetchResponse:
    if response.error_code is not ErrorCode.none:
        return FetchResponse(error=response.error_code, is_top_level=True)
    partition = known(_answered_partition(response.responses))
    leader, diverging, snapshot_id = (
        partition.current_leader,
        partition.diverging_epoch,
        partition.snapshot_id,
    )
    return FetchResponse(
        error=partition.error_code,
        leader_id=leader.leader_id,
        leader_epoch=leader.leader_epoch,
        leader_endpoints=leader_endpoints(response.node_endpoints, leader.leader_id, listener),
        high_watermark=partition.high_watermark,
        log_start_offset=partition.log_start_offset,
        diverging=None if diverging.epoch < 0 else OffsetAndEpoch(diverging.end_offset, diverging.epoch),
        snapshot_id=None
        if snapshot_id.epoch < 0
        else OffsetAndEpoch(snapshot_id.end_offset, snapshot_id.epoch),
        records=b"" if partition.records is None else bytes(partition.records),
    )


def _answered_partition(topics: tuple[kafka.FetchableTopicResponse, ...]) -> kafka.PartitionData | None:
    """As `_requested_partition`."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    topic, partition = topics[0], topics[0].partitions[0]
    return partition if _is_metadata(topic) and partition.partition_index == PARTITION else None


def encode_response(response: FetchResponse, leader: Endpoint | None) -> kafka.FetchResponse:
    if response.is_top_level:
        return kafka.FetchResponse(error_code=response.error)
    assert not isinstance(response.records, LogSlice), "the driver reads the slice off the log first"
    diverging, snapshot_id = response.diverging, response.snapshot_id
    partition = kafka.PartitionData(
        partition_index=PARTITION,
        error_code=response.error,
        high_watermark=response.high_watermark,
        log_start_offset=response.log_start_offset,
        current_leader=kafka.LeaderIdAndEpoch(
            leader_id=response.leader_id, leader_epoch=response.leader_epoch
        ),
        diverging_epoch=_NO_EPOCH
        if diverging is None
        else kafka.EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.offset),
        snapshot_id=_NO_SNAPSHOT
        if snapshot_id is None
        else kafka.SnapshotId(epoch=snapshot_id.epoch, end_offset=snapshot_id.offset),
        records=response.records,
    )
    topic = kafka.FetchableTopicResponse(
        topic=TOPIC_NAME, topic_id=METADATA_TOPIC_ID, partitions=(partition,)
    )
    return kafka.FetchResponse(
        responses=(topic,), node_endpoints=node_endpoints(kafka.NodeEndpoint, response.leader_id, leader)
    )


CODEC = ApiCodec(ApiKey.FETCH, (12, 18), decode_request, encode_request, decode_response, encode_response)
