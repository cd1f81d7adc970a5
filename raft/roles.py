"""The roles of a replica: what each one holds, which change of role is legal, and why a role is taken.

Epoch, leader and vote are common to all roles and live in `QuorumState`, because they must outlive a crash.

A change of role is named by the role that is left, the role that is taken, and whether the epoch stays the same. A
change that is not in `TRANSITIONS` raises: it is a bug of this program, and going on could elect two leaders
(rule R4; KIP-595, KIP-853, KIP-996).
"""

from dataclasses import dataclass, field
from typing import Final, Literal, assert_never
from uuid import UUID

from kquorum.raft.leader.delayed_fetches import DelayedFetches
from kquorum.raft.messages import AddRaftVoterRequest
from kquorum.raft.voters import ZERO_DIRECTORY, ReplicaKey, Voter, VoterSet
from kquorum.wire.log_batch import OffsetAndEpoch

# Why an election began.
FETCH_TIMEOUT: Final = "fetch timeout"
NO_LEADER_HEARD: Final = "no leader was heard of"
LEADER_LEFT: Final = "the leader left"
# Why a leader stepped down.
SHUTDOWN: Final = "shutdown"
CHECK_QUORUM: Final = "no majority of the voters fetched in time"
CONTROLLER_RESIGNED: Final = "the controller asked for it"
REMOVED: Final = "it was removed from the voters"
NO_SPACE: Final = "no space is left on its disk"
TRANSFER: Final = "leadership was transferred to node %d"
# How a replica begins.
STARTED: Final = "started"
RESTARTED_LEADER: Final = "started again, having led this epoch"


@dataclass(slots=True)
class Unattached:
    """Knows its epoch, and no leader that it could fetch from. Observers have no election deadline."""

    election_deadline_ms: int | None


@dataclass(slots=True)
class Nominee:
    """What prospective and candidate share: a tally over the voters, this replica's own vote included.

    `cause` is why the election began. The voter set cannot change meanwhile: it does so by appending or cutting
    the log, which nominees never do.
    """

    election_deadline_ms: int
    cause: str
    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)
    is_withdrawn: bool = False

    def is_lost(self, voters: VoterSet) -> bool:
        """Whether so many have refused that no majority is left."""
        return len(voters) - len(self.rejected) < voters.majority


@dataclass(slots=True)
class Prospective(Nominee):
    """Asks whether it could win an election before it disturbs the others with a new epoch (KIP-996).

    `stands_from_ms` is when it would stand at the earliest: it has granted a rival's pre-vote."""

    stands_from_ms: int | None = None


@dataclass(slots=True)
class Candidate(Nominee):
    """Stands for election in an epoch of its own."""


@dataclass(slots=True)
class ReplicaProgress:
    """What the leader knows of another replica; -1 is unknown.

    `has_caught_up` says that it reached the end of the log, and has not shown since that it lost part of its own.
    `directory_id` is what its last Fetch named: a static voter is known by its id, whatever disk it has.
    """

    end_offset: int = -1
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    leader_end_offset_at_fetch: int = -1
    has_caught_up: bool = False
    directory_id: UUID = ZERO_DIRECTORY

    def forget_catching_up(self) -> None:
        """What it fetched before proves nothing any more. When it was caught up last stays true."""
        self.has_caught_up = False
        self.leader_end_offset_at_fetch = -1

    def begin_round(self, log_end_offset: int) -> None:
        """It has caught up once a later Fetch reaches `log_end_offset`, or where the log ended at a later Fetch."""
        self.has_caught_up = False
        self.leader_end_offset_at_fetch = log_end_offset


@dataclass(slots=True)
class PendingAdd:
    """An AddRaftVoter before its record is appended: the node is asked what it supports, then has to fetch once more up
    to the end of the log.

    `voter` is what the voter set will say of the node, once it has answered. `request_id` is None once the request was
    answered: a replica that adds itself does not fetch before that.
    """

    request_id: int | None
    request: AddRaftVoterRequest
    deadline_ms: int
    voter: Voter | None = None


@dataclass(slots=True)
class PendingCommit:
    """A change of the voters that stands in the log at `offset`, and whose request waits for the commit."""

    request_id: int
    offset: int
    deadline_ms: int


@dataclass(slots=True)
class PendingTransfer:
    """A hand-over that waits for `target_id` to have the whole log; nothing is proposed meanwhile.

    Without a `request_id` no caller asked for it: the leader's disk is full, and it leaves in any case.
    """

    request_id: int | None
    target_id: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class HandedOver:
    """A hand-over for which this replica resigned in `epoch`, at `since_ms`; its request waits for a new leader."""

    request_id: int
    target_id: int
    epoch: int
    since_ms: int
    deadline_ms: int


@dataclass(slots=True)
class PendingRead:
    """A linearizable read. It is confirmed once a majority of the voters said, after it began, that they still follow.

    A Fetch by itself does not say so: it may have been under way since before (etcd#20418). These do: the answer to a
    request sent since (correlation ids from `first_correlation_id` on), and a fetch offset above `log_end_offset`,
    the end of the log when the read began.
    """

    read_id: int
    first_correlation_id: int
    log_end_offset: int
    confirmed_by: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Leader:
    """Appends, serves fetches, and finds what a majority has on disk.

    Invariant: `epoch_start_offset` is the offset of this epoch's LeaderChange record, the first it wrote.

    `announced_from` is the end of the log that must be committed before the state machine hears that it leads.

    `reported_voters` is what static voters said of themselves: the upgrade of kraft.version needs it.

    `parked` are the fetches that wait; those of them that are due were left to the next turn.
    """

    epoch_start_offset: int
    announced_from: int
    check_quorum_deadline_ms: int
    progress: dict[ReplicaKey, ReplicaProgress] = field(default_factory=dict)
    fetched_since_check: set[int] = field(default_factory=set)
    begin_epoch_due_ms: dict[int, int] = field(default_factory=dict)
    parked: DelayedFetches = field(default_factory=DelayedFetches)
    reported_voters: dict[int, Voter] = field(default_factory=dict)
    change: PendingAdd | PendingCommit | None = None
    transfer: PendingTransfer | None = None
    reads: list[PendingRead] = field(default_factory=list)


@dataclass(slots=True)
class Download:
    """A snapshot that is being fetched: how many bytes are here, and how many it has in all once that is known.

    `only_shows_life` says that the request under way to the leader is a sign of life, so that its answer is no piece.
    """

    snapshot_id: OffsetAndEpoch
    position: int = 0
    size: int | None = None
    only_shows_life: bool = False


@dataclass(slots=True)
class Follower:
    """Fetches from the leader; `has_fetched` is why it refuses pre-votes: it still hears that leader.

    `fetch_timeout_ms` is the configured one and a little more, drawn for each leader. `voter_check_due_ms` is when it
    checks next whether the voter set says of it what is true. `leader_confirmations` are the voters that have named
    this leader since this replica lost its election state. `asks_for_end` says that the Fetch under way to the leader
    asks where the leader's log ends (`raft.recovery`).
    """

    fetch_deadline_ms: int
    fetch_timeout_ms: int
    voter_check_due_ms: int
    has_fetched: bool = False
    leader_left: bool = False
    asks_leader: bool = False
    asks_for_end: bool = False
    leader_confirmations: set[int] = field(default_factory=set)
    # Where this leader's log ended when a replica that had lost its state asked: see `raft.recovery`.
    leader_end: int | None = None
    download: Download | None = None

    def hear_of_leader(self, now_ms: int) -> None:
        """The leader has answered. What it sent before it left may arrive after EndQuorumEpoch, and must not undo
        it."""
        if not self.leader_left:
            self.fetch_deadline_ms = now_ms + self.fetch_timeout_ms
            self.has_fetched = True


@dataclass(slots=True)
class Resigned:
    """Led this epoch and will not lead it again; tells the voters until each has heard it."""

    election_deadline_ms: int
    preferred_candidates: tuple[ReplicaKey, ...]
    unacknowledged: set[int]


Role = Unattached | Prospective | Candidate | Leader | Follower | Resigned


def name_of(role: Role) -> str:
    return type(role).__name__.lower()


def deadline_of(role: Role) -> int | None:
    """When the role itself wants to be looked at again, in ms."""
    match role:
        case Unattached():
            return role.election_deadline_ms
        case Prospective() | Candidate() | Resigned():
            return role.election_deadline_ms
        case Follower():
            return role.fetch_deadline_ms
        case Leader():
            return role.check_quorum_deadline_ms
        case _:
            assert_never(role)


ROLES: Final = ("unattached", "prospective", "candidate", "leader", "follower", "resigned")


@dataclass(frozen=True, slots=True)
class Transition:
    """One legal move; `trigger` says what brings it about, for the reader of docs/raft-roles.md."""

    source: str
    target: str
    epoch: Literal["same", "higher"]
    trigger: str


TRANSITIONS: Final = (
    Transition("unattached", "prospective", "same", "a voter's election timeout ran out"),
    Transition(
        "unattached", "follower", "same", "the leader of the epoch became known, and where it listens"
    ),
    Transition(
        "prospective", "candidate", "higher", "a majority would vote for it, or a voter knows no pre-vote"
    ),
    Transition("prospective", "unattached", "same", "pre-vote lost or timed out, no leader known"),
    Transition(
        "prospective", "follower", "same", "pre-vote lost or timed out with the leader known, or it spoke up"
    ),
    Transition("candidate", "leader", "same", "a majority voted for it"),
    Transition("candidate", "prospective", "same", "election timed out"),
    Transition("candidate", "follower", "same", "another candidate won the epoch"),
    Transition("follower", "prospective", "same", "a voter's fetch timeout ran out, or its leader left"),
    Transition("follower", "unattached", "same", "an observer's fetch timeout ran out"),
    Transition(
        "leader", "resigned", "same", "shutdown, no majority fetched, hand-over, or its own removal committed"
    ),
    *(
        Transition(role, "unattached", "higher", "a peer is in a newer epoch")
        for role in ROLES
        if role != "resigned"
    ),
    Transition(
        "resigned", "unattached", "higher", "a peer is in a newer epoch, or no other node took over in time"
    ),
    *(Transition(role, "follower", "higher", "a peer named the leader of a newer epoch") for role in ROLES),
)

_LEGAL: Final = frozenset((move.source, move.target, move.epoch) for move in TRANSITIONS)


class IllegalTransitionError(Exception):
    """A change of role that no rule allows."""


def check_transition(source: str, target: str, *, source_epoch: int, target_epoch: int) -> None:
    """Raise IllegalTransitionError unless `source` may become `target` (rule R4.1)."""
    if target_epoch < source_epoch:
        raise IllegalTransitionError(
            f"{source} of epoch {source_epoch} cannot go back to epoch {target_epoch}"
        )
    if (source, target, "same" if target_epoch == source_epoch else "higher") not in _LEGAL:
        raise IllegalTransitionError(
            f"{source} of epoch {source_epoch} cannot become {target} of epoch {target_epoch}"
        )
