"""Fetch (1) of the metadata partition, versions 12 to 18.

12 is the first with epoch checks and the topic's name, 13 has the topic's id, 15 the replica in a struct, 16 the
leader's endpoint, 17 the replica's directory, 18 the high watermark that the replica knows (KIP-1166). Requests may
carry an annotation of our own in all of them (`wire.protocol.extensions`).
"""

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
)
from kquorum.raft.messages import FetchRequest, FetchResponse, LogSlice
from kquorum.raft.voters import Endpoint, ReplicaKey
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.uuids import METADATA_TOPIC_ID

_HIGH_WATERMARK_ABSENT = 2**63 - 1
_TOPIC = {"topic": TOPIC_NAME, "topic_id": METADATA_TOPIC_ID}


def decode_request(entity: Any) -> FetchRequest | Refusal:
    partition = find_partition(entity.topics, index_field="partition")
    if partition is None:
        return Refusal({"error_code": ErrorCode.invalid_request, "responses": []})
    replica_id = entity.replica_id if hasattr(entity, "replica_id") else entity.replica_state.replica_id
    high_watermark = getattr(partition, "high_watermark", _HIGH_WATERMARK_ABSENT)
    return FetchRequest(
        cluster_id=entity.cluster_id,
        replica=ReplicaKey(replica_id, directory_id(getattr(partition, "replica_directory_id", None))),
        current_leader_epoch=partition.current_leader_epoch,
        fetch_offset=partition.fetch_offset,
        last_fetched_epoch=partition.last_fetched_epoch,
        max_wait_ms=round(entity.max_wait.total_seconds() * 1000),
        max_bytes=entity.max_bytes,
        high_watermark=None if high_watermark == _HIGH_WATERMARK_ABSENT else high_watermark,
        annotation=bytes(entity.annotation),
    )


def encode_request(request: FetchRequest, _version: int) -> Values:
    high_watermark = _HIGH_WATERMARK_ABSENT if request.high_watermark is None else request.high_watermark
    partition = {
        "partition": PARTITION,
        "current_leader_epoch": request.current_leader_epoch,
        "fetch_offset": request.fetch_offset,
        "last_fetched_epoch": request.last_fetched_epoch,
        "partition_max_bytes": request.max_bytes,
        "replica_directory_id": request.replica.directory_id,
        "high_watermark": high_watermark,
    }
    return {
        "cluster_id": request.cluster_id,
        "replica_id": request.replica.id,
        "replica_state": {"replica_id": request.replica.id},
        "max_wait": request.max_wait_ms,
        "min_bytes": 0,
        "max_bytes": request.max_bytes,
        "topics": [_TOPIC | {"partitions": [partition]}],
        "forgotten_topics_data": [],
        "annotation": request.annotation,
    }


def decode_response(entity: Any, listener: str) -> FetchResponse:
    if entity.error_code is not ErrorCode.none:
        return FetchResponse(error=entity.error_code, is_top_level=True)
    partition = response_partition(entity.responses)
    diverging, snapshot_id = partition.diverging_epoch, partition.snapshot_id
    return FetchResponse(
        error=partition.error_code,
        leader_id=partition.current_leader.leader_id,
        leader_epoch=partition.current_leader.leader_epoch,
        leader_endpoints=leader_endpoints(entity, partition.current_leader.leader_id, listener),
        high_watermark=partition.high_watermark,
        log_start_offset=partition.log_start_offset,
        diverging=None if diverging.epoch < 0 else OffsetAndEpoch(diverging.end_offset, diverging.epoch),
        snapshot_id=None
        if snapshot_id.epoch < 0
        else OffsetAndEpoch(snapshot_id.end_offset, snapshot_id.epoch),
        records=b"" if partition.records is None else bytes(partition.records),
    )


def encode_response(response: FetchResponse, leader: Endpoint | None) -> Values:
    if response.is_top_level:
        return {"error_code": response.error, "responses": []}
    return {
        "error_code": ErrorCode.none,
        "responses": [_TOPIC | {"partitions": [_partition_values(response)]}],
        "node_endpoints": node_endpoints(response.leader_id, leader),
    }


def _partition_values(response: FetchResponse) -> Values:
    assert not isinstance(response.records, LogSlice), "the driver reads the slice off the log first"
    values: Values = {
        "partition_index": PARTITION,
        "error_code": response.error,
        "high_watermark": response.high_watermark,
        "log_start_offset": response.log_start_offset,
        "current_leader": {"leader_id": response.leader_id, "leader_epoch": response.leader_epoch},
        "aborted_transactions": [],
        "records": response.records,
    }
    if response.diverging is not None:
        values["diverging_epoch"] = _offset_and_epoch(response.diverging)
    if response.snapshot_id is not None:
        values["snapshot_id"] = _offset_and_epoch(response.snapshot_id)
    return values


def _offset_and_epoch(value: OffsetAndEpoch) -> Values:
    return {"epoch": value.epoch, "end_offset": value.offset}


CODEC = ApiCodec(ApiKey.FETCH, (12, 18), decode_request, encode_request, decode_response, encode_response)
