"""One replica: what it knows, how messages and batches leave it, and its changes of role.

Every other module of the core is functions over a `Replica`: elections, the leader, the follower. Only the `become_`
methods change the role, each after asking the table of legal transitions; only `_set_state` changes what must outlive
a crash, and what it sets leaves in the next `Ready` ahead of any message.
"""

from collections.abc import Sequence

from kquorum.raft.batches import Accumulator, leader_change_batch
from kquorum.raft.config import QuorumConfig
from kquorum.raft.connections import Connections
from kquorum.raft.log_index import LogIndex
from kquorum.raft.messages import (
    MAX_EPOCH,
    NO_LEADER,
    UNKNOWN_OFFSET,
    ChangeVotersResponse,
    Request,
    Response,
    TransferLeadershipResponse,
)
from kquorum.raft.ports import RandomSource
from kquorum.raft.ready import (
    LeaderAndEpoch,
    OutboundRequest,
    OutboundResponse,
    Outbox,
    QuorumState,
    ReadRefused,
    RoleChanged,
)
from kquorum.raft.roles import (
    Candidate,
    Download,
    Follower,
    HandedOver,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
    check_transition,
    name_of,
)
from kquorum.raft.voters import (
    BEFORE_THE_LOG,
    Endpoint,
    ReplicaKey,
    Voter,
    VoterHistory,
    VoterSet,
    voters_record,
)
from kquorum.wire.control_records import KRaftVersionRecord, VotersRecord
from kquorum.wire.log_batch import LogBatch
from kquorum.wire.messages.error_codes import ErrorCode

# Bootstrap servers are no replicas yet: they are addressed as -2, -3, ... in the order of the configuration.
FIRST_BOOTSTRAP_ID = -2


class Replica:
    def __init__(
        self,
        config: QuorumConfig,
        voter_history: VoterHistory,
        log: LogIndex,
        state: QuorumState,
        random_source: RandomSource,
        accumulator: Accumulator,
    ) -> None:
        self.config = config
        self.key = ReplicaKey(config.node_id, config.directory_id)
        self.voter_history = voter_history
        self._others_of: VoterSet | None = None
        self._others: tuple[int, ...] = ()
        self.log = log
        self.state = state
        self.random_source = random_source
        self.accumulator = accumulator
        self.connections = Connections(config)
        self.role: Role = Unattached(election_deadline_ms=None)
        self.high_watermark = _committed_in(log)
        self.announced = LeaderAndEpoch(NO_LEADER, -1)
        self.is_shutting_down = False
        self.awaits_successor = False
        self.displaced_fetches: list[int] = []
        # The request for the transfer is answered when the target leads: see `raft.leader.leadership_transfer`.
        self.handed_over: HandedOver | None = None
        # Following: where the one Fetch in flight went, and whether the leader failed to answer the last one.
        self.fetch_destination: int | None = None
        self.leader_is_silent = False
        # To which leader this static voter has said who it is (kraft.version 0).
        self.reported_to: LeaderAndEpoch | None = None
        # The snapshot that the adapter is putting in the place of the log; all of it has come.
        self.installing: Download | None = None
        # Pieces of snapshots, of whichever download, that the adapter has not written yet.
        self.unwritten_pieces = 0
        # Where the leader said that it listens; the voter set says so too, once this replica has read that far.
        self.leader_endpoints: tuple[Endpoint, ...] = ()
        # It may have given votes, and acknowledged records, that it has forgotten: see `raft.recovery`.
        self.has_lost_its_state = config.has_lost_its_state and not self._is_alone_with_its_log()
        # The last epoch in which it may have acknowledged records that its log has lost: see `raft.recovery`.
        self.damaged_epoch: int | None = None
        if config.damaged_until is not None:
            self.damaged_epoch = max(state.leader_epoch, log.last_epoch)
        # Below this, where the leader of that epoch said that its log ends, is all that may be lost.
        self.lost_until: int | None = None
        # There is no space for anything but the election state: see `raft.full_disk`.
        self.writes_are_paused = False
        # Which leader's fetch timeout ran out here: others may go on naming it for a while, and are not believed.
        self.silent_leader: LeaderAndEpoch | None = None
        # Which leader said that it leaves: it never leads that epoch again.
        self.departed: LeaderAndEpoch | None = None
        self.outbox = Outbox()

    def _is_alone_with_its_log(self) -> bool:
        """A sole voter that still has its log misses nothing: there was no other voter to vote for."""
        return self.is_voter and not self.other_voters and self.log.log_end_offset > 0

    # What is asked everywhere

    @property
    def epoch(self) -> int:
        return self.state.leader_epoch

    @property
    def leader_id(self) -> int:
        return self.state.leader_id

    @property
    def voters(self) -> VoterSet:
        """The voters in force: the newest set of the log, committed or not."""
        return self.voter_history.voters

    @property
    def is_voter(self) -> bool:
        return self.config.can_be_voter and self.voters.contains(self.key)

    @property
    def may_stand(self) -> bool:
        """Voters may stand, and a replica whose removal is not known to be committed: with the longer log it can deny
        its vote to all others, so that without it no leader could be elected (Ongaro's dissertation, 4.2.2)."""
        if self.has_lost_its_state or not self.config.can_be_voter or self.epoch >= MAX_EPOCH:
            return False
        if self.installing is not None or self.damaged_epoch is not None or self.writes_are_paused:
            return False
        return self.is_voter or self.voter_history.is_leaving(self.key, self.high_watermark)

    @property
    def other_voters(self) -> tuple[int, ...]:
        voters = self.voters
        if voters is not self._others_of:
            self._others_of, self._others = voters, voters.others(self.config.node_id)
        return self._others

    @property
    def own_entry(self) -> Voter:
        """What the voter set should say of this replica."""
        return Voter(self.key, self.config.endpoints, self.config.kraft_versions)

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        """Where a node listens: a bootstrap server (-2, -3, ...), the leader, or a voter."""
        if node_id <= FIRST_BOOTSTRAP_ID:
            return self.config.bootstrap_servers[FIRST_BOOTSTRAP_ID - node_id]
        voter = self.voters.voters.get(node_id)
        endpoints = voter.endpoints if voter is not None else ()
        if node_id == self.leader_id and self.leader_endpoints:
            endpoints = self.leader_endpoints
        return self.quorum_endpoint(endpoints)

    def quorum_endpoint(self, endpoints: Sequence[Endpoint]) -> Endpoint | None:
        """Of a node's listeners, the one by which this quorum's replicas speak to each other."""
        names = [endpoint.listener for endpoint in self.config.endpoints[:1]]
        named = (endpoint for endpoint in endpoints if endpoint.listener in names)
        return next(named, endpoints[0] if endpoints else None)

    def is_new_address(self, endpoints: Sequence[Endpoint]) -> bool:
        """Whether a message that names this replica's leader says of it another address than the one known here."""
        return self.quorum_endpoint(endpoints) not in (None, self.endpoint_of(self.leader_id))

    @property
    def known_leader_endpoints(self) -> tuple[Endpoint, ...]:
        """For messages that name the leader, this replica itself perhaps."""
        if self.leader_id == self.config.node_id and self.config.endpoints:
            return self.config.endpoints
        endpoint = self.endpoint_of(self.leader_id) if self.leader_id >= 0 else None
        return () if endpoint is None else (endpoint,)

    def random_election_timeout_ms(self) -> int:
        base = self.config.election_timeout_ms
        return base + self.random_source.randint(0, base - 1)

    def random_fetch_timeout_ms(self) -> int:
        """Followers of one leader hear it at the same moments, so with one and the same timeout they would all give
        it up in the same millisecond, and split the votes. An eighth more spreads them wider than an election takes."""
        base = self.config.fetch_timeout_ms
        return base + self.random_source.randint(0, base // 8)

    @property
    def own_entry_is_stale(self) -> bool:
        """Whether the voter set says of this voter what is no longer true."""
        if not self.is_voter or not self.config.endpoints:
            return False
        return self.voters.voters[self.config.node_id] != self.own_entry

    def first_voter_check_ms(self, now_ms: int) -> int:
        """Static voters report themselves at once; dynamic ones read what the log says of them first."""
        is_static_voter = self.is_voter and self.voter_history.kraft_version == 0
        return now_ms + (0 if is_static_voter else self.config.update_voter_period_ms)

    # What leaves

    def send(
        self, destination_id: int, request: Request, now_ms: int, endpoint: Endpoint | None = None
    ) -> None:
        correlation_id = self.connections.sent(destination_id, now_ms)
        where = endpoint or self.endpoint_of(destination_id)
        self.outbox.requests.append(OutboundRequest(correlation_id, destination_id, request, where))

    def respond(self, request_id: int, response: Response) -> None:
        self.outbox.responses.append(OutboundResponse(request_id, response))

    # The log

    def append(self, batch: LogBatch) -> None:
        self.log.append(batch)
        self.voter_history.append(batch)
        self.outbox.append.append(batch)

    def truncate_to(self, end_offset: int) -> None:
        """Cut the log; batches that have not left for the store yet are simply forgotten."""
        stored_end = self.outbox.append[0].base_offset if self.outbox.append else self.log.log_end_offset
        self.log.truncate_to(end_offset)
        self.voter_history.truncate_to(end_offset)
        if self.outbox.cut(end_offset, stored_end):
            # Two cuts in one turn reach the store as one, so they count as one (see `LogFlushed.truncations`).
            self.log.truncations += 1

    # Changes of role

    def become_unattached(self, epoch: int, now_ms: int, cause: str, leader_id: int = NO_LEADER) -> None:
        deadline = None if epoch >= MAX_EPOCH else self._unattached_deadline_ms(now_ms)
        self._leave(Unattached(deadline), epoch, cause)
        voted = self.state.voted if epoch == self.epoch else None
        self._set_state(QuorumState(leader_epoch=epoch, leader_id=leader_id, voted=voted))

    def _unattached_deadline_ms(self, now_ms: int) -> int | None:
        """A replica that already waits keeps what remains of its wait (rule R5.1): otherwise rivals with ever newer
        epochs could put off its own candidacy for ever.

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
        """A candidate that lost passes through here also where no epoch is left to stand in (`stop_standing`)."""
        assert self.may_stand or isinstance(self.role, Candidate)
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
        # The leader must find its own high watermark: only a record of this epoch may commit older ones (Raft §5.4.2).
        # The high watermark that is already known stays: `maybe_advance_high_watermark` never lowers it (rule R4.3).
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
        """The control records behind a new leader's LeaderChange (rule R5.6): the voters of the bootstrap checkpoint if
        the log has none yet, and the leader's own entry if its address or versions have changed (KIP-853)."""
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
        """Put the vote into the election state. The driver writes `Ready.quorum_state` to the disk before the answer
        leaves (rule R3.2), so a restarted replica does not vote twice."""
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
        if leader.change is not None and leader.change.request_id is not None:
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


def _committed_in(log: LogIndex) -> int:
    """What is committed for certain before any message came in: snapshots are taken of nothing else."""
    return max((each.offset for each in log.snapshots if each.offset > 0), default=UNKNOWN_OFFSET)
