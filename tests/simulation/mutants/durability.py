"""Safeguards against forgetting: what is said must be on disk first."""

from unittest.mock import patch

from kquorum.raft import recovery
from kquorum.raft.leader import majority
from kquorum.raft.log_index import LogIndex
from kquorum.raft.messages import NO_LEADER, FetchResponse
from kquorum.raft.replica import Replica
from kquorum.raft.roles import Candidate, Follower, Leader
from kquorum.raft.voters import ReplicaKey, Voter
from kquorum.wire.log_batch import LogBatch
from tests.simulation.mutants.registry import Patch, everywhere, mutant


@mutant(schedule="second_candidate_of_an_epoch")
def vote_without_persisting() -> Patch:
    """A vote is on disk before it is given."""
    record_vote = Replica.record_vote

    def forgetful(self: Replica, candidate: ReplicaKey, now_ms: int) -> None:
        state = self.outbox.quorum_state
        record_vote(self, candidate, now_ms)
        self.outbox.quorum_state = state

    return patch.object(Replica, "record_vote", forgetful)


@mutant(schedule="parked_at_a_leader_that_resigns")
def epoch_without_persisting() -> Patch:
    """A newer epoch is on disk before this replica sends it to any other."""
    become_unattached = Replica.become_unattached

    def forgetful(self: Replica, epoch: int, now_ms: int, cause: str, leader_id: int = NO_LEADER) -> None:
        state = self.outbox.quorum_state
        become_unattached(self, epoch, now_ms, cause, leader_id)
        self.outbox.quorum_state = state

    return patch.object(Replica, "become_unattached", forgetful)


@mutant(schedule="figure_8")
def candidacy_without_persisting() -> Patch:
    """A candidate's vote for itself is on disk before it asks for others'."""
    become_candidate = Replica.become_candidate

    def forgetful(self: Replica, now_ms: int, cause: str) -> None:
        state = self.outbox.quorum_state
        become_candidate(self, now_ms, cause)
        self.outbox.quorum_state = state

    return patch.object(Replica, "become_candidate", forgetful)


@mutant(schedule="slow_disk_of_a_follower")
def acknowledge_before_flush() -> Patch:
    """A follower fetches on, which acknowledges, only with its log on disk."""
    append = LogIndex.append

    def hasty(self: LogIndex, batch: LogBatch) -> None:
        append(self, batch)
        self.flushed_offset = self.log_end_offset

    return patch.object(LogIndex, "append", hasty)


@mutant(schedule="slow_disk_of_the_leader")
def leader_counts_unflushed() -> Patch:
    """The leader counts its own log up to what is flushed."""
    end_offset_of = majority.voter_end_offset

    def bold(replica: Replica, leader: Leader, voter: Voter) -> int:
        if voter.key.id == replica.config.node_id:
            return replica.log.log_end_offset
        return end_offset_of(replica, leader, voter)

    return everywhere(majority.voter_end_offset, bold)


@mutant(schedule="flush_from_before_the_cut")
def flush_from_before_the_cut() -> Patch:
    """A flush that began before the log was cut says nothing of what was written since."""

    def credulous(self: LogIndex, end_offset: int, truncations: int) -> None:
        self.flushed_offset = max(self.flushed_offset, min(end_offset, self.log_end_offset))

    return patch.object(LogIndex, "flushed", credulous)


@mutant(schedule="flushed_tail_is_replaced")
def flushed_offset_survives_the_cut() -> Patch:
    """What is cut off the log is not flushed any more."""
    truncate_to = LogIndex.truncate_to

    def forgetful(self: LogIndex, end_offset: int) -> None:
        flushed_offset = self.flushed_offset
        truncate_to(self, end_offset)
        self.flushed_offset = flushed_offset

    return patch.object(LogIndex, "truncate_to", forgetful)


@mutant(schedule="lost_tail_then_the_same_vote")
def candidacy_resumed_after_restart() -> Patch:
    """A candidate that is restarted stands in a new epoch: the votes of the old one were for a log it may have lost."""

    enter_first_role = recovery.enter_first_role

    def resume(replica: Replica, now_ms: int) -> None:
        enter_first_role(replica, now_ms)
        own_id = replica.config.node_id
        if replica.state.voted == replica.key and replica.leader_id == NO_LEADER and replica.may_stand:
            deadline_ms = now_ms + replica.random_election_timeout_ms()
            replica.role = Candidate(deadline_ms, "it went on", granted={own_id})

    return everywhere(recovery.enter_first_role, resume)


@mutant(schedule="restarted_leader_lost_its_tail")
def leadership_resumed_after_restart() -> Patch:
    """A leader that was restarted does not lead that epoch again: its log may end before what its followers have."""

    enter_first_role = recovery.enter_first_role

    def resume(replica: Replica, now_ms: int) -> None:
        has_led = replica.leader_id == replica.config.node_id and replica.log.last_epoch == replica.epoch
        enter_first_role(replica, now_ms)
        if has_led and replica.may_stand and replica.leader_id == replica.config.node_id:
            start_offset = replica.log.epochs[-1][1]
            deadline_ms = now_ms + replica.config.check_quorum_timeout_ms
            replica.role = Leader(
                epoch_start_offset=start_offset,
                announced_from=start_offset + 1,
                check_quorum_deadline_ms=deadline_ms,
            )
            replica.accumulator.begin(replica.epoch, replica.log.log_end_offset)

    return everywhere(recovery.enter_first_role, resume)


@mutant(schedule="voter_that_lost_its_state")
def lost_state_is_ignored() -> Patch:
    """A voter whose disk was wiped neither votes nor stands before it has caught up."""
    init = Replica.__init__

    def confident(self: Replica, *arguments: object) -> None:
        init(self, *arguments)  # type: ignore[arg-type]
        self.has_lost_its_state = False

    return patch.object(Replica, "__init__", confident)


@mutant(schedule="wiped_voter_and_the_deposed_leader")
def lost_state_fetches_as_itself() -> Patch:
    """What a voter with a wiped disk fetches acknowledges nothing: it may have forgotten a newer leader."""
    return everywhere(recovery.fetching_key, lambda replica: replica.key)


@mutant(schedule="wiped_voter_and_the_deposed_leader")
def lost_state_needs_no_confirmations() -> Patch:
    """A voter with a wiped disk trusts a leader only when every other voter follows it, too."""

    def no_voters(replica: Replica) -> tuple[int, ...]:
        return ()

    def trusting(replica: Replica, role: Follower, response: FetchResponse) -> None:
        with patch.object(Replica, "other_voters", property(no_voters)):
            regain(replica, role, response)

    regain = recovery.maybe_regain_trust
    return everywhere(recovery.maybe_regain_trust, trusting)


@mutant(schedule="wiped_voter_under_load")
def lost_state_waits_for_an_empty_answer() -> Patch:
    """A voter with a wiped disk that has all that its leader had trusts itself again, though there is always more."""
    regain = recovery.maybe_regain_trust

    def waiting(replica: Replica, role: Follower, response: FetchResponse) -> None:
        if not response.records:
            regain(replica, role, response)

    return everywhere(recovery.maybe_regain_trust, waiting)
