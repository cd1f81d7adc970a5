"""From a frame to a handler: header, version, body, and the permission to ask."""

from collections.abc import Callable
from dataclasses import dataclass

from kquorum.network.aside import ELEMENTS_READ_IN_LOOP, is_long_to_read, is_nearly_all_bytes
from kquorum.network.authentication import BEFORE_AUTHENTICATION, Authentication
from kquorum.network.replies import PendingReply, ReplyQueue, nothing
from kquorum.network.request_budget import AnswerInMaking
from kquorum.network.requests import RequestContext
from kquorum.network.security.sasl_session import SaslAnswer
from kquorum.network.server_state import Claim, Peer, ServerState
from kquorum.network.turns import goes_first
from kquorum.wire.errors import DecodeError, TooManyElements
from kquorum.wire.message_schema import Request, Response
from kquorum.wire.messages.api_versions import ApiVersionsRequest
from kquorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kquorum.wire.messages.sasl_handshake import SaslHandshakeRequest
from kquorum.wire.protocol.apis import ApiKey, ApiVersion, api_name, api_version
from kquorum.wire.protocol.bodies import read_request
from kquorum.wire.protocol.headers import RequestHeader, UnsupportedRequest, decode_request_header

_NO_VERSION = (0, -1)
# Pre-authentication requests contain no arrays; a newer client may add some tagged fields.
_ELEMENTS_BEFORE_LOGIN = 64
# Of a connection before authentication. SCRAM takes four, and Kafka has no patience for a second ApiVersions.
_REQUESTS_BEFORE_LOGIN = 16
_LONGEST_CLIENT_ID_IN_LOG = 64
# About what an element of an array takes in memory when it is read; it may have been a single byte.
_ELEMENT_BYTES = 250


class Refused(Exception):
    """The request ends its connection; the words are for the log."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A request that is too long to be read in the loop: `read` is for another thread, then `go_on` for the loop with
    what it answered. Until one of the two has failed or `go_on` has been called, `reply` is owed."""

    read: Callable[[], tuple[Request[Response], int]]
    go_on: Callable[[Request[Response], int], None]
    reply: PendingReply


class RequestServing:
    """Of one connection. `on_sasl` gets the answers to SASL requests, with their replies; `throttle` mutes the
    connection for some ms."""

    __slots__ = (
        "_authentication",
        "_is_gated",
        "_now_s",
        "_on_sasl",
        "_peer",
        "_replies",
        "_requests_before_login",
        "_state",
        "_throttle",
        "claim",
    )

    def __init__(
        self,
        state: ServerState,
        replies: ReplyQueue,
        peer: Peer,
        authentication: Authentication,
        now_s: Callable[[], float],
        on_sasl: Callable[[SaslAnswer, Callable[[], None]], None],
        throttle: Callable[[int], None],
    ) -> None:
        self._state = state
        self._replies = replies
        self._peer = peer
        self._authentication = authentication
        self._is_gated = authentication.principal is None
        self._requests_before_login = 0
        # The weightiest request that was admitted and could be read.
        self.claim = Claim.NOTHING_ASKED
        self._now_s = now_s
        self._on_sasl = on_sasl
        self._throttle = throttle

    def serve(self, frame: bytes, received_at_s: float) -> Reading | None:
        """A long request is only begun: the next one is not to be served before it is read.

        Raises DecodeError, Refused, and whatever a handler raises by mistake.
        """
        state = self._state
        if self._is_gated and self._authentication.principal is None:
            self._count_stranger()
        try:
            header, position = decode_request_header(frame, self.reads)
        except UnsupportedRequest as error:
            refused = error.header
            if self._offers(refused.api_key, refused.api_version):
                self._refuse_unauthenticated(refused)
            self._serve_unsupported(refused)
            return None
        now_s = self._now_s()
        if self._is_gated and not self._authentication.may_ask(header.api_key, now_s):
            self._refuse_unauthenticated(header)
        if len(frame) > (most := state.limits.max_bytes(header.api_key)):
            raise Refused(f"{header_text(header)} has {len(frame)} bytes; at most {most} are read of it")
        api = api_version(header.api_key, header.api_version)
        if api.api_key in BEFORE_AUTHENTICATION:
            self._serve_stranger(header, api, frame, position, received_at_s)
            return None
        context = self._context(header, frame, now_s - received_at_s)
        refusal = state.admission(context)
        if refusal is not None:
            self._open(context, api, received_at_s)(refusal)
            return None
        most_elements = state.limits.max_elements(header.api_key)
        read_here = _read_here(frame, api, position, most_elements)
        if read_here is not None:
            request, context.elements = read_here
            self._note_claim(frame)
            reply = self._open(context, api, received_at_s)
            if context.elements:
                reply.weigh_more(context.elements * _ELEMENT_BYTES)
            state.handler(context, request, reply)
            return None

        def read() -> tuple[Request[Response], int]:
            return read_request(api.api_key, api.version, frame, position, most_elements)

        reply = self._open(context, api, received_at_s)

        def go_on(request: Request[Response], elements: int) -> None:
            self._note_claim(frame)
            reply.weigh_more(elements * _ELEMENT_BYTES)
            context.elements = elements
            context.waited_ms = round((self._now_s() - received_at_s) * 1000)
            state.handler(context, request, reply)

        return Reading(read, go_on, reply)

    def end(self) -> None:
        """The connection is gone: refer to it no more."""
        self._on_sasl = self._throttle = nothing

    def _note_claim(self, frame: bytes) -> None:
        if self.claim is not Claim.NODE:
            self.claim = Claim.NODE if goes_first(frame) else Claim.CLIENT

    def reads(self, api_key: int, version: int) -> bool:
        """Whether more than the header's beginning is read of such requests: only of what is offered, and open to the
        peer. What is refused in any case is not imported for it."""
        is_open = self._authentication.principal is not None or api_key in BEFORE_AUTHENTICATION
        return is_open and self._offers(api_key, version)

    def _offers(self, api_key: int, version: int) -> bool:
        lowest, highest = self._state.supported.get(api_key, _NO_VERSION)
        return lowest <= version <= highest

    def _open(self, context: RequestContext, api: ApiVersion, received_at_s: float) -> PendingReply:
        frame, correlation_id = context.frame, context.header.correlation_id
        reply = self._replies.open(
            api, correlation_id, received_at_s, len(frame), goes_first=goes_first(frame)
        )

        def park() -> None:
            context.frame = b""
            reply.park()

        context.park = park
        return reply

    def _serve_stranger(
        self, header: RequestHeader, api: ApiVersion, frame: bytes, position: int, received_at_s: float
    ) -> None:
        """Pre-authentication requests are read in the loop: they are short and contain no arrays."""
        request, _ = read_request(api.api_key, api.version, frame, position, _ELEMENTS_BEFORE_LOGIN)
        reply = self._replies.open(api, header.correlation_id, received_at_s, len(frame))
        if isinstance(request, ApiVersionsRequest):
            reply(self._state.api_versions.answer(request, api.version, self._state.features()))
        else:
            assert isinstance(request, SaslHandshakeRequest | SaslAuthenticateRequest)
            self._serve_sasl(header, request, reply, self._now_s())

    def _count_stranger(self) -> None:
        self._requests_before_login += 1
        if self._requests_before_login > _REQUESTS_BEFORE_LOGIN:
            self._state.counters.unauthenticated_connections_closed += 1
            raise Refused(f"it has not authenticated within {_REQUESTS_BEFORE_LOGIN} requests")

    def _context(self, header: RequestHeader, frame: bytes, waited_s: float) -> RequestContext:
        authentication = self._authentication
        assert authentication.principal is not None, "only authenticated clients get here"
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
            is_gone=self._is_gone,
            when_gone=self._replies.when_closed,
            making=AnswerInMaking(self._state.shared.budget, self._peer.host),
            throttle=self._throttle,
        )

    def _is_gone(self) -> bool:
        return self._replies.closed

    def _serve_sasl(
        self,
        header: RequestHeader,
        request: SaslHandshakeRequest | SaslAuthenticateRequest,
        reply: PendingReply,
        now_s: float,
    ) -> None:
        answer = self._authentication.handle(header, request, now_s)
        self._on_sasl(answer, lambda: reply(answer.response))

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


def _read_here(
    frame: bytes, api: ApiVersion, position: int, most_elements: int
) -> tuple[Request[Response], int] | None:
    """The body and the number of its elements; None if it takes long to read. Raises DecodeError."""
    if not is_long_to_read(frame):
        return read_request(api.api_key, api.version, frame, position, most_elements)
    if not is_nearly_all_bytes(frame):
        return None
    try:
        return read_request(
            api.api_key, api.version, frame, position, min(most_elements, ELEMENTS_READ_IN_LOOP)
        )
    except TooManyElements:
        return None


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
