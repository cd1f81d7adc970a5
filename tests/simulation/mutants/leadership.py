"""Safeguards of leading: stepping down in time, making oneself known, leaving in good order, and rest."""

from unittest.mock import patch

from kquorum.raft import elections, node
from kquorum.raft.leader import fetch_handler, leadership_transfer, majority, turn
from kquorum.raft.messages import NO_LEADER, TransferLeadershipResponse
from kquorum.raft.node import RaftNode
from kquorum.raft.ready import LeaderAndEpoch
from kquorum.raft.replica import Replica
from kquorum.raft.roles import Leader, PendingTransfer, Resigned
from kquorum.raft.voters import ReplicaKey
from kquorum.wire.messages.error_codes import ErrorCode
from tests.simulation.mutants.registry import Patch, all_of, everywhere, mutant


@mutant(schedule="leader_without_a_majority")
def check_quorum_never_resigns() -> Patch:
    """A leader from which no majority fetches resigns (KAFKA-15489)."""

    def stubborn(replica: Replica, leader: Leader, now_ms: int) -> None:
        leader.check_quorum_deadline_ms = now_ms + replica.config.check_quorum_timeout_ms

    return everywhere(turn._check_quorum, stubborn)


@mutant(schedule="nothing_of_the_epoch_is_committed")
def leadership_told_too_early() -> Patch:
    """A state machine learns that it leads once a record of the epoch is committed (KAFKA-15345)."""

    def eager(self: RaftNode) -> LeaderAndEpoch | None:
        replica = self.replica
        leader_id = NO_LEADER if isinstance(replica.role, Resigned) else replica.leader_id
        current = LeaderAndEpoch(leader_id, replica.epoch)
        if current == replica.announced:
            return None
        replica.announced = current
        return current

    return patch.object(RaftNode, "_take_leader", eager)


@mutant(schedule="transfer_that_fails")
def transfer_answered_when_it_begins() -> Patch:
    """A transfer of leadership is answered when the target leads, not when it was told to stand."""

    def hasty(replica: Replica, leader: Leader, transfer: PendingTransfer, now_ms: int) -> None:
        leader.transfer = None
        if transfer.request_id is not None:
            replica.respond(transfer.request_id, TransferLeadershipResponse())

    return everywhere(leadership_transfer._await_target, hasty)


@mutant(schedule="word_from_before_the_farewell")
def departed_leader_is_followed_again() -> Patch:
    """A voter that stands because its leader left does not follow it again in that epoch."""
    follow = elections.maybe_follow

    def forgetful(replica: Replica, request: elections.LeaderClaim, now_ms: int, cause: str) -> ErrorCode:
        departed, replica.departed = replica.departed, None
        error = follow(replica, request, now_ms, cause)
        replica.departed = departed
        return error

    return everywhere(elections.maybe_follow, forgetful)


@mutant(schedule="farewell_that_others_hear_later")
def refusals_before_the_farewell_count() -> Patch:
    """A voter that refuses its pre-vote because it has not heard that the leader left is asked again."""
    return everywhere(elections._lacks_end_quorum_epoch, lambda _replica, _response: False)


@mutant(schedule="slow_disk_of_a_candidate")
def disk_time_is_election_time() -> Patch:
    """An election lasts from the moment at which the vote is on the disk, and asked for."""

    def strict(self: RaftNode, now_ms: int) -> None:
        return None

    return patch.object(RaftNode, "_state_written", strict)


@mutant(schedule="idle_voters_hear_of_their_leader")
def begin_quorum_epoch_never_sent() -> Patch:
    """A leader makes itself known to voters that do not fetch, and asks them on behalf of majority."""

    def silent(replica: Replica, leader: Leader, now_ms: int) -> None:
        for voter_id in replica.other_voters:
            leader.begin_epoch_due_ms[voter_id] = now_ms + replica.config.begin_quorum_epoch_interval_ms

    def never(leader: Leader, voter_id: int) -> bool:
        return False

    return all_of(everywhere(turn._begin_quorum_epoch, silent), everywhere(majority.is_asked_for, never))


@mutant(schedule="clean_shutdown")
def end_quorum_epoch_never_sent() -> Patch:
    """A leader that leaves says so."""
    become_resigned = Replica.become_resigned

    def wordless(self: Replica, now_ms: int, cause: str, preferred: tuple[ReplicaKey, ...]) -> None:
        become_resigned(self, now_ms, cause, preferred)
        assert isinstance(self.role, Resigned)
        self.role.unacknowledged.clear()

    return patch.object(Replica, "become_resigned", wordless)


@mutant(schedule="clean_shutdown")
def no_successor_is_preferred() -> Patch:
    """A leader that leaves names its successors in order, and the first of them stands at once."""

    def indifferent(replica: Replica, leader: Leader, first: int | None = None) -> tuple[ReplicaKey, ...]:
        # Not an empty list: with no successors named, none comes first, and all become candidates at once.
        return (replica.key,)

    return everywhere(leadership_transfer.preferred_successors, indifferent)


@mutant(schedule="parked_at_a_leader_that_resigns")
def parked_fetches_are_forgotten() -> Patch:
    """Fetches that wait at a leader are answered when it ceases to lead (KAFKA-15100)."""

    def forget(replica: Replica) -> None:
        replica.displaced_fetches.clear()

    return everywhere(fetch_handler.answer_displaced_fetches, forget)


@mutant(schedule="idle_for_a_while")
def long_poll_that_does_not_wait() -> Patch:
    """A Fetch for which there is nothing waits at the leader."""
    complete = fetch_handler.complete_delayed_fetches

    def impatient(replica: Replica, leader: Leader, now_ms: int) -> None:
        for_ever_ms = max((parked.deadline_ms for parked in leader.parked.values()), default=now_ms)
        leader.parked.find_due(replica.log.log_end_offset, replica.high_watermark, for_ever_ms)
        complete(replica, leader, now_ms)

    return everywhere(fetch_handler.complete_delayed_fetches, impatient)


@mutant(schedule="idle_for_a_while")
def deadline_in_the_past() -> Patch:
    """The timer is armed for a moment to come: one that has passed spins (KAFKA-17751)."""

    def overdue(replica: Replica, now_ms: int) -> int | None:
        deadline_ms = next_deadline_ms(replica, now_ms)
        return None if deadline_ms is None else now_ms

    next_deadline_ms = node.next_deadline_ms
    return everywhere(node.next_deadline_ms, overdue)


@mutant(schedule="transfer_under_load")
def transfer_takes_proposals() -> Patch:
    """A leader that hands over takes no more proposals, or its successor would never catch up (Raft §3.10)."""
    propose = RaftNode.propose

    def busy(self: RaftNode, now_ms: int, leader_epoch: int, values: list[bytes]) -> int:
        role = self.replica.role
        if not isinstance(role, Leader):
            return propose(self, now_ms, leader_epoch, values)
        transfer, role.transfer = role.transfer, None
        try:
            return propose(self, now_ms, leader_epoch, values)
        finally:
            role.transfer = transfer

    return patch.object(RaftNode, "propose", busy)
