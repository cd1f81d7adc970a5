"""One machine of the world: its disk and its clock outlive the process that runs on it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from kquorum.raft.messages import Request
from kquorum.raft.node import RaftNode
from kquorum.raft.voters import Endpoint, ReplicaKey
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch
from tests.simulation.disk import SimulatedDisk
from tests.simulation.history import Append, Read


class CheapDice:
    """`raft.ports.RandomSource` without the cost of `Random.randint`."""

    def __init__(self, seed: int) -> None:
        self.random: Callable[[], float] = Random(seed).random

    def randint(self, low: int, high: int) -> int:
        return low + int(self.random() * (high - low + 1))


@dataclass(slots=True)
class WaitingReply:
    """Whom the answer to a request goes to; without a source it is the operator's."""

    source: "Host | None"
    source_life: int
    correlation_id: int
    destination_id: int
    request: Request
    version: int


@dataclass(eq=False)
class Host:
    """`life` counts its starts and ends, so that what was meant for a dead process is dropped.

    `clock_permille` is how many of the host's own milliseconds pass in a second of the world.
    """

    node_id: int
    directory_id: UUID
    disk: SimulatedDisk
    random_source: CheapDice
    flush_ms_max: int
    can_be_voter: bool
    # The least and the most that its disk takes for an election state; nothing of that turn leaves before.
    state_ms: tuple[int, int] = (0, 0)
    is_old: bool = False
    moves: int = 0
    clock_permille: int = 1000
    clock_start_ms: int = 0
    node: RaftNode | None = None
    life: int = 0
    paused_until_ms: int = 0
    # What the driver keeps of a process.
    truncations: int = 0
    is_flushing: bool = False
    flush_fails: bool = False
    timer_at_ms: int | None = None
    wakes_at_ms: int | None = None
    has_turn_due: bool = False
    # 0 while its disk is not at work on an election state.
    writes_state_until_ms: int = 0
    # What it has written in a turn of which nothing was said yet.
    unsaid: list[LogBatch] = field(default_factory=list)
    is_timer_turn: bool = False
    dies_at_step: int = 0
    revives_after_ms: int = 0
    # The state machine: how far it is, and what the batches and snapshots so far have made of it.
    applied: int = 0
    state: int = 0
    applied_epoch: int = 0
    bytes_since_snapshot: int = 0
    # What becomes of snapshots in this process (`snapshots.Snapshots`).
    loading: OffsetAndEpoch | None = None
    part: tuple[OffsetAndEpoch, bytearray] | None = None
    is_installing: bool = False
    is_writing_snapshot: bool = False
    spoils_download: bool = False
    # What its disk has come to (`failing_disks.FailingDisks`): since when its core knows that there is no space, and
    # where its log ended then; in which epoch it was started with a damaged log that is not whole again.
    is_full: bool = False
    paused_writes_since_ms: int | None = None
    written_when_full: int = 0
    damaged_epoch: int | None = None
    disk_before_damage: SimulatedDisk | None = None
    waiting_replies: dict[int, WaitingReply] = field(default_factory=dict)
    next_request_id: int = 0
    appends: dict[int, Append] = field(default_factory=dict)
    reads: dict[int, Read] = field(default_factory=dict)
    confirmed_reads: list[tuple[Read, int]] = field(default_factory=list)

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint("CONTROLLER", f"host-{self.node_id}", 9093 + self.moves)

    def clock_ms(self, world_ms: int) -> int:
        return self.clock_start_ms + world_ms * self.clock_permille // 1000

    def world_ms_of(self, clock_ms: int) -> int:
        """The first moment of the world at which this host's clock shows `clock_ms`."""
        return -((self.clock_start_ms - clock_ms) * 1000 // self.clock_permille)

    def forget_process(self) -> None:
        """What was in memory is gone."""
        self.node = None
        self.life += 1
        self.paused_until_ms = 0
        self.truncations = 0
        self.is_flushing = False
        self.flush_fails = False
        self.timer_at_ms = None
        self.wakes_at_ms = None
        self.has_turn_due = False
        self.writes_state_until_ms = 0
        self.unsaid = []
        self.dies_at_step = 0
        self.applied = self.state = self.applied_epoch = 0
        self.bytes_since_snapshot = 0
        self.loading = None
        self.part = None
        self.is_installing = False
        self.is_writing_snapshot = False
        self.paused_writes_since_ms = None
        self.damaged_epoch = None
        self.waiting_replies = {}
        self.appends = {}
        self.reads = {}
        self.confirmed_reads = []
