"""Peers that move, leave, or are known by their endpoint alone; and what the leader asks of a voter to be."""

from typing import Any

from kquorum.network.api_versions import ServerFeatures, SupportedFeature
from kquorum.network.server import KafkaServer
from kquorum.raft.adapters.kafka_codec.codec import RAFT_APIS
from kquorum.raft.adapters.transport import KafkaTransport, endpoints_of
from kquorum.raft.inputs import FailureReason, Input, RequestFailed, ResponseReceived
from kquorum.raft.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ChangeVotersResponse,
    FetchResponse,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    VoteResponse,
)
from kquorum.raft.ready import OutboundRequest
from kquorum.raft.voters import Endpoint, ReplicaKey, VersionRange, VoterSet
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.raft.driver_parts import run, turns, until
from tests.support.raft.transport_peers import FETCH, HOST, PEER, VOTE, Peer, Sender, failed, listening

ANSWER = VoteResponse(leader_epoch=3)
CLOSED_PORT = 1  # no process listens there: binding it needs a privilege


def at(server: KafkaServer) -> Endpoint:
    return Endpoint("CONTROLLER", HOST, server.bound_port)


def test_the_requests_own_endpoint_wins_over_the_table() -> None:
    async def scenario() -> None:
        peer = Peer()
        peer.answers[ApiKey.VOTE] = ANSWER
        async with listening(peer) as server:
            sender = Sender(CLOSED_PORT)
            sender.send(VOTE, endpoint=at(server))
            assert await sender.outcome() == ResponseReceived(1, PEER, ANSWER)
            sender.send(VOTE, to=77, endpoint=at(server))
            assert await sender.outcome(2) == ResponseReceived(2, 77, ANSWER)
            sender.transport.close()

    run(scenario())


def test_a_destination_without_any_endpoint_fails_and_ends_nothing() -> None:
    async def scenario() -> None:
        sender = Sender(CLOSED_PORT)
        sender.send(VOTE, to=9)
        assert sender.outcomes == [], "never told before send returns"
        assert await sender.outcome() == RequestFailed(1, 9, FailureReason.DISCONNECTED)
        sender.transport.close()

    run(scenario())


def test_a_bootstrap_server_is_found_by_its_place_in_the_list() -> None:
    async def scenario() -> None:
        peer = Peer()
        peer.answers[ApiKey.FETCH] = FetchResponse(
            error=ErrorCode.not_leader_or_follower, leader_id=5, leader_epoch=3
        )
        async with listening(Peer()) as absent:
            gone = at(absent)
        async with listening(peer) as server:
            outcomes: list[Input] = []
            transport = KafkaTransport(
                1, endpoints_of(VoterSet({}), [gone, at(server)]), 5000, outcomes.append
            )
            transport.send(OutboundRequest(1, -2, FETCH))
            transport.send(OutboundRequest(2, -3, FETCH))
            await until(lambda: len(outcomes) == 2)
            assert RequestFailed(1, -2, FailureReason.DISCONNECTED) in outcomes
            assert ResponseReceived(2, -3, peer.answers[ApiKey.FETCH]) in outcomes
            transport.close()

    run(scenario())


def test_a_peer_that_moved_is_reached_at_its_new_place_and_left_at_the_old_one() -> None:
    async def scenario() -> None:
        old, new = Peer(), Peer()
        new.answers[ApiKey.VOTE] = ANSWER
        async with listening(old) as before, listening(new) as after:
            sender = Sender(CLOSED_PORT)
            sender.send(VOTE, endpoint=at(before))
            sender.send(FETCH, endpoint=at(before))
            await until(lambda: len(old.held) == 2)
            sender.send(VOTE, endpoint=at(after))
            await sender.outcome(2)
            assert sorted(sender.outcomes, key=repr) == sorted(
                [failed(1, FailureReason.DISCONNECTED), ResponseReceived(3, PEER, ANSWER)], key=repr
            ), "the fetch has a connection of its own, and goes on"
            assert sender.transport.open_connections == 2
            sender.send(FETCH, endpoint=at(after))
            await until(lambda: new.held)
            assert await sender.outcome(3) == failed(2, FailureReason.DISCONNECTED)
            sender.transport.close()

    run(scenario())


def test_another_name_for_the_same_place_keeps_the_connection() -> None:
    async def scenario() -> None:
        peer = Peer()
        peer.answers[ApiKey.VOTE] = ANSWER
        async with listening(peer) as server:
            sender = Sender(server.bound_port)
            sender.send(VOTE)
            sender.send(VOTE, endpoint=Endpoint("", HOST, server.bound_port))
            await sender.outcome(2)
            assert len(peer.connections) == 1
            sender.transport.close()

    run(scenario())


def test_a_connection_that_is_not_used_is_closed_and_made_again_when_needed() -> None:
    async def scenario() -> None:
        peer = Peer()
        peer.answers[ApiKey.VOTE] = ANSWER
        async with listening(peer) as server:
            sender = Sender(server.bound_port, idle_timeout_ms=40)
            sender.send(VOTE)
            await sender.outcome()
            assert sender.transport.open_connections == 1
            await until(lambda: sender.transport.open_connections == 0)
            sender.send(VOTE)
            assert await sender.outcome(2) == ResponseReceived(2, PEER, ANSWER)
            assert len(peer.connections) == 2
            await until(lambda: sender.transport.open_connections == 0)
            sender.transport.close()

    run(scenario())


def test_a_connection_in_use_stays() -> None:
    async def scenario() -> None:
        peer = Peer()
        peer.answers[ApiKey.VOTE] = ANSWER
        async with listening(peer) as server:
            sender = Sender(server.bound_port, idle_timeout_ms=500)
            other = Sender(server.bound_port, idle_timeout_ms=500)
            other.send(VOTE)
            while other.transport.open_connections:
                count = len(sender.outcomes)
                sender.send(VOTE)
                await sender.outcome(count + 1)
                await turns(1)
            assert sender.transport.open_connections == 1
            assert len(peer.connections) == 2
            sender.transport.close()
            other.transport.close()

    run(scenario())


def test_the_leaders_endpoint_in_an_answer_goes_by_the_listener_that_was_asked() -> None:
    async def scenario() -> None:
        peer = Peer()
        elsewhere = (Endpoint("ANY", "c5", 9095),)
        peer.answers[ApiKey.VOTE] = VoteResponse(leader_id=5, leader_epoch=3, leader_endpoints=elsewhere)
        async with listening(peer) as server:
            sender = Sender(server.bound_port, listener="QUORUM")
            sender.send(VOTE)
            outcome: Any = await sender.outcome()
            assert outcome.response.leader_endpoints == (Endpoint("QUORUM", "c5", 9095),)
            sender.transport.close()

    run(scenario())


def features() -> ServerFeatures:
    return ServerFeatures(supported=(SupportedFeature("kraft.version", 0, 1),))


def test_a_node_is_asked_for_its_kraft_versions_and_its_listener_answers() -> None:
    """By the way on which all others would reach it; the replica behind the listener hears nothing of it."""

    async def scenario() -> None:
        peer = Peer()
        server = KafkaServer(
            host=HOST,
            port=0,
            handler=peer.handle,
            supported=RAFT_APIS,
            listener_name="CONTROLLER",
            features=features,
        )
        await server.start()
        sender = Sender(CLOSED_PORT)
        sender.send(ApiVersionsRequest(), to=4, endpoint=at(server))
        assert await sender.outcome() == ResponseReceived(
            1, 4, ApiVersionsResponse(kraft_versions=VersionRange(0, 1))
        )
        assert peer.requests == 0
        sender.transport.close()
        await server.stop()

    run(scenario())


def test_changes_of_voters_are_sent_and_an_old_peer_is_distinguished() -> None:
    async def scenario() -> None:
        peer = Peer()
        update = UpdateRaftVoterRequest(
            cluster_id="c", current_leader_epoch=3, voter=ReplicaKey(1), endpoints=()
        )
        removal = RemoveRaftVoterRequest(cluster_id="c", voter=ReplicaKey(1))
        agreed = ChangeVotersResponse(leader_id=PEER, leader_epoch=3)
        too_low = ChangeVotersResponse(error=ErrorCode.unsupported_version, message="kraft.version is 0")
        peer.answers = {ApiKey.UPDATE_RAFT_VOTER: agreed, ApiKey.REMOVE_RAFT_VOTER: too_low}
        async with listening(peer) as server:
            sender = Sender(server.bound_port)
            sender.send(update)
            assert await sender.outcome() == ResponseReceived(1, PEER, agreed)
            sender.send(removal)
            assert await sender.outcome(2) == ResponseReceived(2, PEER, too_low), (
                "refused by the leader, not the peer"
            )
            sender.transport.close()
        old = {ApiKey.VOTE: (0, 2), ApiKey.FETCH: (12, 17)}
        async with listening(peer, old) as server:
            sender = Sender(server.bound_port)
            sender.send(update)
            assert await sender.outcome() == failed(1, FailureReason.UNSUPPORTED_VERSION)
            sender.transport.close()

    run(scenario())
