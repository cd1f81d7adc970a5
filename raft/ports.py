"""What the core and its driver need from outside; each port has a real part and a fake, held to one contract suite."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kquorum.raft.messages import Request, Response, TransferLeadershipResponse
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import Endpoint, QuorumRecord, VoterSet
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch


class RandomSource(Protocol):
    """The only entropy in the core."""

    def randint(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        ...


@dataclass(frozen=True, slots=True)
class QuorumAt:
    """The voters and the kraft.version in force as of an offset."""

    voters: VoterSet
    kraft_version: int


@dataclass(frozen=True, slots=True)
class LogSummary:
    """First offset, end offset (exclusive), each leader epoch with its start offset, and the snapshots, ascending.

    A log that starts above 0 has a snapshot exactly at its start. `quorum_records` is what the bootstrap checkpoint
    (offset -1), the newest snapshot and the log itself say of kraft.version and voters, ascending by offset.
    """

    log_start_offset: int = 0
    log_end_offset: int = 0
    epochs: tuple[tuple[int, int], ...] = ()
    snapshots: tuple[OffsetAndEpoch, ...] = ()
    quorum_records: tuple[QuorumRecord, ...] = ()


class LogStore(Protocol):
    """The replica's copy of the log. Offsets are contiguous; batches are never split."""

    def summary(self) -> LogSummary: ...

    def append(self, batches: Sequence[LogBatch]) -> None:
        """Write at the end; the first base offset must equal the end offset. Not durable before a flush."""
        ...

    def truncate_to(self, end_offset: int) -> None:
        """Drop all at and above `end_offset`, which must be a batch boundary."""
        ...

    def read(self, start_offset: int, max_bytes: int, end_offset: int | None = None) -> bytes:
        """Whole batches below `end_offset` from the one that holds `start_offset`; one at least, but at the end."""
        ...

    def flush(self) -> int:
        """Make all written so far durable; answers the end offset that this covers. May run in another thread."""
        ...


class QuorumStateStore(Protocol):
    def read(self) -> QuorumState | None: ...

    def write(self, state: QuorumState) -> None:
        """Replace the state; durable on return."""
        ...


class RaftPort(Protocol):
    """What a state machine may ask of its replica."""

    @property
    def node_id(self) -> int: ...

    @property
    def leader_id(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    @property
    def voters(self) -> VoterSet:
        """The voter set in force here, committed or not."""
        ...

    @property
    def kraft_version(self) -> int:
        """0: the voters are the configuration's; 1: they are the log's, and can be changed."""
        ...

    def quorum_at(self, end_offset: int) -> QuorumAt:
        """What the log below `end_offset` says of the quorum, for a snapshot that ends there."""
        ...

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        """Where a voter or the leader listens, as far as this replica knows."""
        ...

    def propose(self, now_ms: int, leader_epoch: int, values: Sequence[bytes]) -> int:
        """Append data records as one atomic group; answers the offset of the last. Raises NotLeaderError."""
        ...

    def resign(self, now_ms: int, leader_epoch: int) -> None: ...

    def upgrade_kraft_version(
        self, now_ms: int, leader_epoch: int, kraft_version: int, *, validate_only: bool = False
    ) -> str | None:
        """Finalise kraft.version (0 to 1: the static voters become the log's); answers why not, or None.

        Raises NotLeaderError.
        """
        ...


class RaftClient(RaftPort, Protocol):
    """What the rest of a node may ask of its running replica: `raft.adapters.driver.RaftDriver`."""

    @property
    def applied_offset(self) -> int:
        """The end of what the state machine was given."""
        ...

    async def read_linearizable(self) -> int:
        """Wait until the state machine has everything that was committed anywhere when this was called; answers the
        offset it has reached. A majority confirms that this replica led then. Raises NotLeaderError."""
        ...

    def read_committed(self) -> int:
        """The end of what the state machine was given. All below it is committed and stays; more may be committed
        elsewhere, so this read may be out of date."""
        ...

    def read_local(self) -> int:
        """The end of this replica's log. What stands above `read_committed` may yet be lost."""
        ...

    async def transfer_leadership(self, target_id: int) -> TransferLeadershipResponse:
        """Hand over to another voter once it has caught up; answers when that voter leads. Raises NotLeaderError when
        the driver ends meanwhile."""
        ...

    async def ask(self, request: Request) -> Response:
        """Have the core answer a request of this process as if a peer had sent it. Raises NotLeaderError when the
        driver is not running, or ends before the answer."""
        ...


class StateMachine(Protocol):
    """Fed by the driver, in log order, each batch at most once per process life; what it was not given is in a snapshot
    that it was."""

    @property
    def is_in_transaction(self) -> bool:
        """Whether batches are to come in slices now: any of them may end a transaction that took very many records."""
        ...

    def handle_commit(self, now_ms: int, batches: Sequence[LogBatch]) -> None:
        """Committed batches, control batches included; on the leader also those it proposed itself."""
        ...

    def handle_commit_slice(self, now_ms: int, batches: Sequence[LogBatch]) -> bool:
        """One committed batch of very many records, or batches of a transaction: some more of them, and whether all of
        them are done. Called again with the same batches until they are, before anything else is committed; only a
        snapshot may come first."""
        ...

    def handle_snapshot(self, now_ms: int, state: object) -> None:
        """Forget everything: `state` is what the node's loader made of a snapshot, and the next committed batches
        begin where that snapshot ends. Never while this replica leads."""
        ...

    def handle_leader_change(self, now_ms: int, leader_id: int, leader_epoch: int) -> None:
        """-1 while unknown. "You lead" comes only after everything up to the epoch's start was handed over."""
        ...

    def handle_time(self, now_ms: int) -> None: ...

    def next_deadline_ms(self) -> int | None:
        """When `handle_time` wants to be called; None for never."""
        ...
