"""What a handler gets and gives."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kquorum.network.limits import ServerLimits
from kquorum.network.request_budget import AnswerInMaking
from kquorum.wire.message_schema import Request, Response
from kquorum.wire.protocol.headers import EncodedBody, NoAnswer, RequestHeader

ANONYMOUS = "User:ANONYMOUS"
WhenGone = Callable[[Callable[[], object]], Callable[[], None]]


def _nothing_to_forget() -> None:
    """A request of our own has no connection that may go."""


_MAX_ELEMENTS: Final = ServerLimits().max_elements


@dataclass(slots=True, init=False)
class RequestContext:
    """Where a request came from. `connection_id` is unique within one server's life. Handlers do not change it; the
    connection sets `elements`, `waited_ms` and `park` when it has read the header or body.

    `frame` is the request as it came, header and body, for a handler that passes it on; empty for a request of our own.
    `waited_ms` is how long it lay here before it was served. `security_protocol` is Kafka's number (0 PLAINTEXT,
    1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL). `max_elements` tells by api key how many elements this listener reads, for a
    request that is inside of this one; `elements` is how many this one has. `is_gone` says whether the connection is
    gone, so that an answer goes nowhere; `when_gone` calls back once when that happens, unless what it returns is
    called before. An answer in slices tells `making` how much memory it takes, and asks it for room. `throttle` keeps
    the connection from being read from, and its next requests from being served, for so many ms from now on; answers
    go out meanwhile (KIP-219). A handler calls `park` when the request waits for an event: a thousand that wait keep no
    other from being served.
    """

    connection_id: int
    peer_host: str
    listener_name: str
    header: RequestHeader
    principal: str
    frame: bytes
    waited_ms: int
    security_protocol: int
    is_token_authenticated: bool
    max_elements: Callable[[int], int] = field(compare=False, repr=False)
    elements: int
    is_gone: Callable[[], bool] = field(compare=False, repr=False)
    when_gone: WhenGone = field(compare=False, repr=False)
    making: AnswerInMaking = field(compare=False, repr=False)
    throttle: Callable[[int], None] = field(compare=False, repr=False)
    park: Callable[[], None] = field(compare=False, repr=False)

    def __init__(
        self,
        connection_id: int,
        peer_host: str,
        listener_name: str,
        header: RequestHeader,
        principal: str = ANONYMOUS,
        frame: bytes = b"",
        waited_ms: int = 0,
        security_protocol: int = 0,
        is_token_authenticated: bool = False,
        max_elements: Callable[[int], int] = _MAX_ELEMENTS,
        elements: int = 0,
        is_gone: Callable[[], bool] = lambda: False,
        when_gone: WhenGone = lambda _call: _nothing_to_forget,
        making: AnswerInMaking | None = None,
        throttle: Callable[[int], None] = lambda _ms: None,
        park: Callable[[], None] = lambda: None,
    ) -> None:
        self.connection_id = connection_id
        self.peer_host = peer_host
        self.listener_name = listener_name
        self.header = header
        self.principal = principal
        self.frame = frame
        self.waited_ms = waited_ms
        self.security_protocol = security_protocol
        self.is_token_authenticated = is_token_authenticated
        self.max_elements = max_elements
        self.elements = elements
        self.is_gone = is_gone
        self.when_gone = when_gone
        self.making = AnswerInMaking() if making is None else making
        self.throttle = throttle
        self.park = park


# Called once for each request, from the loop's thread, now or later. A Response is encoded in the request's version, an
# EncodedBody is sent as it is, and with NO_ANSWER nothing is sent. None closes the connection, after the replies to the
# requests before this one.
Reply = Callable[[Response | EncodedBody | NoAnswer | None], None]
# The body is the message of the API that the header names.
Handler = Callable[[RequestContext, Request[Response], Reply], None]
# Called before the body is read, which may be long: what it answers refuses the request, None lets it pass.
Admission = Callable[[RequestContext], Response | EncodedBody | None]


def admit_all(_context: RequestContext) -> None:
    """The admission of a listener whose handler judges for itself."""
