"""What a workload is: clients in their seats, what they do, and which checkers judge it.

Several workloads may run side by side in one cluster (`--workload topics-set,register`). Each has seats, and hears
and is asked of its own seats alone; the names of its operations (`f`) are its own, so that its checkers find them in
the common history.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

from tests.jepsen.checkers.verdicts import Checker
from tests.jepsen.core.cluster import Cluster
from tests.jepsen.core.generator import SECOND_NS, Generator
from tests.jepsen.core.interpreter import Worker
from tests.jepsen.core.members import Members
from tests.jepsen.net.network import Network

RECOVERY_NS = 60 * SECOND_NS
"""How long a final phase waits for a healed cluster; what is missing then, the checkers see."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A client's worker, and the node that it speaks to (None: to no one in particular)."""

    worker: Worker
    node: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a workload is made from. `rate` is its operations a second, `concurrency` its number of clients."""

    network: Network
    cluster: Cluster
    members: Members
    random_source: Random
    rate: float
    concurrency: int
    op_timeout_s: float


class Workload(Protocol):
    def seats(self) -> Sequence[Seat]:
        """Asked once; the generators see seats by their places here, from 0."""
        ...

    def main(self, time_ns: int) -> Generator:
        """What to do for so long while faults come and go."""
        ...

    def final(self) -> Generator:
        """What to do when all is healed; it must end by itself, within RECOVERY_NS or so."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A stored run, as its checkers get it."""

    folder: Path
    members: Members


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadKind:
    """An entry of the catalogue.

    `writes` and `reads` name the operations by which availability is measured, `incidental` those without which a run
    has still tested what it is for. `config` goes into every node's
    config (Kafka's keys). `spares` asks for a dynamic quorum with so many controllers outside of the voters.
    """

    name: str
    about: str
    make: Callable[[Setup], Workload]
    checkers: Callable[[Judged], Sequence[Checker]]
    writes: frozenset[str]
    reads: frozenset[str] = frozenset()
    incidental: frozenset[str] = frozenset()
    seats_min: Callable[[Members], int] = field(default=lambda members: len(members.brokers))
    config: Mapping[str, object] = field(default_factory=dict)
    spares: int = 0
