"""The replies that one connection still owes, in the order of their requests (Kafka's protocol guide)."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from kquorum.wire.message_schema import Response
from kquorum.wire.protocol.apis import ApiVersion
from kquorum.wire.protocol.headers import EncodedBody, NoAnswer, encode_response_frame

Frame = Sequence[bytes | memoryview]
# The connection is to be closed in this reply's place.
CLOSING: Final[Frame] = ()
# The request gets no reply; those behind it are served on.
_NOTHING: Final[Frame] = (b"",)


def nothing(*_arguments: object) -> None:
    """In the place of a closed connection's methods, so that its parts do not refer to it, and it is freed."""


class PendingReply:
    """The Reply of one request: a callable that encodes the answer, once, when it comes.

    `frame` is None until then, and its pieces after that; CLOSING means that the connection is to be closed in this
    reply's place.
    """

    __slots__ = (
        "_api",
        "_correlation_id",
        "_goes_first",
        "_is_parked",
        "_queue",
        "frame",
        "received_at_s",
        "request_bytes",
        "size",
        "when_answered",
    )

    def __init__(
        self,
        queue: "ReplyQueue",
        api: ApiVersion,
        correlation_id: int,
        received_at_s: float,
        request_bytes: int,
        goes_first: bool,
    ) -> None:
        self._queue = queue
        self._goes_first = goes_first
        self._is_parked = False
        self._api = api
        self._correlation_id = correlation_id
        self.received_at_s = received_at_s
        self.request_bytes = request_bytes
        self.frame: Frame | None = None
        self.size = 0
        # Called once, before the answer is encoded.
        self.when_answered: Callable[[], None] | None = None

    def __call__(self, answer: Response | EncodedBody | NoAnswer | None) -> None:
        assert self.frame is None, f"{self._api} was answered twice"
        queue = self._queue
        queue.request_bytes -= self.request_bytes
        queue.unanswered -= 1
        queue.unanswered_first -= self._goes_first
        if self._is_parked:
            queue.parked -= 1
            queue.parked_first -= self._goes_first
        if self.when_answered is not None:
            self.when_answered()
        if queue.closed:
            self.frame = CLOSING
            queue.on_answer()
            return
        try:
            self.frame = CLOSING if answer is None else self._encode(answer)
        except Exception as error:  # noqa: BLE001 - the boundary of answering code; logged with its traceback
            # The fault is in the answering code; it must not propagate into the code that completed the request.
            self.frame = CLOSING
            queue.on_failure(str(self._api), error)
        self.size = sum(map(len, self.frame))
        queue.held_bytes += self.size
        queue.on_answer()

    def __str__(self) -> str:
        return str(self._api)

    @property
    def api_key(self) -> int:
        return self._api.api_key

    def park(self) -> None:
        """The request waits for an event, such as new records: it is no work under way, and its bytes are given up. How
        many may wait is the handler's to bound."""
        if self._is_parked or self.frame is not None:
            return
        self._is_parked = True
        queue = self._queue
        queue.request_bytes -= self.request_bytes
        self.request_bytes = 0
        queue.parked += 1
        queue.parked_first += self._goes_first
        queue.on_answer()

    def weigh_more(self, more_bytes: int) -> None:
        """The request has been read, and holds so much besides its frame until it is answered."""
        self.request_bytes += more_bytes
        self._queue.request_bytes += more_bytes

    def _encode(self, answer: Response | EncodedBody | NoAnswer) -> Frame:
        api = self._api
        if isinstance(answer, NoAnswer):
            return _NOTHING
        is_right = isinstance(answer, EncodedBody) or answer.api_key == api.api_key
        assert is_right, f"{api} was answered with a {type(answer).__module__}.{type(answer).__qualname__}"
        return encode_response_frame(api, self._correlation_id, answer)


class ReplyQueue:
    """First in, first out. `held_bytes` counts the answers that wait for an earlier one, `request_bytes` the
    unanswered requests. Their number is `unanswered`; `unanswered_first` of them go before
    others (`network.turns`). `parked` and `parked_first` of these wait for an event.

    `on_answer` is called after each answer, `on_failure` when one cannot be encoded.
    """

    __slots__ = (
        "_close_calls",
        "_pending",
        "closed",
        "held_bytes",
        "on_answer",
        "on_failure",
        "parked",
        "parked_first",
        "request_bytes",
        "unanswered",
        "unanswered_first",
    )

    def __init__(self, on_answer: Callable[[], None], on_failure: Callable[[str, Exception], None]) -> None:
        self._pending: deque[PendingReply] = deque()
        self._close_calls: dict[object, Callable[[], object]] = {}
        self.closed = False
        self.held_bytes = 0
        self.request_bytes = 0
        self.unanswered = 0
        self.unanswered_first = 0
        self.parked = 0
        self.parked_first = 0
        self.on_answer = on_answer
        self.on_failure = on_failure

    def __len__(self) -> int:
        return len(self._pending)

    def __bool__(self) -> bool:
        """mypyc does not see that `__len__` says so."""
        return len(self) > 0

    def open(
        self,
        api: ApiVersion,
        correlation_id: int,
        received_at_s: float,
        request_bytes: int,
        *,
        goes_first: bool = False,
    ) -> PendingReply:
        """`received_at_s` is of the loop's clock."""
        reply = PendingReply(self, api, correlation_id, received_at_s, request_bytes, goes_first)
        self._pending.append(reply)
        self.request_bytes += request_bytes
        self.unanswered += 1
        self.unanswered_first += goes_first
        return reply

    @property
    def under_way(self) -> int:
        """The requests that are work: neither answered nor parked."""
        return self.unanswered - self.parked

    def first_since(self, time_s: float) -> PendingReply | None:
        """The request that holds up the others, if it came before that time."""
        return self._pending[0] if self._pending and self._pending[0].received_at_s < time_s else None

    def unanswered_of(self, api_key: int) -> int:
        return sum(reply.frame is None and reply.api_key == api_key for reply in self._pending)

    def take_ready(self) -> tuple[list[bytes | memoryview], bool]:
        """The pieces of the frames at the head that are ready to go, and whether to close the connection after them."""
        pending = self._pending
        pieces: list[bytes | memoryview] = []
        while pending and (frame := pending[0].frame) is not None:
            if not frame:
                pending.popleft()
                return pieces, True
            pieces += frame
            sent = pending.popleft()
            self.held_bytes -= sent.size
            # What answered it may refer to it for longer than the connection has the answer.
            sent.frame = CLOSING
        return pieces, False

    def close(self) -> None:
        """Answers that come later go nowhere, unencoded; until then, their requests cost what they cost."""
        self.closed = True
        for reply in self._pending:
            if reply.frame is not None:
                reply.frame = CLOSING
        self._pending.clear()
        self.held_bytes = 0
        calls = tuple(self._close_calls.values())
        self._close_calls.clear()
        for call in calls:
            call()

    def let_go(self) -> None:
        """Refer to the connection no more: further answers change nothing."""
        self.on_answer = self.on_failure = nothing

    def when_closed(self, call: Callable[[], object]) -> Callable[[], None]:
        """`call` is called once, when the connection closes, or now if it has closed. What is returned prevents it."""
        if self.closed:
            call()
        else:
            # Two requests may give the same function, so it is no key.
            self._close_calls[key := object()] = call
            return lambda: self._forget(key)
        return lambda: None

    def _forget(self, key: object) -> None:
        self._close_calls.pop(key, None)
