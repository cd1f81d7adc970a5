"""A broker whose request reaches a controller that no longer leads asks the leader, whichever error it gets."""

from collections.abc import Callable
from typing import Any

import pytest

from kquorum.metadata.adapters.controller_channel import ControllerAddress
from kquorum.metadata.controller.refusals import refusal
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.controller_apis import REPLICAS_APIS
from kquorum.network.requests import Reply, RequestContext
from kquorum.network.server import KafkaServer
from kquorum.raft.adapters.kafka_codec import codec
from kquorum.raft.messages import AddRaftVoterRequest, DescribeQuorumRequest, RemoveRaftVoterRequest, Request
from kquorum.raft.voters import Endpoint, ReplicaKey
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import decode_request_header, encode_body
from tests.support.api_calls import read_answer, response_of
from tests.support.broker.listening_broker import broker
from tests.support.kio.classes import response_class
from tests.support.kio.codec import decode
from tests.support.kio.entities import build
from tests.support.kio.frames import encode_response
from tests.support.running_controllers import run

VOTER = ReplicaKey(4)
REQUESTS: dict[ApiKey, Request] = {
    ApiKey.DESCRIBE_QUORUM: DescribeQuorumRequest(),
    ApiKey.ADD_RAFT_VOTER: AddRaftVoterRequest(
        cluster_id="c", timeout_ms=900, voter=VOTER, endpoints=(Endpoint("CONTROLLER", "c4", 9093),)
    ),
    ApiKey.REMOVE_RAFT_VOTER: RemoveRaftVoterRequest(cluster_id="c", voter=VOTER),
}


class Envelopes:
    """A controller that answers each Envelope with `answer`, made of the api key and version inside."""

    def __init__(self, answer: Callable[[ApiKey, int], Any | ErrorCode]) -> None:
        self._answer = answer
        self.asked: list[ApiKey] = []
        self.server = KafkaServer(
            host="127.0.0.1",
            port=0,
            handler=self._handle,
            supported={ApiKey.ENVELOPE: (0, 0)},
            listener_name="CONTROLLER",
        )

    def _handle(self, _context: RequestContext, envelope: Any, reply: Reply) -> None:
        header, _ = decode_request_header(envelope.request_data)
        api_key = ApiKey(header.api_key)
        self.asked.append(api_key)
        answer = self._answer(api_key, header.api_version)
        values: dict[str, Any] = {"error_code": ErrorCode.none}
        if isinstance(answer, ErrorCode):
            values = {"error_code": answer, "response_data": None}
        else:
            values["response_data"] = encode_response(
                api_key, header.api_version, header.correlation_id, answer
            )
        reply(response_of(ApiKey.ENVELOPE, 0, values))

    def address(self, node_id: int) -> ControllerAddress:
        return ControllerAddress(node_id, "127.0.0.1", self.server.bound_port)


def said(api_key: ApiKey, version: int, error: ErrorCode) -> Any:
    """By the replica: DescribeQuorum's error stands beside the partition, as Kafka's does."""
    cls = response_class(api_key, version)
    if api_key is not ApiKey.DESCRIBE_QUORUM:
        asked = ControllerRequest(api_key=api_key, api_version=version, body=None)
        return decode(cls, encode_body(refusal(asked, ApiError(error)), version))[0]
    partition = {
        "partition_index": 0,
        "error_code": error,
        "error_message": None,
        "leader_id": -1,
        "leader_epoch": 3,
        "high_watermark": -1,
        "current_voters": (),
        "observers": (),
    }
    topic = {"topic_name": "__cluster_metadata", "partitions": [partition]}
    return build(cls, {"error_code": ErrorCode.none, "error_message": None, "topics": [topic], "nodes": ()})


@pytest.mark.parametrize("api_key", sorted(REPLICAS_APIS))
@pytest.mark.parametrize("is_wrapped", [True, False])
def test_the_leader_is_asked_when_a_standby_has_answered(api_key: ApiKey, is_wrapped: bool) -> None:
    """An earlier version wraps the replica's answer, as Kafka's does that of a change of the voters."""

    def refuse(asked: ApiKey, version: int) -> Any | ErrorCode:
        return (
            said(asked, version, ErrorCode.not_leader_or_follower) if is_wrapped else ErrorCode.not_controller
        )

    async def work() -> None:
        standby = Envelopes(refuse)
        leader = Envelopes(lambda asked, version: said(asked, version, ErrorCode.none))
        await standby.server.start()
        await leader.server.start()

        def find() -> ControllerAddress:
            """The broker's replica hears of the new leader while the standby is asked."""
            return leader.address(2) if standby.asked else standby.address(1)

        try:
            async with broker(find) as node:
                version = codec.RAFT_APIS[api_key][1]
                request = codec.encode_request(REQUESTS[api_key], version)
                answer = await node.client.send_request(request, version)
                assert answer == read_answer(api_key, version, said(api_key, version, ErrorCode.none))
            assert (standby.asked, leader.asked) == ([api_key], [api_key])
        finally:
            await standby.server.stop()
            await leader.server.stop()

    run(work())
