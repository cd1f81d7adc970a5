"""The serving side of the quorum's APIs: entities in, core messages on, and the answers back in the asker's version."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from network.server import Reply, RequestContext
from raft.adapters.kafka_codec.codec import RAFT_APIS, decode_request, encode_refusal, encode_response
from raft.adapters.kafka_codec.partition import Endpoints, Refusal
from raft.inputs import RequestReceived
from raft.ready import OutboundResponse

if TYPE_CHECKING:
    from kio.static.protocol import RequestPayload

__all__ = ["RAFT_APIS", "RaftRequests"]


class RaftRequests:
    """Remembers who waits for which answer. `receive` is the driver's."""

    def __init__(self, receive: Callable[[RequestReceived], None], endpoints: Endpoints) -> None:
        self._receive = receive
        self._endpoints = endpoints
        self._waiting: dict[int, tuple[Reply, int, int]] = {}
        self._last_request_id = 0

    def handle(self, context: RequestContext, entity: "RequestPayload", reply: Reply) -> None:
        api_key, version = context.header.api_key, context.header.api_version
        request = decode_request(api_key, entity)
        if isinstance(request, Refusal):
            reply(encode_refusal(api_key, version, request))
            return
        self._last_request_id += 1
        self._waiting[self._last_request_id] = (reply, api_key, version)
        self._receive(RequestReceived(self._last_request_id, request))

    def respond(self, outbound: OutboundResponse) -> None:
        reply, api_key, version = self._waiting.pop(outbound.request_id)
        reply(encode_response(api_key, version, outbound.response, self._endpoints))
