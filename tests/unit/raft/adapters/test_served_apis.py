"""Changes of the voters at a controller's listener: asked directly, or forwarded by a broker; and what it offers."""

from typing import Any
from uuid import UUID

import pytest

from kquorum.broker.apis.registry import FORWARDED_APIS
from kquorum.metadata.adapters.listener import ControllerListener, controller_listener_apis, server_features
from kquorum.metadata.features import SUPPORTED_FEATURES
from kquorum.metadata.forwarding import encode_principal
from kquorum.metadata.image.image import MetadataImage
from kquorum.network.connection import KafkaConnection
from kquorum.network.server import KafkaServer
from kquorum.raft.adapters.kafka_codec import codec
from kquorum.raft.adapters.raft_requests import RaftRequests
from kquorum.raft.inputs import Input, RequestReceived
from kquorum.raft.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    ChangeVotersRequest,
    ChangeVotersResponse,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from kquorum.raft.ready import OutboundResponse
from kquorum.raft.voters import Endpoint, ReplicaKey, VersionRange
from kquorum.wire.messages import api_versions as messages
from kquorum.wire.messages.envelope import EnvelopeRequest
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import message_types
from kquorum.wire.protocol.headers import decode_response, read_correlation_id
from tests.support.kio.frames import encode_request
from tests.support.raft.driver_parts import run

HOST = "127.0.0.1"
VOTER = ReplicaKey(4, UUID(int=4))
ENDPOINTS = (Endpoint("CONTROLLER", "c4", 9093),)
ADD = AddRaftVoterRequest(cluster_id="c", timeout_ms=900, voter=VOTER, endpoints=ENDPOINTS)
REMOVE = RemoveRaftVoterRequest(cluster_id="c", voter=VOTER)
UPDATE = UpdateRaftVoterRequest(
    cluster_id="c",
    current_leader_epoch=3,
    voter=VOTER,
    endpoints=ENDPOINTS,
    kraft_versions=VersionRange(0, 1),
)
ANSWER = ChangeVotersResponse(error=ErrorCode.request_timed_out, message="another change is pending")


class Controller:
    """A real listener and the real side for requests, in front of a replica that refuses all changes of voters."""

    def __init__(self) -> None:
        self.asked: list[ChangeVotersRequest] = []
        self._requests = RaftRequests({}, self._receive)
        listener = ControllerListener(
            controller=self, handle_raft=self._requests.handle, now_ms=lambda: 1, wake=lambda: None
        )
        self._server = KafkaServer(
            host=HOST,
            port=0,
            handler=listener.handle,
            supported=listener.supported,
            listener_name="CONTROLLER",
            features=lambda: server_features(MetadataImage(), SUPPORTED_FEATURES, 1),
        )

    def handle_request(self, *_: Any) -> None:
        raise AssertionError("a request of the quorum is not the controller's")

    def _receive(self, event: Input) -> None:
        assert isinstance(event, RequestReceived)
        assert isinstance(event.request, ChangeVotersRequest)
        self.asked.append(event.request)
        self._requests.respond(OutboundResponse(event.request_id, ANSWER))

    async def __aenter__(self) -> KafkaConnection:
        await self._server.start()
        self._connection = await KafkaConnection.connect(HOST, self._server.bound_port, "test", 5000)
        return self._connection

    async def __aexit__(self, *_: object) -> None:
        self._connection.close()
        await self._server.stop()


def versions(request: ChangeVotersRequest) -> range:
    lowest, highest = codec.RAFT_APIS[codec.api_key_of(request)]
    return range(lowest, highest + 1)


@pytest.mark.parametrize("request_", [ADD, REMOVE, UPDATE])
def test_a_controller_gives_changes_of_voters_to_its_replica(request_: ChangeVotersRequest) -> None:
    async def scenario() -> None:
        controller = Controller()
        api_key = codec.api_key_of(request_)
        async with controller as connection:
            for version in versions(request_):
                answer = await connection.send_request(codec.encode_request(request_, version), version)
                found = codec.decode_response(api_key, answer)
                assert isinstance(found, ChangeVotersResponse)
                assert found.error is ErrorCode.request_timed_out
        assert controller.asked == [request_] * len(versions(request_))

    run(scenario())


def envelope(request: ChangeVotersRequest, version: int) -> EnvelopeRequest:
    api_key = codec.api_key_of(request)
    return EnvelopeRequest(
        request_data=encode_request(api_key, version, 77, "admin", codec.encode_request(request, version)),
        request_principal=encode_principal("User:alice"),
        client_host_address=bytes([10, 1, 2, 3]),
    )


@pytest.mark.parametrize("request_", [ADD, REMOVE])
def test_what_a_broker_forwards_arrives_and_its_answer_goes_back(request_: ChangeVotersRequest) -> None:
    async def scenario() -> None:
        controller = Controller()
        api_key = codec.api_key_of(request_)
        async with controller as connection:
            for version in versions(request_):
                outer: Any = await connection.call(envelope(request_, version), 5000)
                assert outer.error_code is ErrorCode.none
                assert read_correlation_id(outer.response_data) == 77
                kind = message_types(api_key)[0]
                inner = decode_response(kind, version, outer.response_data)
                assert codec.decode_response(api_key, inner) == ANSWER
        assert controller.asked == [request_] * len(versions(request_))

    run(scenario())


def test_a_voter_corrects_its_own_entry_at_a_controller_only() -> None:
    async def scenario() -> None:
        controller = Controller()
        async with controller as connection:
            outer: Any = await connection.call(envelope(UPDATE, 0), 5000)
            assert outer.error_code is ErrorCode.invalid_request
        assert controller.asked == []

    run(scenario())


def test_who_offers_what() -> None:
    """As the `listeners` of Kafka's schemas say."""
    offered = controller_listener_apis()
    for request in (ADD, REMOVE, UPDATE):
        api_key = codec.api_key_of(request)
        assert offered[api_key] == codec.RAFT_APIS[api_key]
    assert ApiKey.API_VERSIONS not in offered
    assert {ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER, ApiKey.DESCRIBE_QUORUM} <= FORWARDED_APIS
    assert ApiKey.UPDATE_RAFT_VOTER not in FORWARDED_APIS


def test_a_controller_tells_which_kraft_versions_it_supports_and_which_is_in_force() -> None:
    async def scenario() -> None:
        async with Controller() as connection:
            version = codec.CALLED_APIS[ApiKey.API_VERSIONS][1]
            question = messages.ApiVersionsRequest(client_software_name="t", client_software_version="1")
            answer = await connection.send_request(question, version)
            assert codec.decode_response(ApiKey.API_VERSIONS, answer) == ApiVersionsResponse(
                kraft_versions=VersionRange(0, 1)
            )
            finalized = {item.name: item.max_version_level for item in answer.finalized_features}
            assert finalized["kraft.version"] == 1
            assert codec.api_key_of(ApiVersionsRequest()) not in controller_listener_apis()

    run(scenario())
