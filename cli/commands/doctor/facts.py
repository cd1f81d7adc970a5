"""What `kquorum doctor` knows of a cluster when it has looked. None is what could not be found out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A folder's file system. `written_per_day` counts the bytes of logs that were written in the last day, where the
    folder is on this machine."""

    path: str
    total_bytes: int | None = None
    usable_bytes: int | None = None
    total_inodes: int | None = None
    usable_inodes: int | None = None
    fault: str | None = None
    written_per_day: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node of the config. `silence` says why it does not answer. `clock_ms` is how far its clock is ahead of this
    machine's, give or take `clock_error_ms`."""

    node_id: int
    roles: tuple[str, ...]
    address: str
    silence: str | None = None
    cluster_id: str | None = None
    not_ready: str | None = None
    version: str | None = None
    clock_ms: int | None = None
    clock_error_ms: int = 0
    open_files: int | None = None
    max_open_files: int | None = None
    spaces: tuple[Space, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A voter or observer, as the leader tells. `lag` is in records."""

    node_id: int
    is_voter: bool
    alive: bool | None
    lag: int | None
    state_differs_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    leader_id: int
    replicas: tuple[Replica, ...]

    @property
    def voters(self) -> tuple[Replica, ...]:
        return tuple(each for each in self.replicas if each.is_voter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    broker_id: int
    state: str
    lag: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """`min_isr` is the effective min.insync.replicas of the topic."""

    name: str
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    min_isr: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """`place` is a file or a listener; `ends_ms` when it ends, `fault` why that is not known."""

    place: str
    ends_ms: int | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """`quorum_fault`, `brokers_fault` and `partitions_fault` say why something is not known."""

    now_ms: int
    config: str
    cluster_id: str | None
    nodes: tuple[Node, ...]
    quorum: Quorum | None = None
    quorum_fault: str = ""
    # Node -> feature -> lowest and highest level that it can run.
    supported: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    finalized: Mapping[str, int] = field(default_factory=dict)
    brokers: Sequence[Broker] | None = None
    brokers_fault: str = ""
    partitions: Sequence[Partition] | None = None
    partitions_fault: str = ""
    certificates: tuple[Certificate, ...] = ()
