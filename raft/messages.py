"""What replicas say to each other: Kafka's quorum RPCs as plain values, free of wire versions.

Every response names the answering replica's leader (`-1` unknown) and epoch, as KIP-595 asks, and where that leader
listens if the replica knows (KIP-853). `error` is Kafka's error code; `is_top_level` says that it stands outside the
partition (cluster id, topic), and then epoch and leader mean nothing.
"""

from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from kquorum.raft.voters import SUPPORTED_KRAFT_VERSIONS, ZERO_DIRECTORY, Endpoint, ReplicaKey, VersionRange
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode

NO_LEADER = -1
UNKNOWN_OFFSET = -1
# Epochs are 32 bits on the wire and on disk; a replica takes no epoch that could not be followed by another one.
MAX_EPOCH = 2**31 - 2
# No log is as long as that: a snapshot that ends beyond would leave no offsets for what follows it.
MAX_OFFSET = 2**62
NO_REPLICA = ReplicaKey(-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRequest:
    cluster_id: str | None
    replica_epoch: int
    candidate: ReplicaKey
    voter: ReplicaKey
    last_offset: int
    last_offset_epoch: int
    pre_vote: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteResponse:
    error: ErrorCode = ErrorCode.none
    is_top_level: bool = False
    leader_id: int = NO_LEADER
    leader_epoch: int = 0
    leader_endpoints: tuple[Endpoint, ...] = ()
    vote_granted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginQuorumEpochRequest:
    cluster_id: str | None
    leader_id: int
    leader_epoch: int
    leader_endpoints: tuple[Endpoint, ...] = ()
    voter: ReplicaKey = NO_REPLICA


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginQuorumEpochResponse:
    error: ErrorCode = ErrorCode.none
    is_top_level: bool = False
    leader_id: int = NO_LEADER
    leader_epoch: int = 0
    leader_endpoints: tuple[Endpoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EndQuorumEpochRequest:
    """The leader steps down; `preferred_candidates` come most up to date first."""

    cluster_id: str | None
    leader_id: int
    leader_epoch: int
    preferred_candidates: tuple[ReplicaKey, ...] = ()
    leader_endpoints: tuple[Endpoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EndQuorumEpochResponse:
    error: ErrorCode = ErrorCode.none
    is_top_level: bool = False
    leader_id: int = NO_LEADER
    leader_epoch: int = 0
    leader_endpoints: tuple[Endpoint, ...] = ()


@dataclass(slots=True, init=False)
class FetchRequest:
    """`high_watermark` is what the sender knows (KIP-1166): -1 unknown, None when its version cannot say.

    `annotation` is what the state machines of our nodes have to say to each other; the core does not look at it.
    """

    cluster_id: Final[str | None]
    replica: Final[ReplicaKey]
    current_leader_epoch: Final[int]
    fetch_offset: Final[int]
    last_fetched_epoch: Final[int]
    max_wait_ms: Final[int]
    max_bytes: Final[int]
    high_watermark: Final[int | None]
    annotation: Final[bytes]

    def __init__(
        self,
        *,
        cluster_id: str | None,
        replica: ReplicaKey,
        current_leader_epoch: int,
        fetch_offset: int,
        last_fetched_epoch: int,
        max_wait_ms: int,
        max_bytes: int,
        high_watermark: int | None = None,
        annotation: bytes = b"",
    ) -> None:
        self.cluster_id = cluster_id
        self.replica = replica
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.max_wait_ms = max_wait_ms
        self.max_bytes = max_bytes
        self.high_watermark = high_watermark
        self.annotation = annotation

    def with_annotation(self, annotation: bytes) -> "FetchRequest":
        return FetchRequest(
            cluster_id=self.cluster_id,
            replica=self.replica,
            current_leader_epoch=self.current_leader_epoch,
            fetch_offset=self.fetch_offset,
            last_fetched_epoch=self.last_fetched_epoch,
            max_wait_ms=self.max_wait_ms,
            max_bytes=self.max_bytes,
            high_watermark=self.high_watermark,
            annotation=annotation,
        )


@dataclass(slots=True, init=False)
class LogSlice:
    """Whole batches from `start_offset`, at least one, up to `max_bytes`; the adapter reads them off the log."""

    start_offset: Final[int]
    max_bytes: Final[int]

    def __init__(
        self,
        start_offset: int,
        max_bytes: int,
    ) -> None:
        self.start_offset = start_offset
        self.max_bytes = max_bytes


@dataclass(slots=True, init=False)
class FetchResponse:
    """`records` is a slice of the log where the core answers, and bytes where the core receives."""

    error: Final[ErrorCode]
    is_top_level: Final[bool]
    leader_id: Final[int]
    leader_epoch: Final[int]
    leader_endpoints: Final[tuple[Endpoint, ...]]
    high_watermark: Final[int]
    log_start_offset: Final[int]
    diverging: Final[OffsetAndEpoch | None]
    snapshot_id: Final[OffsetAndEpoch | None]
    records: Final[LogSlice | bytes]

    def __init__(
        self,
        *,
        error: ErrorCode = ErrorCode.none,
        is_top_level: bool = False,
        leader_id: int = NO_LEADER,
        leader_epoch: int = 0,
        leader_endpoints: tuple[Endpoint, ...] = (),
        high_watermark: int = UNKNOWN_OFFSET,
        log_start_offset: int = UNKNOWN_OFFSET,
        diverging: OffsetAndEpoch | None = None,
        snapshot_id: OffsetAndEpoch | None = None,
        records: LogSlice | bytes = b"",
    ) -> None:
        self.error = error
        self.is_top_level = is_top_level
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.leader_endpoints = leader_endpoints
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset
        self.diverging = diverging
        self.snapshot_id = snapshot_id
        self.records = records

    def with_records(self, records: bytes) -> "FetchResponse":
        return FetchResponse(
            error=self.error,
            is_top_level=self.is_top_level,
            leader_id=self.leader_id,
            leader_epoch=self.leader_epoch,
            leader_endpoints=self.leader_endpoints,
            high_watermark=self.high_watermark,
            log_start_offset=self.log_start_offset,
            diverging=self.diverging,
            snapshot_id=self.snapshot_id,
            records=records,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshotRequest:
    """The bytes of a snapshot from `position` on (KIP-630)."""

    cluster_id: str | None
    replica: ReplicaKey
    current_leader_epoch: int
    snapshot_id: OffsetAndEpoch
    position: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class SnapshotSlice:
    """Up to `max_bytes` of a snapshot's file from `position`; the adapter reads them, and finds the size."""

    snapshot_id: OffsetAndEpoch
    position: int
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshotResponse:
    """`data` is a slice of a file where the core answers, and bytes where the core receives; `size` is the whole
    file's, in bytes."""

    error: ErrorCode = ErrorCode.none
    is_top_level: bool = False
    leader_id: int = NO_LEADER
    leader_epoch: int = 0
    leader_endpoints: tuple[Endpoint, ...] = ()
    snapshot_id: OffsetAndEpoch | None = None
    size: int = 0
    position: int = 0
    data: SnapshotSlice | bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumRequest:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStatus:
    """What the leader knows of a replica; offsets and timestamps are -1 while unknown."""

    replica_id: int
    directory_id: UUID = ZERO_DIRECTORY
    log_end_offset: int = UNKNOWN_OFFSET
    last_fetch_timestamp_ms: int = -1
    last_caught_up_timestamp_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumResponse:
    """`annotation` is what the node that leads adds to it; the core does not look at it."""

    error: ErrorCode = ErrorCode.none
    is_top_level: bool = False
    leader_id: int = NO_LEADER
    leader_epoch: int = 0
    high_watermark: int = UNKNOWN_OFFSET
    current_voters: tuple[ReplicaStatus, ...] = ()
    observers: tuple[ReplicaStatus, ...] = ()
    nodes: dict[int, tuple[Endpoint, ...]] = field(default_factory=dict)
    annotation: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRaftVoterRequest:
    """Make a caught-up observer a voter. An operator waits for the commit; a replica that adds itself does not, since
    the commit may need its own next Fetch (`ack_when_committed` is False then)."""

    cluster_id: str | None
    timeout_ms: int
    voter: ReplicaKey
    endpoints: tuple[Endpoint, ...]
    ack_when_committed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRaftVoterRequest:
    cluster_id: str | None
    voter: ReplicaKey


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRaftVoterRequest:
    """A voter says where it listens now, and which kraft.version levels it knows."""

    cluster_id: str | None
    current_leader_epoch: int
    voter: ReplicaKey
    endpoints: tuple[Endpoint, ...]
    kraft_versions: VersionRange = SUPPORTED_KRAFT_VERSIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeVotersResponse:
    """The answer to Add-, Remove- and UpdateRaftVoter; `message` says why not. On the wire the first two leave leader
    and epoch out, and then they are unknown here: -1."""

    error: ErrorCode = ErrorCode.none
    is_top_level: bool = False
    message: str | None = None
    leader_id: int = NO_LEADER
    leader_epoch: int = -1
    leader_endpoints: tuple[Endpoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsRequest:
    """The leader asks a node that is to become a voter which kraft.version levels it knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsResponse:
    """`kraft_versions` is None when the node does not name the feature."""

    error: ErrorCode = ErrorCode.none
    kraft_versions: VersionRange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferLeadershipRequest:
    """Hand over to `target_id` once it has caught up. Not in Kafka's protocol: asked through the driver only."""

    target_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferLeadershipResponse:
    """No error: the target leads. Otherwise `message` says why not, and whether this replica goes on leading."""

    error: ErrorCode = ErrorCode.none
    message: str | None = None


ChangeVotersRequest = AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest
Request = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | DescribeQuorumRequest
    | ChangeVotersRequest
    | ApiVersionsRequest
    | TransferLeadershipRequest
)
Response = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FetchResponse
    | FetchSnapshotResponse
    | DescribeQuorumResponse
    | ChangeVotersResponse
    | ApiVersionsResponse
    | TransferLeadershipResponse
)
# Responses that say who leads.
LeaderNaming = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FetchResponse
    | FetchSnapshotResponse
    | ChangeVotersResponse
)
