"""One machine: a disk and a clock that survive its processes, and fixed random draws."""

from dataclasses import dataclass, field
from uuid import UUID

from kquorum.raft.config import QuorumConfig
from kquorum.raft.messages import Request
from kquorum.raft.node import RaftNode
from kquorum.raft.voters import Endpoint, ReplicaKey
from tests.scenarios.disk import Disk

CLUSTER_ID = "scenario-cluster-id-00"
START_MS = 1_000_000


@dataclass
class FixedRandomSource:
    """Always the lowest number, the highest, or so much above the lowest: time-outs are what the script says."""

    choice: str = "low"

    def randint(self, low: int, high: int) -> int:
        if self.choice == "low":
            return low
        if self.choice == "high":
            return high
        return min(high, low + int(self.choice))


@dataclass(frozen=True, slots=True)
class Asked:
    """Where the answer to a request goes; a request of the script's own has no process behind it."""

    request: Request
    source: str
    life: int = 0
    correlation_id: int = 0
    asked_as: int = 0
    by_script: bool = False


@dataclass
class Host:
    node_id: int
    config: QuorumConfig
    disk: Disk = field(default_factory=Disk)
    random_source: FixedRandomSource = field(default_factory=FixedRandomSource)
    now_ms: int = START_MS
    node: RaftNode | None = None
    life: int = 0
    is_paused: bool = False
    flushes_itself: bool = True
    deadline_ms: int | None = None
    truncations: int = 0
    applied: int = 0
    announced_leader_id: int = -1
    knows_voters: bool = False
    asked: dict[int, Asked] = field(default_factory=dict)
    next_request_id: int = 0

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.config.directory_id)

    @property
    def runs(self) -> bool:
        return self.node is not None and not self.is_paused

    def await_answer(self, asked: Asked) -> int:
        self.next_request_id += 1
        self.asked[self.next_request_id] = asked
        return self.next_request_id

    def begin_life(self) -> None:
        self.life += 1
        self.is_paused = False
        self.deadline_ms = None
        self.truncations = 0
        self.applied = 0
        self.announced_leader_id = -1
        self.knows_voters = False
        self.asked = {}


def directory(number: int) -> UUID:
    return UUID(int=number)


def endpoint_of(host_name: str) -> Endpoint:
    return Endpoint("CONTROLLER", host_name, 9093)
