"""FetchSnapshot (59), versions 0 and 1: 1 adds the replica's directory and the leader's endpoint (KIP-630, KIP-853)."""

from kquorum.raft.adapters.kafka_codec.partition import (
    PARTITION,
    TOPIC_NAME,
    ApiCodec,
    Refusal,
    known,
    leader_endpoints,
    node_endpoints,
)
from kquorum.raft.messages import FetchSnapshotRequest, FetchSnapshotResponse, SnapshotSlice
from kquorum.raft.voters import Endpoint, ReplicaKey
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages import fetch_snapshot as kafka
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey

_NO_SNAPSHOT = OffsetAndEpoch(-1, -1)


def decode_request(request: kafka.FetchSnapshotRequest) -> FetchSnapshotRequest | Refusal:
    partition = _requested_partition(request.topics)
    if partition is None:
        return Refusal(kafka.FetchSnapshotResponse(error_code=ErrorCode.invalid_request))
    return FetchSnapshotRequest(
        cluster_id=request.cluster_id,
        replica=ReplicaKey(request.replica_id, partition.replica_directory_id),
        current_leader_epoch=partition.current_leader_epoch,
        snapshot_id=_snapshot_id(partition.snapshot_id),
        position=partition.position,
        max_bytes=request.max_bytes,
    )


def _requested_partition(
    topics: tuple[kafka.RequestTopicSnapshot, ...],
) -> kafka.RequestPartitionSnapshot | None:
    """The metadata partition; None unless it is the only one named."""
    if len(topics) != 1 or topics[0].name != TOPIC_NAME or len(topics[0].partitions) != 1:
        return None
    partition = topics[0].partitions[0]
    return partition if partition.partition == PARTITION else None


def encode_request(request: FetchSnapshotRequest, _version: int) -> kafka.FetchSnapshotRequest:
    snapshot_id = request.snapshot_id
    partition = kafka.RequestPartitionSnapshot(
        partition=PARTITION,
        current_leader_epoch=request.current_leader_epoch,
        snapshot_id=kafka.RequestSnapshotId(end_offset=snapshot_id.offset, epoch=snapshot_id.epoch),
        position=request.position,
        replica_directory_id=request.replica.directory_id,
    )
    return kafka.FetchSnapshotRequest(
        cluster_id=request.cluster_id,
        replica_id=request.replica.id,
        max_bytes=request.max_bytes,
        topics=(kafka.RequestTopicSnapshot(name=TOPIC_NAME, partitions=(partition,)),),
    )


def decode_response(response: kafka.FetchSnapshotResponse, listener: str) -> FetchSnapshotResponse:
    if response.error_code is not ErrorCode.none:
        return FetchSnapshotResponse(error=response.error_code, is_top_level=True)
    partition = known(_answered_partition(response.topics))
    leader = partition.current_leader
    return FetchSnapshotResponse(
        error=partition.error_code,
        leader_id=leader.leader_id,
        leader_epoch=leader.leader_epoch,
        leader_endpoints=leader_endpoints(response.node_endpoints, leader.leader_id, listener),
        snapshot_id=_snapshot_id(partition.snapshot_id),
        size=partition.size,
        position=partition.position,
        data=bytes(partition.unaligned_records),
    )


def _answered_partition(
    topics: tuple[kafka.ResponseTopicSnapshot, ...],
) -> kafka.ResponsePartitionSnapshot | None:
    """As `_requested_partition`."""
    if len(topics) != 1 or topics[0].name != TOPIC_NAME or len(topics[0].partitions) != 1:
        return None
    partition = topics[0].partitions[0]
    return partition if partition.index == PARTITION else None


def encode_response(response: FetchSnapshotResponse, leader: Endpoint | None) -> kafka.FetchSnapshotResponse:
    if response.is_top_level:
        return kafka.FetchSnapshotResponse(error_code=response.error)
    assert not isinstance(response.data, SnapshotSlice), "the driver reads the slice off the file first"
    snapshot_id = response.snapshot_id or _NO_SNAPSHOT
    partition = kafka.ResponsePartitionSnapshot(
        index=PARTITION,
        error_code=response.error,
        snapshot_id=kafka.ResponseSnapshotId(end_offset=snapshot_id.offset, epoch=snapshot_id.epoch),
        current_leader=kafka.LeaderIdAndEpoch(
            leader_id=response.leader_id, leader_epoch=response.leader_epoch
        ),
        size=response.size,
        position=response.position,
        unaligned_records=response.data,
    )
    return kafka.FetchSnapshotResponse(
        topics=(kafka.ResponseTopicSnapshot(name=TOPIC_NAME, partitions=(partition,)),),
        node_endpoints=node_endpoints(kafka.NodeEndpoint, response.leader_id, leader),
    )


def _snapshot_id(value: kafka.RequestSnapshotId | kafka.ResponseSnapshotId) -> OffsetAndEpoch:
    return OffsetAndEpoch(value.end_offset, value.epoch)


CODEC = ApiCodec(
    ApiKey.FETCH_SNAPSHOT, (0, 1), decode_request, encode_request, decode_response, encode_response
)
