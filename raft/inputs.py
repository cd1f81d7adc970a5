"""Everything that can happen to a replica."""

from dataclasses import dataclass
from enum import Enum

from raft.messages import Request, Response


class FailureReason(Enum):
    TIMED_OUT = "timed out"
    DISCONNECTED = "disconnected"
    UNSUPPORTED_VERSION = "unsupported version"


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A peer asks; the answer comes out as an `OutboundResponse` with the same `request_id`, perhaps much later."""

    request_id: int
    request: Request


@dataclass(frozen=True, slots=True)
class ResponseReceived:
    """A peer's answer to the `OutboundRequest` with this `correlation_id`."""

    correlation_id: int
    source_id: int
    response: Response


@dataclass(frozen=True, slots=True)
class RequestFailed:
    correlation_id: int
    source_id: int
    reason: FailureReason


@dataclass(frozen=True, slots=True)
class LogFlushed:
    """All up to `end_offset` (exclusive) is on stable storage.

    `truncations` counts the truncations that had been carried out when the flush *began*: a flush that began
    before a truncation says nothing of the bytes written after it, and the core ignores it.
    """

    end_offset: int
    truncations: int


@dataclass(frozen=True, slots=True)
class TimeAdvanced:
    """Nothing happened but time; the driver sends it when `Ready.deadline_ms` is reached."""


@dataclass(frozen=True, slots=True)
class ResignRequested:
    """The state machine of the leader of `leader_epoch` gives up; older epochs are ignored."""

    leader_epoch: int


@dataclass(frozen=True, slots=True)
class ShutdownRequested:
    """Leave in good order: a leader resigns and tells its successors."""


@dataclass(frozen=True, slots=True)
class ReadRequested:
    """A linearizable read begins; it comes out as a `ReadConfirmed` or `ReadRefused` with the same `read_id`."""

    read_id: int


Input = (
    RequestReceived
    | ResponseReceived
    | RequestFailed
    | LogFlushed
    | TimeAdvanced
    | ResignRequested
    | ShutdownRequested
    | ReadRequested
)
