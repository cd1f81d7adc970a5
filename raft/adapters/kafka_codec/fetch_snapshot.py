"""FetchSnapshot (59), versions 0 and 1: 1 adds the replica's directory and the leader's endpoint (KIP-630, KIP-853)."""

from typing import Any

from kio.schema.errors import ErrorCode

from kquorum.raft.adapters.kafka_codec.partition import (
    PARTITION,
    TOPIC_NAME,
    ApiCodec,
    Refusal,
    Values,
    directory_id,
    find_partition,
    leader_endpoints,
    node_endpoints,
    response_partition,
    top_level_error,
)
from kquorum.raft.messages import FetchSnapshotRequest, FetchSnapshotResponse, SnapshotSlice
from kquorum.raft.voters import Endpoint, ReplicaKey
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.protocol.api_keys import ApiKey


def decode_request(entity: Any) -> FetchSnapshotRequest | Refusal:
    partition = find_partition(entity.topics, index_field="partition")
    if partition is None:
        return Refusal(top_level_error(ErrorCode.invalid_request))
    return FetchSnapshotRequest(
        cluster_id=entity.cluster_id,
        replica=ReplicaKey(entity.replica_id, directory_id(getattr(partition, "replica_directory_id", None))),
        current_leader_epoch=partition.current_leader_epoch,
        snapshot_id=_snapshot_id(partition.snapshot_id),
        position=partition.position,
        max_bytes=entity.max_bytes,
    )


def encode_request(request: FetchSnapshotRequest, _version: int) -> Values:
    partition = {
        "partition": PARTITION,
        "current_leader_epoch": request.current_leader_epoch,
        "snapshot_id": _values(request.snapshot_id),
        "position": request.position,
        "replica_directory_id": request.replica.directory_id,
    }
    return {
        "cluster_id": request.cluster_id,
        "replica_id": request.replica.id,
        "max_bytes": request.max_bytes,
        "topics": [{"name": TOPIC_NAME, "partitions": [partition]}],
    }


def decode_response(entity: Any, listener: str) -> FetchSnapshotResponse:
    if entity.error_code is not ErrorCode.none:
        return FetchSnapshotResponse(error=entity.error_code, is_top_level=True)
    partition = response_partition(entity.topics, index_field="index")
    records = partition.unaligned_records
    leader = partition.current_leader
    return FetchSnapshotResponse(
        error=partition.error_code,
        leader_id=leader.leader_id,
        leader_epoch=leader.leader_epoch,
        leader_endpoints=leader_endpoints(entity, leader.leader_id, listener),
        snapshot_id=_snapshot_id(partition.snapshot_id),
        size=partition.size,
        position=partition.position,
        data=b"" if records is None else bytes(records),
    )


def encode_response(response: FetchSnapshotResponse, leader: Endpoint | None) -> Values:
    if response.is_top_level:
        return top_level_error(response.error)
    assert not isinstance(response.data, SnapshotSlice), "the driver reads the slice off the file first"
    partition: Values = {
        "index": PARTITION,
        "error_code": response.error,
        "snapshot_id": _values(response.snapshot_id or OffsetAndEpoch(-1, -1)),
        "current_leader": {"leader_id": response.leader_id, "leader_epoch": response.leader_epoch},
        "size": response.size,
        "position": response.position,
        "unaligned_records": response.data,
    }
    return {
        "error_code": ErrorCode.none,
        "topics": [{"name": TOPIC_NAME, "partitions": [partition]}],
        "node_endpoints": node_endpoints(response.leader_id, leader),
    }


def _snapshot_id(entity: Any) -> OffsetAndEpoch:
    return OffsetAndEpoch(entity.end_offset, entity.epoch)


def _values(snapshot_id: OffsetAndEpoch) -> Values:
    return {"end_offset": snapshot_id.offset, "epoch": snapshot_id.epoch}


CODEC = ApiCodec(
    ApiKey.FETCH_SNAPSHOT, (0, 1), decode_request, encode_request, decode_response, encode_response
)
