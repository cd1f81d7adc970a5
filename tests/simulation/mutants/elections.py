"""Safeguards of elections: one leader an epoch, with all that is committed, and no needless new epoch."""

from unittest.mock import patch

from kquorum.raft import elections
from kquorum.raft.connections import Connections
from kquorum.raft.messages import VoteRequest
from kquorum.raft.replica import Replica
from kquorum.raft.roles import Candidate, Follower, Leader, Prospective
from kquorum.raft.voters import VoterSet
from tests.simulation.mutants.registry import Patch, everywhere, mutant
from tests.simulation.options import Options


def _has_even_voters(options: Options) -> bool:
    return options.voters % 2 == 0


def _has_observers(options: Options) -> bool:
    return options.observers > 0


@mutant(schedule="longer_log_of_an_older_epoch")
def vote_for_anybody() -> Patch:
    """Only a candidate whose log is as good as the voter's gets the vote (Raft §5.4.1)."""

    def lax(replica: Replica, last_epoch: int, last_offset: int) -> bool:
        return True

    return everywhere(elections.is_up_to_date, lax)


@mutant(schedule="longer_log_of_an_older_epoch")
def longer_log_wins() -> Patch:
    """Of two logs the one with the later epoch is better, however long the other is."""

    def by_length(replica: Replica, last_epoch: int, last_offset: int) -> bool:
        return last_offset >= replica.log.log_end_offset

    return everywhere(elections.is_up_to_date, by_length)


@mutant(schedule="second_candidate_of_an_epoch")
def vote_twice() -> Patch:
    """A voter has one vote an epoch."""
    may_grant = elections.may_grant_vote

    def generous(replica: Replica, request: VoteRequest) -> bool:
        if elections.is_up_to_date(replica, request.last_offset_epoch, request.last_offset):
            return True
        return may_grant(replica, request)

    return everywhere(elections.may_grant_vote, generous)


@mutant(schedule="second_candidate_of_an_epoch")
def vote_beside_a_leader() -> Patch:
    """A voter that follows the leader of the epoch votes for no other candidate in it."""
    may_grant = elections.may_grant_vote

    def disloyal(replica: Replica, request: VoteRequest) -> bool:
        if isinstance(replica.role, Follower) and not request.pre_vote:
            return elections.is_up_to_date(replica, request.last_offset_epoch, request.last_offset)
        return may_grant(replica, request)

    return everywhere(elections.may_grant_vote, disloyal)


@mutant(schedule="two_halves", worlds=_has_even_voters)
def half_is_a_majority() -> Patch:
    """A majority is more than half, of an even number as well."""
    return patch.object(VoterSet, "majority", property(lambda self: (len(self) + 1) // 2))


@mutant(schedule="second_candidate_of_an_epoch")
def refusals_count_as_votes() -> Patch:
    """Only votes that were granted elect."""

    def hopeful(replica: Replica, role: Prospective | Candidate, now_ms: int) -> None:
        poll(replica, role, now_ms)
        if isinstance(role, Candidate):
            role.granted |= role.rejected

    poll = elections.poll_nominee
    return everywhere(elections.poll_nominee, hopeful)


@mutant(schedule="back_after_a_minute")
def no_pre_vote() -> Patch:
    """A voter asks whether it could win before it stands and disturbs everybody with a new epoch (KIP-996)."""
    become_prospective = Replica.become_prospective

    def bold(self: Replica, now_ms: int, cause: str) -> None:
        become_prospective(self, now_ms, cause)
        self.become_candidate(now_ms, cause)

    return patch.object(Replica, "become_prospective", bold)


@mutant(schedule="one_link_is_gone")
def pre_vote_against_a_live_leader() -> Patch:
    """A follower that hears its leader grants no pre-vote against it."""

    def fickle(replica: Replica) -> bool:
        return not isinstance(replica.role, Leader)

    return everywhere(elections._may_grant_pre_vote, fickle)


@mutant(schedule="observers_without_a_leader", worlds=_has_observers)
def observer_campaigns() -> Patch:
    """Only voters stand for election (KAFKA-17067)."""
    return patch.object(Replica, "may_stand", property(lambda self: True))


@mutant(schedule="answers_of_another_time")
def any_answer_is_accepted() -> Patch:
    """An answer counts only for the request in flight: late and repeated ones are ignored."""
    completed = Connections.completed

    def trusting(self: Connections, node_id: int, correlation_id: int) -> bool:
        completed(self, node_id, correlation_id)
        return True

    return patch.object(Connections, "completed", trusting)
