"""Requests to peers over loopback TCP, and each way in which a peer can fail them."""

import asyncio

from kquorum.raft.adapters.kafka_codec.codec import build_response
from kquorum.raft.adapters.transport import endpoints_of
from kquorum.raft.inputs import FailureReason, RequestFailed, ResponseReceived
from kquorum.raft.messages import FetchResponse, VoteRequest, VoteResponse
from kquorum.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from kquorum.wire.messages import vote
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.raft.driver_parts import run, until
from tests.support.raft.transport_peers import FETCH, PEER, VOTE, Peer, Sender, failed, listening

PRE_VOTE = VoteRequest(
    cluster_id="c",
    replica_epoch=3,
    candidate=ReplicaKey(1),
    voter=ReplicaKey(PEER),
    last_offset=0,
    last_offset_epoch=0,
    pre_vote=True,
)


def test_a_response_comes_back_as_an_input() -> None:
    async def scenario() -> None:
        peer = Peer()
        answer = VoteResponse(leader_epoch=3, vote_granted=True)
        peer.answers[ApiKey.VOTE] = answer
        async with listening(peer) as server:
            sender = Sender(server.bound_port)
            sender.send(VOTE)
            sender.send(PRE_VOTE)
            await sender.outcome(2)
            assert sender.outcomes == [ResponseReceived(1, PEER, answer), ResponseReceived(2, PEER, answer)]
            assert len(peer.connections) == 1
            sender.transport.close()

    run(scenario())


def test_a_parked_fetch_does_not_delay_a_vote() -> None:
    async def scenario() -> None:
        peer = Peer()
        peer.answers[ApiKey.VOTE] = VoteResponse(leader_epoch=3)
        async with listening(peer) as server:
            sender = Sender(server.bound_port)
            sender.send(FETCH)
            await until(lambda: peer.held)
            sender.send(VOTE)
            assert await sender.outcome() == ResponseReceived(2, PEER, VoteResponse(leader_epoch=3))
            reply = peer.held.pop()
            records = FetchResponse(leader_id=2, leader_epoch=3, high_watermark=1, records=b"abc")
            reply(build_response(ApiKey.FETCH, records, {}))
            assert await sender.outcome(2) == ResponseReceived(1, PEER, records)
            sender.transport.close()

    run(scenario())


def test_an_absent_peer_fails_requests_and_is_found_when_it_comes() -> None:
    async def scenario() -> None:
        peer = Peer()
        peer.answers[ApiKey.VOTE] = VoteResponse(leader_epoch=3)
        async with listening(Peer()) as other:
            port = other.bound_port
        sender = Sender(port)
        sender.send(VOTE)
        assert await sender.outcome() == failed(1, FailureReason.DISCONNECTED)
        sender.send(VOTE)
        assert sender.outcomes == [failed(1, FailureReason.DISCONNECTED)], "never told before send returns"
        assert await sender.outcome(2) == failed(2, FailureReason.DISCONNECTED)
        async with listening(peer, port=port):
            await until(lambda: answered(sender))
            sender.transport.close()

    run(scenario())


def answered(sender: Sender) -> bool:
    """Ask again, as the core does after its back-off, until one request is answered."""
    if any(isinstance(outcome, ResponseReceived) for outcome in sender.outcomes):
        return True
    sender.send(VOTE)
    return False


def test_a_silent_peer_times_out_and_the_connection_is_made_again() -> None:
    async def scenario() -> None:
        peer = Peer()
        async with listening(peer) as server:
            sender = Sender(server.bound_port, request_timeout_ms=100)
            sender.send(VOTE)
            await until(lambda: peer.held)
            assert await sender.outcome() == failed(1, FailureReason.TIMED_OUT)
            peer.answers[ApiKey.VOTE] = VoteResponse(leader_epoch=3)
            sender.send(VOTE)
            assert await sender.outcome(2) == ResponseReceived(2, PEER, VoteResponse(leader_epoch=3))
            assert len(peer.connections) == 2
            sender.transport.close()

    run(scenario())


def test_a_peer_that_goes_away_fails_what_is_under_way() -> None:
    async def scenario() -> None:
        peer = Peer()
        async with listening(peer) as server:
            sender = Sender(server.bound_port)
            sender.send(VOTE)
            sender.send(FETCH)
            await until(lambda: len(peer.held) == 2)
        await sender.outcome(2)
        assert {outcome.reason for outcome in sender.outcomes if isinstance(outcome, RequestFailed)} == {
            FailureReason.DISCONNECTED
        }
        sender.transport.close()

    run(scenario())


def test_an_old_peer_is_never_sent_a_pre_vote() -> None:
    async def scenario() -> None:
        peer = Peer()
        peer.answers[ApiKey.VOTE] = VoteResponse(leader_epoch=3, vote_granted=True)
        async with listening(peer, {ApiKey.VOTE: (0, 1)}) as server:
            sender = Sender(server.bound_port)
            sender.send(PRE_VOTE)
            assert await sender.outcome() == failed(1, FailureReason.UNSUPPORTED_VERSION)
            assert peer.requests == 0
            sender.send(VOTE)
            assert isinstance(await sender.outcome(2), ResponseReceived)
            sender.send(FETCH)
            assert await sender.outcome(3) == failed(3, FailureReason.UNSUPPORTED_VERSION)
            sender.transport.close()

    run(scenario())


def test_a_peer_may_refuse_a_version_in_its_answer() -> None:
    async def scenario() -> None:
        peer = Peer()
        peer.answers[ApiKey.VOTE] = VoteResponse(error=ErrorCode.unsupported_version, is_top_level=True)
        async with listening(peer) as server:
            sender = Sender(server.bound_port)
            sender.send(PRE_VOTE)
            assert await sender.outcome() == failed(1, FailureReason.UNSUPPORTED_VERSION)
            sender.transport.close()

    run(scenario())


def test_an_answer_about_something_else_is_no_answer() -> None:
    async def scenario() -> None:
        peer = Peer()
        async with listening(peer) as server:
            sender = Sender(server.bound_port)
            sender.send(VOTE)
            await until(lambda: peer.held)
            reply = peer.held.pop()
            reply(vote.VoteResponse())
            assert await sender.outcome() == failed(1, FailureReason.DISCONNECTED)
            sender.transport.close()

    run(scenario())


def test_closing_fails_what_is_under_way_and_all_that_comes_after() -> None:
    async def scenario() -> None:
        peer = Peer()
        async with listening(peer) as server:
            sender = Sender(server.bound_port)
            sender.send(VOTE)
            await until(lambda: peer.held)
            sender.transport.close()
            sender.send(VOTE)
            await sender.outcome(2)
            assert sorted(sender.outcomes, key=lambda outcome: getattr(outcome, "correlation_id", 0)) == [
                failed(1, FailureReason.DISCONNECTED),
                failed(2, FailureReason.DISCONNECTED),
            ]
            await asyncio.sleep(0)

    run(scenario())


def test_voters_and_bootstrap_servers_have_ids_of_their_own() -> None:
    first, second = Endpoint("C", "b1", 1), Endpoint("C", "b2", 2)
    voter = Endpoint("C", "v", 3)
    voters = VoterSet.of(Voter(ReplicaKey(7), (voter,)), Voter(ReplicaKey(8)))
    assert endpoints_of(voters, [first, second]) == {7: voter, -2: first, -3: second}


def test_why_a_peer_cannot_be_reached_is_known_until_it_can() -> None:
    async def scenario() -> None:
        peer = Peer()
        peer.answers[ApiKey.VOTE] = VoteResponse(leader_epoch=3)
        async with listening(peer) as server:
            port = server.bound_port
        sender = Sender(port)
        assert sender.transport.why_unreachable(PEER) is None
        sender.send(VOTE)
        await sender.outcome()
        assert sender.transport.why_unreachable(PEER) == "Connection refused"
        async with listening(peer, port=port):
            while sender.transport.why_unreachable(PEER) is not None:
                sender.send(VOTE)
                await sender.outcome(len(sender.outcomes) + 1)
        sender.transport.close()

    run(scenario())
