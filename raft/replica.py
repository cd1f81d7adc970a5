"""One replica and its changes of role.

Every other module of the core is functions over a `Replica`: elections, leadership, following. Only the
`become_` methods below change the role, each after asking the table of legal transitions; only `_set_state`
changes what must outlive a crash, and what it sets leaves in the next `Ready` ahead of any message.
"""

from kio.schema.errors import ErrorCode

from raft.control_batches import leader_change_batch
from raft.messages import (
    NO_LEADER,
    ChangeVotersResponse,
    TransferLeadershipResponse,
)
from raft.quorum_records import voters_record
from raft.ready import (
    QuorumState,
    ReadRefused,
    RoleChanged,
)
from raft.replica_state import ReplicaState
from raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Role, Unattached, name_of
from raft.transitions import check_transition
from raft.voter_history import BEFORE_THE_LOG
from raft.voters import Endpoint, ReplicaKey
from wire.control_records import KRaftVersionRecord, VotersRecord


class Replica(ReplicaState):
    """`ReplicaState` says what it knows; what it may become is here."""

    def become_unattached(self, epoch: int, now_ms: int, cause: str, leader_id: int = NO_LEADER) -> None:
        deadline = self._unattached_deadline_ms(now_ms)
        self._leave(Unattached(deadline), epoch, cause)
        voted = self.state.voted if epoch == self.epoch else None
        self._set_state(QuorumState(leader_epoch=epoch, leader_id=leader_id, voted=voted))

    def _unattached_deadline_ms(self, now_ms: int) -> int | None:
        """A stream of rivals' epochs must not put off this replica's own candidacy for ever: what remains is kept.

        A pre-vote that a majority refused is not repeated before another election timeout.
        """
        if not self.may_stand:
            return None
        if not self.other_voters:
            return now_ms
        role = self.role
        is_lost = isinstance(role, Prospective) and role.is_lost(self.voters)
        if isinstance(role, Unattached | Prospective | Candidate | Resigned) and not is_lost:
            deadline_ms = role.election_deadline_ms
            if deadline_ms is not None:
                return max(deadline_ms, now_ms)
        return now_ms + self.random_election_timeout_ms()

    def maybe_await_election(self, now_ms: int) -> None:
        """What kept this replica from standing is over: wait for a leader like any voter, if there is none."""
        role = self.role
        if isinstance(role, Unattached) and role.election_deadline_ms is None:
            role.election_deadline_ms = self._unattached_deadline_ms(now_ms)

    def become_prospective(self, now_ms: int, cause: str) -> None:
        assert self.may_stand
        role = Prospective(now_ms + self.random_election_timeout_ms(), cause, granted=self._own_vote())
        self._leave(role, self.epoch, cause)

    def become_candidate(self, now_ms: int, cause: str) -> None:
        assert self.may_stand
        role = Candidate(now_ms + self.random_election_timeout_ms(), cause, granted=self._own_vote())
        epoch = self.epoch + 1
        self._leave(role, epoch, cause)
        self._set_state(QuorumState(leader_epoch=epoch, leader_id=NO_LEADER, voted=self.key))

    def _own_vote(self) -> set[int]:
        return {self.config.node_id} if self.is_voter else set()

    def become_leader(self, now_ms: int) -> None:
        role = self.role
        assert isinstance(role, Candidate)
        assert len(role.granted) >= self.voters.majority
        leader = Leader(
            epoch_start_offset=self.log.log_end_offset,
            announced_from=self.log.log_end_offset + 1,
            check_quorum_deadline_ms=now_ms + self.config.check_quorum_timeout_ms,
        )
        self._leave(leader, self.epoch, role.cause)
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
                self._first_quorum_records(),
            )
        )
        self.accumulator.begin(self.epoch, self.log.log_end_offset)

    def _first_quorum_records(self) -> tuple[KRaftVersionRecord | VotersRecord, ...]:
        """The bootstrap checkpoint's voters must get into the log, and the leader's own move as well (KIP-853)."""
        history = self.voter_history
        if history.kraft_version == 0:
            return ()
        is_new = history.voters_offset == BEFORE_THE_LOG
        if not is_new and not self.own_entry_is_stale:
            return ()
        voters = self.voters.updated(self.own_entry) if self.own_entry_is_stale else self.voters
        version = KRaftVersionRecord(k_raft_version=history.kraft_version)
        return (version, voters_record(voters))

    def become_follower(
        self, epoch: int, leader_id: int, now_ms: int, cause: str, endpoints: tuple[Endpoint, ...] = ()
    ) -> None:
        assert leader_id != self.config.node_id, f"asked to follow itself in epoch {epoch}"
        assert epoch > self.epoch or self.leader_id in (NO_LEADER, leader_id), (
            f"two leaders in epoch {epoch}: {self.leader_id} and {leader_id}"
        )
        deadline_ms = now_ms + self._first_fetch_timeout_ms(epoch)
        check_ms = self.first_voter_check_ms(now_ms)
        self._leave(Follower(deadline_ms, self.random_fetch_timeout_ms(), check_ms), epoch, cause)
        voted = self.state.voted if epoch == self.epoch else None
        self._set_state(QuorumState(leader_epoch=epoch, leader_id=leader_id, voted=voted))
        self.leader_endpoints = endpoints or self.leader_endpoints

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
        when the new epoch and leader are known (`displaced_fetches`), all else that waits at once."""
        for batch in self.accumulator.drain():
            self.append(batch)
        self.accumulator.end()
        self.displaced_fetches.extend(parked.request_id for parked in leader.parked.values())
        error = ErrorCode.not_leader_or_follower
        if leader.change is not None:
            message = "the leader lost its epoch; look at the voters before you ask again"
            self.respond(leader.change.request_id, ChangeVotersResponse(error=error, message=message))
        if leader.transfer is not None and leader.transfer.request_id is not None:
            message = "the leader lost its epoch before the hand-over"
            self.respond(leader.transfer.request_id, TransferLeadershipResponse(error=error, message=message))
        self.outbox.reads.extend(ReadRefused(read.read_id, NO_LEADER, self.epoch) for read in leader.reads)
        leader.change, leader.transfer, leader.reads = None, None, []

    def _set_state(self, state: QuorumState) -> None:
        assert state.leader_epoch >= self.state.leader_epoch
        if (state.leader_id, state.leader_epoch) != (self.leader_id, self.epoch):
            self.leader_endpoints = ()
        if state != self.state:
            self.state = state
            self.outbox.quorum_state = state
