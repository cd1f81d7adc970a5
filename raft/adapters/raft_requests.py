"""The quorum's APIs on the listening side: requests become inputs, and the core's answers become replies."""

from collections.abc import Callable
from dataclasses import replace

from kquorum.network.requests import Reply, RequestContext
from kquorum.raft.adapters.driver_ports import Receive
from kquorum.raft.adapters.kafka_codec.codec import KafkaRequest, decode_request, encode_response
from kquorum.raft.adapters.kafka_codec.partition import Endpoints, Refusal
from kquorum.raft.inputs import RequestReceived
from kquorum.raft.messages import DescribeQuorumResponse, FetchRequest
from kquorum.raft.ready import OutboundResponse
from kquorum.raft.voters import ReplicaKey


class RaftRequests:
    """Satisfies raft.adapters.driver_ports.Responder.

    A parked fetch may be answered long after its connection is gone; its reply then goes nowhere.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        receive: Receive,
        on_annotation: Callable[[ReplicaKey, bytes], None] = lambda _replica, _annotation: None,
        quorum_annotation: Callable[[], bytes] = lambda: b"",
    ) -> None:
        """`receive` is the driver's; `endpoints` says where a leader listens whom the core has no endpoint for;
        `on_annotation` gets what a replica's Fetch carries, if anything, and `quorum_annotation` is what the leader
        adds to its answer to DescribeQuorum."""
        self._endpoints = endpoints
        self._receive = receive
        self._on_annotation = on_annotation
        self._quorum_annotation = quorum_annotation
        self._last_request_id = 0
        self._open: dict[int, tuple[Reply, int, int, str]] = {}
        self._is_closed = False

    def handle(self, context: RequestContext, body: KafkaRequest, reply: Reply) -> None:
        """Take a request of one of `RAFT_APIS`; `reply` is called now or later."""
        if self._is_closed:
            reply(None)
            return
        api_key, version = context.header.api_key, context.header.api_version
        request = decode_request(api_key, body)
        if isinstance(request, Refusal):
            reply(request.response)
            return
        if isinstance(request, FetchRequest) and request.annotation:
            self._on_annotation(request.replica, request.annotation)
        self._last_request_id += 1
        self._open[self._last_request_id] = (reply, api_key, version, context.listener_name)
        self._receive(RequestReceived(self._last_request_id, request))

    def respond(self, response: OutboundResponse) -> None:
        reply, api_key, version, listener = self._open.pop(response.request_id)
        message = response.response
        if isinstance(message, DescribeQuorumResponse) and not message.error.value:
            message = replace(message, annotation=self._quorum_annotation())
        reply(encode_response(api_key, version, message, self._endpoints, listener))

    def close(self) -> None:
        """Close the connections of all who still wait; the driver has ended and will not answer them."""
        self._is_closed = True
        waiting, self._open = self._open, {}
        for reply, *_ in waiting.values():
            reply(None)
