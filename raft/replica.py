"""The state of one replica and its changes of role.

Every other module of the core is functions over a `Replica`: elections, leadership, following. Only the
`become_` methods below change the role, each after asking the table of legal transitions; only `_set_state`
changes what must outlive a crash, and what it sets leaves in the next `Ready` ahead of any message.
"""

from dataclasses import dataclass, field
from typing import assert_never

from raft.accumulator import Accumulator
from raft.batches import LogBatch
from raft.config import QuorumConfig
from raft.connections import Connections
from raft.control_batches import leader_change_batch
from raft.log_index import LogIndex
from raft.messages import NO_LEADER, UNKNOWN_OFFSET, Request, Response
from raft.ports import Dice
from raft.ready import LeaderAndEpoch, OutboundRequest, OutboundResponse, QuorumState, RoleChanged
from raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Role, Unattached, name_of
from raft.transitions import check_transition
from raft.voters import ReplicaKey, VoterSet


@dataclass(slots=True)
class Outbox:
    """What gathers between two `take_ready` calls."""

    truncate_to: int | None = None
    append: list[LogBatch] = field(default_factory=list)
    quorum_state: QuorumState | None = None
    requests: list[OutboundRequest] = field(default_factory=list)
    responses: list[OutboundResponse] = field(default_factory=list)
    role_changes: list[RoleChanged] = field(default_factory=list)


class Replica:
    def __init__(
        self,
        config: QuorumConfig,
        voters: VoterSet,
        log: LogIndex,
        state: QuorumState,
        dice: Dice,
        accumulator: Accumulator,
    ) -> None:
        self.config = config
        self.voters = voters
        self.log = log
        self.state = state
        self.dice = dice
        self.accumulator = accumulator
        self.connections = Connections(config)
        self.role: Role = Unattached(election_deadline_ms=None)
        self.high_watermark = UNKNOWN_OFFSET
        self.announced = LeaderAndEpoch(NO_LEADER, -1)
        self.is_shutting_down = False
        self.displaced_fetches: list[int] = []
        # Following: where the one Fetch in flight went, and whether the leader failed to answer the last one.
        self.fetch_destination: int | None = None
        self.leader_is_silent = False
        # Which leader's fetch timeout ran out here: others may go on naming it for a while, and are not believed.
        self.silent_leader: LeaderAndEpoch | None = None
        self.outbox = Outbox()

    # What is asked everywhere

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.config.node_id, self.config.directory_id)

    @property
    def epoch(self) -> int:
        return self.state.leader_epoch

    @property
    def leader_id(self) -> int:
        return self.state.leader_id

    @property
    def is_voter(self) -> bool:
        return self.config.can_be_voter and self.voters.contains(self.key)

    @property
    def other_voters(self) -> tuple[int, ...]:
        return self.voters.others(self.config.node_id)

    def random_election_timeout_ms(self) -> int:
        base = self.config.election_timeout_ms
        return base + self.dice.randint(0, base - 1)

    def random_fetch_timeout_ms(self) -> int:
        """Followers of one leader hear it at the same moments, so with one and the same timeout they would all give
        it up in the same millisecond, and split the votes. An eighth more spreads them wider than an election takes."""
        base = self.config.fetch_timeout_ms
        return base + self.dice.randint(0, base // 8)

    # What leaves

    def send(self, destination_id: int, request: Request, now_ms: int) -> None:
        correlation_id = self.connections.sent(destination_id, now_ms)
        self.outbox.requests.append(OutboundRequest(correlation_id, destination_id, request))

    def respond(self, request_id: int, response: Response) -> None:
        self.outbox.responses.append(OutboundResponse(request_id, response))

    # The log

    def append(self, batch: LogBatch) -> None:
        self.log.append(batch)
        self.outbox.append.append(batch)

    def truncate_to(self, end_offset: int) -> None:
        """Cut the log; batches that have not left for the store yet are simply forgotten."""
        stored_end = self.outbox.append[0].base_offset if self.outbox.append else self.log.log_end_offset
        self.outbox.append = [batch for batch in self.outbox.append if batch.next_offset <= end_offset]
        self.log.truncate_to(end_offset)
        if end_offset >= stored_end:
            return
        if self.outbox.truncate_to is None:
            # Two cuts in one turn reach the store as one, so they count as one (see `LogFlushed.truncations`).
            self.log.truncations += 1
        self.outbox.truncate_to = end_offset

    # Changes of role

    def become_unattached(self, epoch: int, now_ms: int, cause: str, leader_id: int = NO_LEADER) -> None:
        deadline = self._unattached_deadline_ms(epoch, now_ms)
        self._leave(Unattached(deadline), epoch, cause)
        voted = self.state.voted if epoch == self.epoch else None
        self._set_state(QuorumState(leader_epoch=epoch, leader_id=leader_id, voted=voted))

    def _unattached_deadline_ms(self, epoch: int, now_ms: int) -> int | None:
        """A stream of rivals' epochs must not put off this replica's own candidacy for ever: what remains is kept."""
        if not self.is_voter:
            return None
        if not self.other_voters:
            return now_ms
        role = self.role
        if epoch > self.epoch and isinstance(role, Unattached | Prospective | Candidate | Resigned):
            remaining_until_ms = role.election_deadline_ms
            if remaining_until_ms is not None and remaining_until_ms > now_ms:
                return remaining_until_ms
        return now_ms + self.random_election_timeout_ms()

    def become_prospective(self, now_ms: int, cause: str) -> None:
        assert self.is_voter
        role = Prospective(now_ms + self.random_election_timeout_ms(), granted={self.config.node_id})
        self._leave(role, self.epoch, cause)

    def become_candidate(self, now_ms: int, cause: str) -> None:
        assert self.is_voter
        role = Candidate(now_ms + self.random_election_timeout_ms(), granted={self.config.node_id})
        epoch = self.epoch + 1
        self._leave(role, epoch, cause)
        self._set_state(QuorumState(leader_epoch=epoch, leader_id=NO_LEADER, voted=self.key))

    def become_leader(self, now_ms: int) -> None:
        role = self.role
        assert isinstance(role, Candidate)
        assert len(role.granted) >= self.voters.majority
        leader = Leader(
            epoch_start_offset=self.log.log_end_offset,
            check_quorum_deadline_ms=now_ms + self.config.check_quorum_timeout_ms,
            granting_voters=frozenset(role.granted),
            begin_epoch_due_ms=dict.fromkeys(self.other_voters, now_ms),
        )
        self._leave(leader, self.epoch, "won the election")
        self._set_state(
            QuorumState(leader_epoch=self.epoch, leader_id=self.config.node_id, voted=self.state.voted)
        )
        # The high watermark must be found anew: only a record of this epoch may commit older ones (Raft §5.4.2).
        # What was known stays known to readers; `leadership` never lowers it.
        self.append(
            leader_change_batch(
                self.log.log_end_offset,
                self.epoch,
                now_ms,
                self.config.node_id,
                self.voters.ids,
                role.granted,
            )
        )
        self.accumulator.begin(self.epoch, self.log.log_end_offset)

    def become_follower(self, epoch: int, leader_id: int, now_ms: int, cause: str) -> None:
        assert leader_id != self.config.node_id, f"asked to follow itself in epoch {epoch}"
        assert epoch > self.epoch or self.leader_id in (NO_LEADER, leader_id), (
            f"two leaders in epoch {epoch}: {self.leader_id} and {leader_id}"
        )
        deadline_ms = now_ms + self._first_fetch_timeout_ms(epoch)
        self._leave(Follower(deadline_ms, self.random_fetch_timeout_ms()), epoch, cause)
        voted = self.state.voted if epoch == self.epoch else None
        self._set_state(QuorumState(leader_epoch=epoch, leader_id=leader_id, voted=voted))

    def _first_fetch_timeout_ms(self, epoch: int) -> int:
        """A replica that could not win a pre-vote gives the leader it had given up only as long as an election."""
        if isinstance(self.role, Prospective) and epoch == self.epoch and self.leader_id != NO_LEADER:
            return min(self.config.fetch_timeout_ms, self.random_election_timeout_ms())
        return self.config.fetch_timeout_ms

    def become_resigned(self, now_ms: int, cause: str, preferred: tuple[ReplicaKey, ...]) -> None:
        role = Resigned(now_ms + self.random_election_timeout_ms(), preferred, set(self.other_voters))
        self._leave(role, self.epoch, cause)

    def record_vote(self, candidate: ReplicaKey, now_ms: int) -> None:
        """Remember the vote; the answer may leave only with the state on disk, which `Ready` sees to."""
        assert self.state.voted is None
        self._set_state(QuorumState(leader_epoch=self.epoch, leader_id=self.leader_id, voted=candidate))
        if isinstance(self.role, Unattached) and self.role.election_deadline_ms is not None:
            self.role.election_deadline_ms = now_ms + self.random_election_timeout_ms()

    def _leave(self, role: Role, epoch: int, cause: str) -> None:
        check_transition(name_of(self.role), name_of(role), source_epoch=self.epoch, target_epoch=epoch)
        if isinstance(self.role, Leader):
            self._stop_leading(self.role)
        self.role = role
        self.connections.reset()
        self.fetch_destination = None
        self.leader_is_silent = False
        self.outbox.role_changes.append(RoleChanged(name_of(role), epoch, cause))

    def _stop_leading(self, leader: Leader) -> None:
        """Close the open batch: its offsets were promised, though it may yet be cut. Waiting fetches are turned away
        when the new epoch and leader are known (`displaced_fetches`)."""
        for batch in self.accumulator.drain():
            self.append(batch)
        self.accumulator.end()
        self.displaced_fetches.extend(parked.request_id for parked in leader.parked)

    def _set_state(self, state: QuorumState) -> None:
        assert state.leader_epoch >= self.state.leader_epoch
        if state != self.state:
            self.state = state
            self.outbox.quorum_state = state


def deadline_of(role: Role) -> int | None:
    """When the role itself wants to be looked at again."""
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
