"""From a frame to a handler: header, version, body, and who may ask."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from network.authentication import BEFORE_AUTHENTICATION, SASL_APIS, Authentication
from network.replies import PendingReply, ReplyQueue
from network.requests import RequestContext
from network.security.sasl_session import SaslAnswer
from network.server_state import Peer, ServerState
from wire.codec import decode_bounded
from wire.errors import DecodeError
from wire.protocol.apis import ApiKey, api_name, api_version
from wire.protocol.entities import build
from wire.protocol.headers import RequestHeader, UnsupportedRequest, decode_request_header

if TYPE_CHECKING:
    from kio.static.protocol import RequestPayload

_NO_VERSION = (0, -1)
# What strangers may ask has no arrays; a newer client may add some tagged fields.
_ELEMENTS_OF_STRANGERS = 64
# Of a connection before authentication. SCRAM takes four, and Kafka has no patience for a second ApiVersions.
_REQUESTS_OF_STRANGERS = 16
_LONGEST_CLIENT_ID_IN_LOG = 64


class Refused(Exception):
    """The request ends its connection; the words are for the log."""


class RequestServing:
    """Of one connection. `on_sasl` gets the answers to SASL requests, with their replies."""

    __slots__ = (
        "_authentication",
        "_is_gated",
        "_now_s",
        "_on_sasl",
        "_peer",
        "_replies",
        "_requests_of_stranger",
        "_state",
    )

    def __init__(
        self,
        state: ServerState,
        replies: ReplyQueue,
        peer: Peer,
        authentication: Authentication,
        now_s: Callable[[], float],
        on_sasl: Callable[[SaslAnswer, Callable[[], None]], None],
    ) -> None:
        self._state = state
        self._replies = replies
        self._peer = peer
        self._authentication = authentication
        self._is_gated = authentication.principal is None
        self._requests_of_stranger = 0
        self._now_s = now_s
        self._on_sasl = on_sasl

    def serve(self, frame: bytes, received_at_s: float) -> None:
        """Raises DecodeError, Refused, and whatever a handler raises by mistake."""
        state = self._state
        if self._is_gated and self._authentication.principal is None:
            self._count_stranger()
        try:
            header, position = decode_request_header(frame)
        except UnsupportedRequest as error:
            self._serve_unsupported(error.header)
            return
        lowest, highest = state.supported.get(header.api_key, _NO_VERSION)
        if not lowest <= header.api_version <= highest:
            self._serve_unsupported(header)
            return
        now_s = self._now_s()
        if self._is_gated and not self._authentication.may_ask(header.api_key, now_s):
            self._refuse_unauthenticated(header)
        api = api_version(header.api_key, header.api_version)
        # Bytes after the body are passed over, as Kafka's brokers do.
        request, _ = decode_bounded(api.request_class, frame, position, self._max_elements(header.api_key))
        reply = self._replies.open(api, header.correlation_id, received_at_s, len(frame))
        if api.api_key == ApiKey.API_VERSIONS:
            reply(state.api_versions.answer(request, state.features()))
        elif api.api_key in SASL_APIS:
            self._serve_sasl(header, request, reply, now_s)
        else:
            state.handler(self._context(header, frame, now_s - received_at_s), request, reply)

    def _count_stranger(self) -> None:
        self._requests_of_stranger += 1
        if self._requests_of_stranger > _REQUESTS_OF_STRANGERS:
            self._state.counters.unauthenticated_connections_closed += 1
            raise Refused(f"it has not authenticated within {_REQUESTS_OF_STRANGERS} requests")

    def _max_elements(self, api_key: int) -> int:
        if api_key in BEFORE_AUTHENTICATION:
            return _ELEMENTS_OF_STRANGERS
        return self._state.limits.max_elements(api_key)

    def _context(self, header: RequestHeader, frame: bytes, waited_s: float) -> RequestContext:
        authentication = self._authentication
        assert authentication.principal is not None, "the gate lets nobody through who is not authenticated"
        return RequestContext(
            self._peer.connection_id,
            self._peer.host,
            self._state.listener_name,
            header,
            authentication.principal,
            frame,
            round(waited_s * 1000),
            self._state.security.protocol,
            authentication.is_token_authenticated,
            self._state.limits.max_elements,
        )

    def _serve_sasl(
        self, header: RequestHeader, request: "RequestPayload", reply: PendingReply, now_s: float
    ) -> None:
        answer = self._authentication.handle(header, request, now_s)
        entity = build(api_version(header.api_key, header.api_version).response_class, answer.values)
        self._on_sasl(answer, lambda: reply(entity))

    def _serve_unsupported(self, header: RequestHeader) -> None:
        self._state.counters.unsupported_requests += 1
        if header.api_key == ApiKey.API_VERSIONS:
            answer = self._state.api_versions.unsupported_version(self._state.features())
            api = api_version(ApiKey.API_VERSIONS, 0)
            self._replies.open(api, header.correlation_id, self._now_s(), 0)(answer)
            return
        raise Refused(f"{header_text(header)} is not offered here")

    def _refuse_unauthenticated(self, header: RequestHeader) -> None:
        if self._authentication.principal is None:
            self._state.counters.unauthenticated_connections_closed += 1
            raise Refused(f"{header_text(header)} came before authentication")
        self._state.counters.expired_authentications_closed += 1
        raise Refused(
            f"{header_text(header)} came after the session had expired without authenticating again"
        )


def request_text(frame: bytes) -> str:
    try:
        return header_text(decode_request_header(frame)[0])
    except DecodeError:
        return "a request"


def header_text(header: RequestHeader) -> str:
    name = header.client_id
    if name is not None and len(name) > _LONGEST_CLIENT_ID_IN_LOG:
        name = f"{name[:_LONGEST_CLIENT_ID_IN_LOG]}..."
    client = "without a client id" if name is None else f"of client {name!r}"
    return f"{api_name(header.api_key)} version {header.api_version} {client}"
