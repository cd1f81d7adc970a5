"""One class per role, holding only what that role needs.

Epoch, leader and vote are common to all roles and live in `QuorumState`, because they must outlive a crash.
"""

from dataclasses import dataclass, field

from raft.messages import FetchRequest
from raft.voters import ReplicaKey


@dataclass(slots=True)
class Unattached:
    """Knows its epoch, and no leader that it could fetch from. Observers have no election deadline."""

    election_deadline_ms: int | None


@dataclass(slots=True)
class Nominee:
    """What prospective and candidate share: a tally over the voters, this replica's own vote included."""

    election_deadline_ms: int
    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)
    is_withdrawn: bool = False


@dataclass(slots=True)
class Prospective(Nominee):
    """Asks whether an election could be won before it disturbs anybody with a new epoch (KIP-996)."""


@dataclass(slots=True)
class Candidate(Nominee):
    """Stands for election in an epoch of its own."""


@dataclass(slots=True)
class ReplicaProgress:
    """What the leader knows of another replica; -1 is unknown."""

    end_offset: int = -1
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    leader_end_offset_at_fetch: int = -1


@dataclass(slots=True)
class ParkedFetch:
    """A Fetch that waits for records or for a higher high watermark."""

    request_id: int
    request: FetchRequest
    deadline_ms: int


@dataclass(slots=True)
class Leader:
    """Invariant: `epoch_start_offset` is the offset of this epoch's LeaderChange record, the first it wrote."""

    epoch_start_offset: int
    check_quorum_deadline_ms: int
    granting_voters: frozenset[int]
    progress: dict[ReplicaKey, ReplicaProgress] = field(default_factory=dict)
    fetched_since_check: set[int] = field(default_factory=set)
    begin_epoch_due_ms: dict[int, int] = field(default_factory=dict)
    parked: list[ParkedFetch] = field(default_factory=list)


@dataclass(slots=True)
class Follower:
    """Fetches from the leader; `has_fetched` is why it refuses pre-votes: it still hears that leader.

    `fetch_timeout_ms` is the configured one and a little more, drawn anew for each leader.
    """

    fetch_deadline_ms: int
    fetch_timeout_ms: int
    has_fetched: bool = False


@dataclass(slots=True)
class Resigned:
    """Led this epoch and will not lead it again; tells the voters until each has heard it."""

    election_deadline_ms: int
    preferred_candidates: tuple[ReplicaKey, ...]
    unacknowledged: set[int]


Role = Unattached | Prospective | Candidate | Leader | Follower | Resigned


def name_of(role: Role) -> str:
    return type(role).__name__.lower()
