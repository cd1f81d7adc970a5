"""What the core asks its driver to do (`Ready`), and the outbox that collects it during a turn."""

from dataclasses import dataclass, field
from typing import Final

from kquorum.raft.messages import Request, Response
from kquorum.raft.voters import Endpoint, ReplicaKey, VoterSet
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumState:
    """The election state that must outlive a crash (Kafka's `quorum-state` file); -1 is "none"."""

    leader_epoch: int = 0
    leader_id: int = -1
    voted: ReplicaKey | None = None


@dataclass(slots=True, init=False)
class OutboundRequest:
    """To be sent to `destination_id`; a negative id is a bootstrap server (-2, -3, ... in the config's order).

    `endpoint` is where that node listens as the core knows; None leaves it to the transport's own table.
    """

    correlation_id: Final[int]
    destination_id: Final[int]
    request: Final[Request]
    endpoint: Final[Endpoint | None]

    def __init__(
        self,
        correlation_id: int,
        destination_id: int,
        request: Request,
        endpoint: Endpoint | None = None,
    ) -> None:
        self.correlation_id = correlation_id
        self.destination_id = destination_id
        self.request = request
        self.endpoint = endpoint


@dataclass(slots=True, init=False)
class OutboundResponse:
    request_id: Final[int]
    response: Final[Response]

    def __init__(
        self,
        request_id: int,
        response: Response,
    ) -> None:
        self.request_id = request_id
        self.response = response


@dataclass(frozen=True, slots=True)
class LeaderAndEpoch:
    leader_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class RoleChanged:
    """For the election recorder and traces: which role was taken, in which epoch, and why."""

    role: str
    epoch: int
    cause: str


@dataclass(frozen=True, slots=True)
class ReadConfirmed:
    """This replica led when the read began, and everything that was committed then is below `offset`. A state machine
    that has applied all below `offset` gives a linearizable answer."""

    read_id: int
    offset: int


@dataclass(frozen=True, slots=True)
class ReadRefused:
    """This replica does not lead, or lost the leadership before a majority confirmed it."""

    read_id: int
    leader_id: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class VotersChanged:
    """The voter set in force, whenever it changes and once at the start; it may not be committed yet."""

    voters: VoterSet
    kraft_version: int


@dataclass(frozen=True, slots=True)
class SnapshotChunk:
    """Bytes of a snapshot that is being fetched; position 0 begins a new file, `is_last` completes it. `size` is the
    size of the file in bytes as the leader gave it.

    After the last chunk the adapter verifies the whole file, gives it its name, drops the log, and reports
    `SnapshotReceived` (or `SnapshotRefused`). The core appends nothing before that.
    """

    snapshot_id: OffsetAndEpoch
    position: int
    data: bytes
    is_last: bool
    size: int


@dataclass(slots=True, init=False)
class Ready:
    """The driver carries this out field by field, in the order of declaration.

    The class is not frozen only because the core builds it in every turn: freezing would take a tenth of the core's
    time.

    1. `truncate_to`: cut the log to this end offset.
    2. `append`: write these batches at the log's end. They need not be on stable storage before the next step;
       the driver starts a flush and reports it with `LogFlushed`. The core itself holds back whatever
       acknowledges them (a follower's next Fetch, the leader's own vote for the high watermark).
    3. `snapshot_chunks`: write them to a file of their own, the last one as `SnapshotChunk` says, and report each with
       `SnapshotPieceWritten`, so that the core fetches no faster than the disk writes. `load_snapshot`: the
       state machine starts over from this snapshot, before anything else is committed to it.
    4. `quorum_state`: must be on stable storage BEFORE any request or response of this Ready leaves; the driver
       reports it with `QuorumStateWritten`.
    5. `requests` and `responses` leave.
    6. `voters_changed`: the transport takes over the addresses; the next write of `quorum-state` has the format of the
       new kraft.version.
    7. `high_watermark`, `leader`: told to the state machine, committed batches first.
    8. `reads`: what became of linearizable reads. `has_caught_up`: a replica that had lost its state has it back, on
       stable storage; the adapter that remembers the loss may forget it.
    9. `deadline_ms`: the one timer is armed for this moment (None: no timer); then `TimeAdvanced`.
    """

    truncate_to: int | None
    append: tuple[LogBatch, ...]
    snapshot_chunks: tuple[SnapshotChunk, ...]
    load_snapshot: OffsetAndEpoch | None
    quorum_state: QuorumState | None
    requests: tuple[OutboundRequest, ...]
    responses: tuple[OutboundResponse, ...]
    high_watermark: int | None
    leader: LeaderAndEpoch | None
    voters_changed: VotersChanged | None
    reads: tuple[ReadConfirmed | ReadRefused, ...]
    role_changes: tuple[RoleChanged, ...]
    has_caught_up: bool
    deadline_ms: int | None
    is_shut_down: bool

    def __init__(
        self,
        *,
        truncate_to: int | None = None,
        append: tuple[LogBatch, ...] = (),
        snapshot_chunks: tuple[SnapshotChunk, ...] = (),
        load_snapshot: OffsetAndEpoch | None = None,
        quorum_state: QuorumState | None = None,
        requests: tuple[OutboundRequest, ...] = (),
        responses: tuple[OutboundResponse, ...] = (),
        high_watermark: int | None = None,
        leader: LeaderAndEpoch | None = None,
        voters_changed: VotersChanged | None = None,
        reads: tuple[ReadConfirmed | ReadRefused, ...] = (),
        role_changes: tuple[RoleChanged, ...] = (),
        has_caught_up: bool = False,
        deadline_ms: int | None = None,
        is_shut_down: bool = False,
    ) -> None:
        self.truncate_to = truncate_to
        self.append = append
        self.snapshot_chunks = snapshot_chunks
        self.load_snapshot = load_snapshot
        self.quorum_state = quorum_state
        self.requests = requests
        self.responses = responses
        self.high_watermark = high_watermark
        self.leader = leader
        self.voters_changed = voters_changed
        self.reads = reads
        self.role_changes = role_changes
        self.has_caught_up = has_caught_up
        self.deadline_ms = deadline_ms
        self.is_shut_down = is_shut_down


# What gathers between two `take_ready` calls


@dataclass(slots=True)
class Outbox:
    truncate_to: int | None = None
    append: list[LogBatch] = field(default_factory=list)
    snapshot_chunks: list[SnapshotChunk] = field(default_factory=list)
    load_snapshot: OffsetAndEpoch | None = None
    quorum_state: QuorumState | None = None
    requests: list[OutboundRequest] = field(default_factory=list)
    responses: list[OutboundResponse] = field(default_factory=list)
    reads: list[ReadConfirmed | ReadRefused] = field(default_factory=list)
    role_changes: list[RoleChanged] = field(default_factory=list)
    has_caught_up: bool = False

    def cut(self, end_offset: int, stored_end_offset: int) -> bool:
        """Drop what has not left yet from `end_offset` on; answers whether the store must be cut as well, for
        the first time in this turn."""
        self.append = [batch for batch in self.append if batch.next_offset <= end_offset]
        if end_offset >= stored_end_offset:
            return False
        is_first = self.truncate_to is None
        self.truncate_to = end_offset
        return is_first
