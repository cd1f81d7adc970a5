"""Messages to bytes and back, in every version of every quorum API."""

from dataclasses import fields
from typing import Any
from uuid import UUID

import pytest

from kquorum.raft.adapters.kafka_codec import codec
from kquorum.raft.adapters.kafka_codec.partition import Refusal
from kquorum.raft.messages import (
    AddRaftVoterRequest,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    ChangeVotersResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    RemoveRaftVoterRequest,
    ReplicaStatus,
    Request,
    Response,
    UpdateRaftVoterRequest,
    VoteRequest,
    VoteResponse,
)
from kquorum.raft.voters import Endpoint, ReplicaKey, VersionRange
from kquorum.wire.errors import DecodeError, UnsupportedVersion
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.message_codec import encode
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import message_types
from kquorum.wire.protocol.headers import EncodedBody, encode_body
from tests.support.api_calls import as_read, read_answer, request_of
from tests.support.kio.classes import request_class
from tests.support.kio.entities import build
from tests.support.raft.codec import over_the_wire, versions

KEY = ReplicaKey(2, UUID(int=22))
LISTENERS = (Endpoint("CONTROLLER", "c1", 9093),)
ENDPOINTS = {1: LISTENERS[0]}

REQUESTS: list[Request] = [
    VoteRequest(
        cluster_id="c", replica_epoch=5, candidate=KEY, voter=ReplicaKey(3, UUID(int=33)), last_offset=70,
        last_offset_epoch=4,
    ),
    VoteRequest(
        cluster_id=None, replica_epoch=5, candidate=KEY, voter=ReplicaKey(3), last_offset=0, last_offset_epoch=0,
        pre_vote=True,
    ),
    BeginQuorumEpochRequest(
        cluster_id="c", leader_id=1, leader_epoch=6, leader_endpoints=LISTENERS, voter=ReplicaKey(3, UUID(int=3))
    ),
    EndQuorumEpochRequest(
        cluster_id="c", leader_id=1, leader_epoch=6, preferred_candidates=(KEY, ReplicaKey(3)),
        leader_endpoints=LISTENERS,
    ),
    FetchRequest(
        cluster_id="c", replica=KEY, current_leader_epoch=6, fetch_offset=70, last_fetched_epoch=5,
        max_wait_ms=500, max_bytes=8_388_608, high_watermark=-1,
    ),
    FetchRequest(
        cluster_id=None, replica=ReplicaKey(-1), current_leader_epoch=6, fetch_offset=0, last_fetched_epoch=0,
        max_wait_ms=0, max_bytes=1,
    ),
    DescribeQuorumRequest(),
    AddRaftVoterRequest(
        cluster_id="c", timeout_ms=1500, voter=KEY, endpoints=(*LISTENERS, Endpoint("SECOND", "c1", 9094)),
    ),
    RemoveRaftVoterRequest(cluster_id=None, voter=ReplicaKey(2)),
    UpdateRaftVoterRequest(
        cluster_id="c", current_leader_epoch=6, voter=KEY, endpoints=LISTENERS, kraft_versions=VersionRange(0, 3),
    ),
]  # fmt: skip

RESPONSES: list[tuple[ApiKey, Response]] = [
    (ApiKey.VOTE, VoteResponse(leader_epoch=5, vote_granted=True)),
    (ApiKey.VOTE, VoteResponse(error=ErrorCode.fenced_leader_epoch, leader_id=1, leader_epoch=7)),
    (ApiKey.VOTE, VoteResponse(error=ErrorCode.inconsistent_cluster_id, is_top_level=True)),
    (ApiKey.BEGIN_QUORUM_EPOCH, BeginQuorumEpochResponse(leader_id=1, leader_epoch=6)),
    (ApiKey.BEGIN_QUORUM_EPOCH, BeginQuorumEpochResponse(error=ErrorCode.invalid_request, is_top_level=True)),
    (ApiKey.END_QUORUM_EPOCH, EndQuorumEpochResponse(error=ErrorCode.invalid_voter_key, leader_epoch=6)),
    (ApiKey.END_QUORUM_EPOCH, EndQuorumEpochResponse(error=ErrorCode.invalid_request, is_top_level=True)),
    (
        ApiKey.FETCH,
        FetchResponse(leader_id=1, leader_epoch=6, high_watermark=60, log_start_offset=0, records=b"abc"),
    ),
    (ApiKey.FETCH, FetchResponse(leader_id=1, leader_epoch=6, records=b"x" * 5000)),
    (ApiKey.FETCH, FetchResponse(leader_id=7, leader_epoch=6, high_watermark=2**40)),
    (ApiKey.FETCH, FetchResponse(leader_epoch=6)),
    (ApiKey.FETCH, FetchResponse(leader_id=1, leader_epoch=6, diverging=OffsetAndEpoch(30, 4))),
    (ApiKey.FETCH, FetchResponse(leader_id=1, leader_epoch=6, snapshot_id=OffsetAndEpoch(30, 4))),
    (ApiKey.FETCH, FetchResponse(error=ErrorCode.not_leader_or_follower, leader_id=1, leader_epoch=6)),
    (ApiKey.FETCH, FetchResponse(error=ErrorCode.inconsistent_cluster_id, is_top_level=True)),
    (ApiKey.DESCRIBE_QUORUM, DescribeQuorumResponse(error=ErrorCode.not_leader_or_follower, leader_epoch=3)),
    (
        ApiKey.DESCRIBE_QUORUM,
        DescribeQuorumResponse(
            leader_id=1,
            leader_epoch=6,
            high_watermark=60,
            current_voters=(
                ReplicaStatus(
                    replica_id=1,
                    directory_id=UUID(int=11),
                    log_end_offset=61,
                    last_fetch_timestamp_ms=5,
                    last_caught_up_timestamp_ms=4,
                ),
            ),
            observers=(ReplicaStatus(replica_id=9),),
            nodes={1: LISTENERS, 2: (Endpoint("CONTROLLER", "c2", 9093), Endpoint("SECOND", "c2", 9094))},
        ),
    ),
    (ApiKey.ADD_RAFT_VOTER, ChangeVotersResponse()),
    (
        ApiKey.ADD_RAFT_VOTER,
        ChangeVotersResponse(error=ErrorCode.duplicate_voter, message="it votes already"),
    ),
    (
        ApiKey.REMOVE_RAFT_VOTER,
        ChangeVotersResponse(error=ErrorCode.voter_not_found, message="no such voter"),
    ),
    (ApiKey.UPDATE_RAFT_VOTER, ChangeVotersResponse(leader_id=1, leader_epoch=6)),
    (ApiKey.UPDATE_RAFT_VOTER, ChangeVotersResponse(error=ErrorCode.fenced_leader_epoch, leader_epoch=7)),
    (
        ApiKey.UPDATE_RAFT_VOTER,
        ChangeVotersResponse(error=ErrorCode.inconsistent_cluster_id, is_top_level=True),
    ),
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_the_newest_version_carries_all_of_a_request(request_: Request) -> None:
    api_key = codec.api_key_of(request_)
    newest = versions(api_key)[-1]
    message = codec.encode_request(request_, newest)
    assert codec.decode_request(api_key, over_the_wire(message, newest)) == request_


@pytest.mark.parametrize("request_", [item for item in REQUESTS if not getattr(item, "pre_vote", False)])
def test_older_versions_lose_only_what_they_have_no_field_for(request_: Request) -> None:
    api_key = codec.api_key_of(request_)
    optional = {"voter", "candidate", "replica", "high_watermark", "leader_endpoints", "preferred_candidates"}
    for version in versions(api_key):
        decoded = codec.decode_request(
            api_key, over_the_wire(codec.encode_request(request_, version), version)
        )
        assert type(decoded) is type(request_)
        names = {each.name for each in fields(request_)}
        for name in names - optional:
            assert getattr(decoded, name) == getattr(request_, name), (name, version)
        for name in {"candidate", "replica"} & names:
            assert getattr(decoded, name).id == getattr(request_, name).id


def test_a_pre_vote_is_never_sent_where_it_would_be_a_real_vote() -> None:
    for version in (0, 1):
        with pytest.raises(UnsupportedVersion):
            codec.encode_request(REQUESTS[1], version)


def test_a_replica_is_known_by_its_id_in_every_version_of_fetch() -> None:
    for version in versions(ApiKey.FETCH):
        message = codec.encode_request(REQUESTS[4], version)
        decoded = codec.decode_request(ApiKey.FETCH, over_the_wire(message, version))
        assert isinstance(decoded, FetchRequest)
        assert decoded.replica == (KEY if version >= 17 else ReplicaKey(2))
        assert decoded.high_watermark == (-1 if version >= 18 else None)


@pytest.mark.parametrize(("api_key", "response"), RESPONSES)
def test_a_response_survives_the_wire(api_key: ApiKey, response: Response) -> None:
    for version in versions(api_key):
        if isinstance(response, DescribeQuorumResponse) and version < 2 and response.nodes:
            continue
        message = codec.build_response(api_key, response, {})
        assert codec.decode_response(api_key, over_the_wire(message, version), "CONTROLLER") == response


@pytest.mark.parametrize(("api_key", "response"), RESPONSES)
def test_the_short_way_gives_the_same_bytes(api_key: ApiKey, response: Response) -> None:
    """What is written straight to bytes, and what goes through a message."""
    for version in versions(api_key):
        for endpoints in (ENDPOINTS, {}, {1: Endpoint("C", "h" * 200, 65535)}):
            answer = codec.encode_response(api_key, version, response, endpoints)
            built = encode(codec.build_response(api_key, response, endpoints), version)
            assert encode_body(answer, version) == built


def test_a_successful_fetch_takes_the_short_way() -> None:
    answer = codec.encode_response(ApiKey.FETCH, 17, RESPONSES[7][1], ENDPOINTS)
    assert isinstance(answer, EncodedBody)


def other_topics() -> list[list[dict[str, object]]]:
    """Requests for another topic, another partition, none, and two topics."""
    fields: dict[str, object] = {
        "replica_epoch": 1, "replica_id": 1, "last_offset_epoch": 0, "last_offset": 0, "pre_vote": False,
        "replica_directory_id": None, "voter_directory_id": None, "leader_id": 1, "leader_epoch": 1,
        "preferred_candidates": [], "preferred_successors": [],
    }  # fmt: skip

    def topic(name: str, index: int) -> dict[str, object]:
        return {"topic_name": name, "partitions": [{"partition_index": index, **fields}]}

    ours = topic("__cluster_metadata", 0)
    return [[topic("other", 0)], [topic("__cluster_metadata", 1)], [], [ours, ours], [topic("", 0)]]


@pytest.mark.parametrize("topics", other_topics())
@pytest.mark.parametrize("api_key", [ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH])
def test_another_partition_is_an_invalid_request(api_key: ApiKey, topics: list[Any]) -> None:
    for version in versions(api_key):
        cls = request_class(api_key, version)
        entity = build(cls, superset(cls, topics))
        refusal = codec.decode_request(api_key, as_read(api_key, version, entity))
        assert isinstance(refusal, Refusal)
        answer = read_answer(api_key, version, refusal.response)
        assert (answer.error_code, answer.topics) == (ErrorCode.invalid_request, ())


def superset(cls: Any, topics: list[Any]) -> dict[str, object]:
    """`build` refuses names which no version of a struct has, so each API gets those it knows."""
    names: dict[str, tuple[set[str], set[str]]] = {
        "VoteRequest": (
            {"cluster_id", "voter_id"},
            {"replica_epoch", "replica_id", "last_offset_epoch", "last_offset", "pre_vote", "replica_directory_id",
             "voter_directory_id"},
        ),
        "BeginQuorumEpochRequest": (
            {"cluster_id", "voter_id", "leader_endpoints"},
            {"voter_directory_id", "leader_id", "leader_epoch"},
        ),
        "EndQuorumEpochRequest": (
            {"cluster_id", "leader_endpoints"},
            {"leader_id", "leader_epoch", "preferred_candidates", "preferred_successors"},
        ),
    }  # fmt: skip
    fields, partition_fields = names[cls.__name__]
    values: dict[str, object] = {"cluster_id": "c", "voter_id": 1, "leader_endpoints": []}
    values = {name: value for name, value in values.items() if name in fields}
    values["topics"] = [
        topic
        | {
            "partitions": [
                {name: item[name] for name in partition_fields | {"partition_index"}}
                for item in topic["partitions"]
            ]
        }
        for topic in topics
    ]
    return values


@pytest.mark.parametrize(
    "topic", [{"topic": "other", "topic_id": UUID(int=9)}, {"topic": "", "topic_id": None}]
)
def test_a_fetch_of_another_topic_is_an_invalid_request(topic: dict[str, object]) -> None:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}
    body = {
        "max_wait": 0,
        "min_bytes": 0,
        "topics": [topic | {"partitions": [partition]}],
        "forgotten_topics_data": [],
    }
    for version in versions(ApiKey.FETCH):
        entity = request_of(ApiKey.FETCH, version, body)
        refusal = codec.decode_request(ApiKey.FETCH, as_read(ApiKey.FETCH, version, entity))
        assert isinstance(refusal, Refusal)
        answer = read_answer(ApiKey.FETCH, version, refusal.response)
        assert (answer.error_code, answer.responses) == (ErrorCode.invalid_request, ())


def test_describing_another_partition_is_answered_for_each_of_them() -> None:
    topics = [{"topic_name": "other", "partitions": [{"partition_index": 4}, {"partition_index": 5}]}]
    for version in versions(ApiKey.DESCRIBE_QUORUM):
        entity = request_of(ApiKey.DESCRIBE_QUORUM, version, {"topics": topics})
        refusal = codec.decode_request(
            ApiKey.DESCRIBE_QUORUM, as_read(ApiKey.DESCRIBE_QUORUM, version, entity)
        )
        assert isinstance(refusal, Refusal)
        answer = read_answer(ApiKey.DESCRIBE_QUORUM, version, refusal.response)
        found = [(item.partition_index, item.error_code) for item in answer.topics[0].partitions]
        assert found == [(4, ErrorCode.unknown_topic_or_partition), (5, ErrorCode.unknown_topic_or_partition)]


@pytest.mark.parametrize("api_key", [ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH])
def test_an_answer_without_our_partition_is_the_peers_fault(api_key: ApiKey) -> None:
    empty = message_types(api_key)[1]()
    with pytest.raises(DecodeError, match="not about the metadata partition"):
        codec.decode_response(api_key, empty)
