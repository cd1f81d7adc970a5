"""What this node last heard from each peer that its replica asks: for messages to the operator, never for decisions."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from kquorum.raft.adapters.driver_ports import Receive
from kquorum.raft.inputs import FailureReason, Input, RequestFailed, ResponseReceived
from kquorum.wire.messages.error_codes import ErrorCode


class Answer(Enum):
    """How the last request to a peer ended."""

    USEFUL = auto()
    FOREIGN = auto()  # it belongs to another cluster
    NONE = auto()


@dataclass(frozen=True, slots=True)
class Heard:
    """`why_not` is empty where there was an answer."""

    answer: Answer
    why_not: str = ""


class PeerWatch:
    """Sees the outcome of each request before the core does, and changes nothing.

    A negative id is a bootstrap server, as in `raft.ready.OutboundRequest`.
    """

    def __init__(
        self,
        deliver: Receive,
        handle_foreign: Callable[[int], None],
        why_unreachable: Callable[[int], str | None],
    ) -> None:
        """`handle_foreign` gets the peers that refuse this node's cluster id; `why_unreachable` is the transport's."""
        self._deliver = deliver
        self._handle_foreign = handle_foreign
        self._why_unreachable = why_unreachable
        self._heard: dict[int, Heard] = {}

    def last_from(self, peer_id: int) -> Heard | None:
        """None if it was never asked."""
        return self._heard.get(peer_id)

    def receive(self, event: Input) -> None:
        """In place of the driver's own `receive`, for the transport."""
        if isinstance(event, ResponseReceived):
            self._take_answer(event)
        elif isinstance(event, RequestFailed):
            self._heard[event.source_id] = Heard(Answer.NONE, self._reason(event))
        self._deliver(event)

    def _take_answer(self, event: ResponseReceived) -> None:
        is_foreign = event.response.error is ErrorCode.inconsistent_cluster_id
        self._heard[event.source_id] = _FOREIGN if is_foreign else _USEFUL
        if is_foreign:
            self._handle_foreign(event.source_id)

    def _reason(self, event: RequestFailed) -> str:
        if event.reason is FailureReason.DISCONNECTED:
            return self._why_unreachable(event.source_id) or "the connection was lost"
        return str(event.reason.value)


_USEFUL, _FOREIGN = Heard(Answer.USEFUL), Heard(Answer.FOREIGN)
