from dataclasses import replace
from typing import Any
from uuid import UUID

from kquorum.network.requests import RequestContext
from kquorum.raft.adapters.kafka_codec import codec
from kquorum.raft.adapters.raft_requests import RaftRequests
from kquorum.raft.inputs import Input, RequestReceived
from kquorum.raft.messages import (
    AddRaftVoterRequest,
    ChangeVotersResponse,
    DescribeQuorumRequest,
    FetchRequest,
    FetchResponse,
    RemoveRaftVoterRequest,
    Request,
    UpdateRaftVoterRequest,
    VoteRequest,
    VoteResponse,
)
from kquorum.raft.ready import OutboundResponse
from kquorum.raft.voters import Endpoint, ReplicaKey
from kquorum.wire.message_codec import decode
from kquorum.wire.messages import fetch
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.update_raft_voter import UpdateRaftVoterResponse
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import EncodedBody, RequestHeader
from tests.support.api_calls import read_answer, request_of

VOTE = VoteRequest(
    cluster_id="c",
    replica_epoch=3,
    candidate=ReplicaKey(1),
    voter=ReplicaKey(2),
    last_offset=0,
    last_offset_epoch=0,
)
FETCH = FetchRequest(
    cluster_id="c",
    replica=ReplicaKey(1),
    current_leader_epoch=3,
    fetch_offset=0,
    last_fetched_epoch=0,
    max_wait_ms=500,
    max_bytes=1000,
    high_watermark=-1,
)


class Listener:
    """Stands for the server, and for the driver behind the requests."""

    def __init__(self) -> None:
        self.inputs: list[Input] = []
        self.requests = RaftRequests({1: Endpoint("CONTROLLER", "c1", 9093)}, self.inputs.append)

    def ask(self, api_key: ApiKey, version: int, request: Any) -> list[Any]:
        """The replies to one request, as they come."""
        replies: list[Any] = []
        context = RequestContext(1, "127.0.0.1", "CONTROLLER", RequestHeader(api_key, version, 5, "x"))
        self.requests.handle(context, request, replies.append)
        return replies


def test_requests_get_ids_of_their_own_and_answers_in_the_version_asked() -> None:
    listener = Listener()
    old = listener.ask(ApiKey.VOTE, 0, codec.encode_request(VOTE, 0))
    new = listener.ask(ApiKey.VOTE, 2, codec.encode_request(VOTE, 2))
    first, second = listener.inputs
    assert isinstance(first, RequestReceived)
    assert isinstance(second, RequestReceived)
    assert second == RequestReceived(second.request_id, VOTE)
    answer = VoteResponse(leader_id=1, leader_epoch=3)
    listener.requests.respond(OutboundResponse(second.request_id, answer))
    assert old == []
    listener.requests.respond(OutboundResponse(first.request_id, answer))
    oldest, newest = read_answer(ApiKey.VOTE, 0, old[0]), read_answer(ApiKey.VOTE, 2, new[0])
    assert (oldest.node_endpoints, newest.node_endpoints[0].host) == ((), "c1")
    assert listener.requests._open == {}


def test_a_fetch_is_answered_with_bytes_that_a_client_reads() -> None:
    listener = Listener()
    replies = listener.ask(ApiKey.FETCH, 17, codec.encode_request(FETCH, 17))
    (received,) = listener.inputs
    assert isinstance(received, RequestReceived)
    answer = FetchResponse(leader_id=1, leader_epoch=3, high_watermark=9, log_start_offset=0, records=b"abc")
    listener.requests.respond(OutboundResponse(received.request_id, answer))
    (body,) = replies
    assert isinstance(body, EncodedBody)
    message, end = decode(fetch.FetchResponse, 17, body.data)
    assert end == len(body.data)
    expected = replace(answer, leader_endpoints=(Endpoint("CONTROLLER", "c1", 9093),))
    assert codec.decode_response(ApiKey.FETCH, message, "CONTROLLER") == expected


def test_the_leaders_endpoint_is_that_of_the_requests_listener() -> None:
    listener = Listener()
    replies = listener.ask(ApiKey.VOTE, 2, codec.encode_request(VOTE, 2))
    (received,) = listener.inputs
    assert isinstance(received, RequestReceived)
    places = (Endpoint("INTERNAL", "c1.internal", 9094), Endpoint("CONTROLLER", "c1.moved", 9095))
    answer = VoteResponse(leader_id=1, leader_epoch=3, leader_endpoints=places)
    listener.requests.respond(OutboundResponse(received.request_id, answer))
    (node,) = replies[0].node_endpoints
    assert (node.node_id, node.host, node.port) == (1, "c1.moved", 9095)


def test_changes_of_voters_come_in_and_are_answered() -> None:
    voter = ReplicaKey(4, UUID(int=4))
    requests: list[tuple[ApiKey, Request]] = [
        (
            ApiKey.ADD_RAFT_VOTER,
            AddRaftVoterRequest(
                cluster_id="c", timeout_ms=9, voter=voter, endpoints=(Endpoint("CONTROLLER", "c4", 9093),)
            ),
        ),
        (ApiKey.REMOVE_RAFT_VOTER, RemoveRaftVoterRequest(cluster_id="c", voter=voter)),
        (
            ApiKey.UPDATE_RAFT_VOTER,
            UpdateRaftVoterRequest(cluster_id="c", current_leader_epoch=3, voter=voter, endpoints=()),
        ),
    ]
    listener = Listener()
    for api_key, request in requests:
        replies = listener.ask(api_key, 0, codec.encode_request(request, 0))
        received = listener.inputs[-1]
        assert isinstance(received, RequestReceived)
        assert received.request == request
        refused = ChangeVotersResponse(error=ErrorCode.request_timed_out, message="another change is pending")
        listener.requests.respond(OutboundResponse(received.request_id, refused))
        assert replies[0].error_code is ErrorCode.request_timed_out
        if not isinstance(replies[0], UpdateRaftVoterResponse):
            assert replies[0].error_message == refused.message


def test_what_is_not_ours_is_answered_without_asking_the_core() -> None:
    listener = Listener()
    topics = [{"topic_name": "other", "partitions": [{"partition_index": 0}]}]
    request = request_of(ApiKey.DESCRIBE_QUORUM, 2, {"topics": topics})
    (answer,) = listener.ask(ApiKey.DESCRIBE_QUORUM, 2, request)
    assert answer.topics[0].partitions[0].error_code is ErrorCode.unknown_topic_or_partition
    assert listener.inputs == []


def test_closing_hangs_up_on_all_who_wait() -> None:
    listener = Listener()
    request = codec.encode_request(DescribeQuorumRequest(), 1)
    waiting = [listener.ask(ApiKey.DESCRIBE_QUORUM, 1, request) for _ in range(2)]
    listener.requests.close()
    assert waiting == [[None], [None]]
    assert listener.requests._open == {}
