"""FetchSnapshot on the wire: what both versions carry, and what is refused."""

from typing import Any
from uuid import UUID

import pytest

from kquorum.raft.adapters.kafka_codec import codec
from kquorum.raft.adapters.kafka_codec.partition import Refusal
from kquorum.raft.messages import FetchSnapshotRequest, FetchSnapshotResponse
from kquorum.raft.voters import ZERO_DIRECTORY, Endpoint, ReplicaKey
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages import fetch_snapshot as messages
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import as_read, read_answer
from tests.support.kio.classes import request_class
from tests.support.kio.entities import build
from tests.support.raft.codec import over_the_wire

ID = OffsetAndEpoch(300, 7)
REQUEST = FetchSnapshotRequest(
    cluster_id="c",
    replica=ReplicaKey(2, UUID(int=22)),
    current_leader_epoch=8,
    snapshot_id=ID,
    position=4096,
    max_bytes=8_388_608,
)
ANSWERS = [
    FetchSnapshotResponse(
        leader_id=1, leader_epoch=8, snapshot_id=ID, size=2**33, position=4096, data=b"not\x00aligned"
    ),
    FetchSnapshotResponse(error=ErrorCode.snapshot_not_found, leader_id=1, leader_epoch=8, snapshot_id=ID),
    FetchSnapshotResponse(
        error=ErrorCode.position_out_of_range, leader_epoch=8, snapshot_id=ID, position=2**40
    ),
    FetchSnapshotResponse(error=ErrorCode.inconsistent_cluster_id, is_top_level=True),
]


def test_a_request_keeps_everything_but_the_directory_in_version_0() -> None:
    newest, oldest = (
        codec.decode_request(
            ApiKey.FETCH_SNAPSHOT, over_the_wire(codec.encode_request(REQUEST, version), version)
        )
        for version in (1, 0)
    )
    assert newest == REQUEST
    assert isinstance(oldest, FetchSnapshotRequest)
    assert oldest.replica == ReplicaKey(2, ZERO_DIRECTORY)
    assert (oldest.snapshot_id, oldest.position, oldest.max_bytes) == (ID, 4096, 8_388_608)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_comes_out_as_it_went_in(answer: FetchSnapshotResponse, version: int) -> None:
    message = codec.encode_response(ApiKey.FETCH_SNAPSHOT, version, answer, {})
    read = read_answer(ApiKey.FETCH_SNAPSHOT, version, message)
    assert codec.decode_response(ApiKey.FETCH_SNAPSHOT, read) == answer


def test_the_answer_says_where_the_leader_listens_from_version_1_on() -> None:
    place = Endpoint("CONTROLLER", "c1", 9093)
    answers = [
        codec.decode_response(
            ApiKey.FETCH_SNAPSHOT,
            read_answer(
                ApiKey.FETCH_SNAPSHOT,
                version,
                codec.encode_response(ApiKey.FETCH_SNAPSHOT, version, ANSWERS[0], {1: place}),
            ),
            "CONTROLLER",
        )
        for version in (0, 1)
    ]
    assert [answer.leader_endpoints for answer in answers] == [(), (place,)]  # type: ignore[union-attr]


def other_topic(kind: Any, **partition: Any) -> Any:
    return build(kind, {"topics": [{"name": "orders", "partitions": [partition]}], "max_bytes": 1})


def test_another_topic_is_refused_and_not_understood() -> None:
    snapshot_id = {"end_offset": 1, "epoch": 1}
    request = other_topic(
        request_class(ApiKey.FETCH_SNAPSHOT, 1),
        partition=0, current_leader_epoch=1, snapshot_id=snapshot_id, position=0,
    )  # fmt: skip
    refusal = codec.decode_request(ApiKey.FETCH_SNAPSHOT, as_read(ApiKey.FETCH_SNAPSHOT, 1, request))
    assert isinstance(refusal, Refusal)
    answer = codec.decode_response(
        ApiKey.FETCH_SNAPSHOT, read_answer(ApiKey.FETCH_SNAPSHOT, 1, refusal.response)
    )
    assert answer.error is ErrorCode.invalid_request  # type: ignore[union-attr]
    with pytest.raises(DecodeError, match="metadata partition"):
        codec.decode_response(ApiKey.FETCH_SNAPSHOT, messages.FetchSnapshotResponse())
