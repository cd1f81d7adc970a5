"""Safeguards of KIP-853: one change of the voters at a time, in force from its append; disks have ids."""

from unittest.mock import patch

from kquorum.raft import elections, membership
from kquorum.raft.leader import majority
from kquorum.raft.leader.majority import majority_offset
from kquorum.raft.messages import AddRaftVoterRequest, ApiVersionsResponse, ChangeVotersResponse
from kquorum.raft.replica import Replica
from kquorum.raft.roles import Leader, PendingAdd, PendingCommit, ReplicaProgress
from kquorum.raft.voters import ReplicaKey, Voter, VoterHistory, VotersAt, VoterSet
from kquorum.wire.messages.error_codes import ErrorCode
from tests.simulation.mutants.registry import Patch, all_of, everywhere, mutant, with_changes

Refusal = tuple[ErrorCode, str]


@mutant(schedule="grow_and_shrink", worlds=with_changes)
def voters_in_force_when_committed() -> Patch:
    """A voter set is in force from its append, not from its commit."""

    def late(self: Replica) -> VoterSet:
        return self.voter_history.voters_at(max(-1, self.high_watermark - 1))

    return patch.object(Replica, "voters", property(late))


@mutant(schedule="uncommitted_voters_are_cut", worlds=with_changes)
def voters_survive_the_cut() -> Patch:
    """A voter set that is cut off the log is in force no longer."""

    def keep(self: VoterHistory, end_offset: int) -> None:
        return None

    return patch.object(VoterHistory, "truncate_to", keep)


@mutant(schedule="two_changes_in_a_row", worlds=with_changes)
def two_changes_at_once() -> Patch:
    """A change of the voters waits until the one before it is committed."""
    in_the_way = membership.change_in_the_way

    def hasty(replica: Replica, leader: Leader) -> Refusal | None:
        is_early = replica.high_watermark <= leader.epoch_start_offset
        return in_the_way(replica, leader) if is_early or leader.transfer is not None else None

    return everywhere(membership.change_in_the_way, hasty)


@mutant(schedule="ongaros_trace", worlds=with_changes)
def change_before_the_first_commit() -> Patch:
    """A leader changes no voters before it has committed in its epoch (Ongaro, 2015)."""
    in_the_way = membership.change_in_the_way

    def early(replica: Replica, leader: Leader) -> Refusal | None:
        is_committed = replica.voter_history.voters_offset < replica.high_watermark
        return None if is_committed and leader.change is None else in_the_way(replica, leader)

    return everywhere(membership.change_in_the_way, early)


@mutant(schedule="one_step_at_a_time", worlds=with_changes)
def two_voters_in_one_step() -> Patch:
    """One step adds or removes one voter, so that majorities before and after it meet."""
    without = VoterSet.without

    def greedy(self: VoterSet, key: ReplicaKey) -> VoterSet:
        smaller = without(self, key)
        return without(smaller, max(smaller.keys)) if len(smaller) > 2 else smaller

    def always(self: VoterSet, other: VoterSet) -> bool:
        return True

    return all_of(
        patch.object(VoterSet, "without", greedy), patch.object(VoterSet, "overlaps_majority_of", always)
    )


@mutant(schedule="leader_removes_itself", worlds=with_changes)
def removed_leader_counts_itself() -> Patch:
    """A leader that is no voter any more does not count itself (KAFKA-16530)."""

    def vain(replica: Replica, leader: Leader) -> None:
        offsets = [majority.voter_end_offset(replica, leader, voter) for voter in replica.voters]
        if not replica.is_voter:
            offsets.append(replica.log.flushed_offset)
        reached = majority_offset(offsets)
        if reached > leader.epoch_start_offset:
            replica.high_watermark = max(replica.high_watermark, reached)

    return everywhere(majority.maybe_advance_high_watermark, vain)


@mutant(schedule="leader_removes_itself", worlds=with_changes)
def removed_leader_goes_on() -> Patch:
    """A leader resigns once its own removal is committed."""
    poll_change = membership.poll_change

    def clinging(replica: Replica, leader: Leader, now_ms: int) -> bool:
        poll_change(replica, leader, now_ms)
        return False

    return everywhere(membership.poll_change, clinging)


@mutant(schedule="grow_and_shrink", worlds=with_changes)
def change_reported_before_its_commit() -> Patch:
    """An operator learns that a change was made once it is committed."""
    poll_change = membership.poll_change

    def hasty(replica: Replica, leader: Leader, now_ms: int) -> bool:
        change = leader.change
        if isinstance(change, PendingCommit):
            leader.change = None
            replica.respond(change.request_id, ChangeVotersResponse())
        return poll_change(replica, leader, now_ms)

    return everywhere(poll_change, hasty)


@mutant(schedule="voter_that_never_fetched", worlds=with_changes)
def voter_that_is_behind() -> Patch:
    """A node becomes a voter only when it has caught up, or the quorum would wait for it."""
    unfit = membership._unfit

    def welcome(
        replica: Replica,
        leader: Leader,
        now_ms: int,
        request: AddRaftVoterRequest,
        response: ApiVersionsResponse,
    ) -> Refusal | None:
        refusal = unfit(replica, leader, now_ms, request, response)
        is_about_progress = response.error is ErrorCode.none and refusal is not None
        return None if is_about_progress and refusal[0] is ErrorCode.request_timed_out else refusal  # type: ignore[index]

    def no_round(replica: Replica, leader: Leader, change: PendingAdd) -> None:
        return None

    def always(leader: Leader, change: PendingAdd) -> bool:
        return True

    return all_of(
        everywhere(unfit, welcome),
        everywhere(membership._begin_last_round, no_round),
        everywhere(membership._has_fetched_all, always),
    )


@mutant(schedule="damaged_spare_that_fetches_late", worlds=with_changes)
def voter_for_what_it_had() -> Patch:
    """A node becomes a voter for a Fetch that comes after it was asked, not for what its leader remembers of it."""

    def nothing(self: ReplicaProgress, log_end_offset: int) -> None:
        return None

    return patch.object(ReplicaProgress, "begin_round", nothing)


@mutant(schedule="voter_with_a_new_disk", worlds=with_changes)
def directory_ids_are_ignored() -> Patch:
    """A voter is its node id and its directory id: with another disk it is another replica."""

    def by_id(self: Voter, replica: ReplicaKey) -> bool:
        return replica.id == self.key.id

    def for_other(replica: Replica, addressed: ReplicaKey) -> bool:
        return addressed.id not in (-1, replica.config.node_id)

    return all_of(patch.object(Voter, "matches", by_id), everywhere(elections.is_for_other_voter, for_other))


@mutant(schedule="removed_for_good", worlds=with_changes)
def removed_voter_joins_again() -> Patch:
    """A voter that an operator removed does not add itself again (KAFKA-19850)."""

    def never(self: VoterHistory, key: ReplicaKey) -> bool:
        return False

    return patch.object(VoterHistory, "was_removed", never)


@mutant(schedule="grow_and_shrink", worlds=with_changes)
def newest_voters_are_not_remembered() -> Patch:
    """A replica takes every voter set of its log, not only the first."""
    add = VoterHistory.add

    def once(self: VoterHistory, record: object) -> None:
        if not isinstance(record, VotersAt) or self.voters_offset < 0:
            add(self, record)  # type: ignore[arg-type]

    return patch.object(VoterHistory, "add", once)
