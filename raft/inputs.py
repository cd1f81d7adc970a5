"""Everything that can happen to a replica."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from kquorum.raft.messages import Request, Response
from kquorum.raft.voters import QuorumRecord
from kquorum.wire.log_batch import OffsetAndEpoch


class FailureReason(Enum):
    TIMED_OUT = "timed out"
    DISCONNECTED = "disconnected"
    UNSUPPORTED_VERSION = "unsupported version"


@dataclass(slots=True, init=False)
class RequestReceived:
    """A peer asks; the answer comes out as an `OutboundResponse` with the same `request_id`, perhaps much later."""

    request_id: Final[int]
    request: Final[Request]

    def __init__(
        self,
        request_id: int,
        request: Request,
    ) -> None:
        self.request_id = request_id
        self.request = request


@dataclass(slots=True, init=False)
class ResponseReceived:
    """A peer's answer to the `OutboundRequest` with this `correlation_id`."""

    correlation_id: Final[int]
    source_id: Final[int]
    response: Final[Response]

    def __init__(
        self,
        correlation_id: int,
        source_id: int,
        response: Response,
    ) -> None:
        self.correlation_id = correlation_id
        self.source_id = source_id
        self.response = response


@dataclass(frozen=True, slots=True)
class RequestFailed:
    correlation_id: int
    source_id: int
    reason: FailureReason


@dataclass(slots=True, init=False)
class LogFlushed:
    """All up to `end_offset` (exclusive) is on stable storage.

    `truncations` counts the truncations that had been carried out when the flush *began*: a flush that began
    before a truncation says nothing of the bytes written after it, and the core ignores it.
    """

    end_offset: Final[int]
    truncations: Final[int]

    def __init__(
        self,
        end_offset: int,
        truncations: int,
    ) -> None:
        self.end_offset = end_offset
        self.truncations = truncations


@dataclass(frozen=True, slots=True)
class QuorumStateWritten:
    """The `quorum_state` of the last `Ready` is on stable storage, and its messages leave now. No other `Ready` was
    taken meanwhile."""


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


@dataclass(frozen=True, slots=True)
class WritesPaused:
    """The disk is full (True), or has space again (False); see `raft.full_disk`. Election states are written
    meanwhile, for they are small."""

    is_paused: bool


@dataclass(frozen=True, slots=True)
class SnapshotReceived:
    """The bytes of `Ready.snapshot_chunks` are complete, verified and on stable storage, under the snapshot's name;
    the log was dropped in its favour. `quorum_records` is what the snapshot says of the voters."""

    snapshot_id: OffsetAndEpoch
    quorum_records: tuple[QuorumRecord, ...]


@dataclass(frozen=True, slots=True)
class SnapshotPieceWritten:
    """The adapter is done with one of `Ready.snapshot_chunks`, written or not, and holds it in memory no more."""


@dataclass(frozen=True, slots=True)
class SnapshotRefused:
    """The bytes do not make a snapshot, or could not be kept: it has to be fetched again, from its beginning."""

    snapshot_id: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class SnapshotWritten:
    """This replica's state machine has a snapshot of its own on stable storage."""

    snapshot_id: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class LogStartAdvanced:
    """The log was cut at its start, up to where a snapshot begins to stand for it; older snapshots are gone."""

    log_start_offset: int


SnapshotEvent = SnapshotReceived | SnapshotPieceWritten | SnapshotRefused | SnapshotWritten | LogStartAdvanced
Input = (
    RequestReceived
    | ResponseReceived
    | RequestFailed
    | LogFlushed
    | QuorumStateWritten
    | TimeAdvanced
    | ResignRequested
    | ShutdownRequested
    | ReadRequested
    | WritesPaused
    | SnapshotEvent
)
