"""What a replica may do after a restart: its first role, and the limits of one that lost its election state or records.

A replica never starts as a leader or a candidate: it may have lost records that it had not flushed (rule R4.2).

A replica that lost its election state fetches anonymously and grants no vote (rule P3). It recovers once every other
voter has named the same leader, that leader has committed in its epoch, and this replica has what that leader had.

A replica with a damaged log does not become a candidate, and votes only for a log that ends with an epoch above the one
in which it started (rule P4). It recovers once its flushed log has a later epoch, or reaches the end that the leader of
that epoch has named.

docs/recovery-rules.md has the conditions in full, and the proof that they lose no committed record.
"""

from dataclasses import replace

from kquorum.raft.messages import UNKNOWN_OFFSET, FetchRequest, FetchResponse, LeaderNaming
from kquorum.raft.ready import QuorumState, RoleChanged
from kquorum.raft.replica import Replica
from kquorum.raft.roles import RESTARTED_LEADER, STARTED, Follower, Resigned, Unattached, name_of
from kquorum.raft.voters import ReplicaKey

# The first role


def enter_first_role(replica: Replica, now_ms: int) -> None:
    """Take the first role (rule R4.2), never leader or candidate: what was not flushed before the crash may be gone.

    Votes of the stored epoch were given to the log that this replica had then. Kafka lets a restarted candidate go
    on collecting them; a voter that repeats its grant does not look at the log again, so the leader of such an
    election may lack what was committed. The vote for itself is kept, and a new epoch is stood for.
    """
    state, config = replica.state, replica.config
    if replica.log.last_epoch > state.leader_epoch:
        # The log knows of a newer epoch than the election state: that state, and its vote, are history.
        replica.state = QuorumState(leader_epoch=replica.log.last_epoch)
        state = replica.state
    timeout_ms = replica.random_election_timeout_ms()
    cause = STARTED
    is_damaged_voter = replica.damaged_epoch is not None and replica.is_voter
    if state.leader_id == config.node_id and (replica.may_stand or is_damaged_voter) and replica.other_voters:
        # The others begin at once, after a damage one after the other: this replica's vote settles no split then.
        others = tuple(voter.key for voter in replica.voters if voter.key.id != config.node_id)
        preferred = others if is_damaged_voter else ()
        replica.role = Resigned(now_ms + timeout_ms, preferred, set(replica.other_voters))
        cause = RESTARTED_LEADER
    elif state.leader_id in replica.voters.voters and state.leader_id != config.node_id:
        fetch_timeout_ms = replica.random_fetch_timeout_ms()
        replica.role = Follower(
            now_ms + config.fetch_timeout_ms, fetch_timeout_ms, replica.first_voter_check_ms(now_ms)
        )
    else:
        if state.leader_id == config.node_id:
            replica.state = QuorumState(leader_epoch=state.leader_epoch, voted=state.voted)
        replica.role = Unattached(now_ms + timeout_ms if replica.may_stand else None)
    replica.outbox.quorum_state = replica.state
    replica.outbox.role_changes.append(RoleChanged(name_of(replica.role), replica.epoch, cause))
    _hurry_a_sole_voter(replica, now_ms)


def _hurry_a_sole_voter(replica: Replica, now_ms: int) -> None:
    """No other replica can be elected, so there is nothing to wait for."""
    role = replica.role
    if replica.may_stand and len(replica.voters) == 1 and isinstance(role, Unattached):
        role.election_deadline_ms = now_ms


# A lost election state

# The key of an anonymous Fetch: the leader serves it and counts it for nothing.
ANONYMOUS = ReplicaKey(-1)


def fetching_key(replica: Replica) -> ReplicaKey:
    return ANONYMOUS if replica.has_lost_its_state else replica.key


def leader_confirmations_wanted(replica: Replica, role: Follower) -> tuple[int, ...]:
    """The other voters that have not named this replica's leader yet; the leader itself is fetched from anyway.

    They are asked by an anonymous Fetch, which acknowledges nothing, so it need not wait for a flush.
    """
    if not replica.has_lost_its_state:
        return ()
    return tuple(
        voter_id
        for voter_id in replica.other_voters
        if voter_id not in role.leader_confirmations and voter_id != replica.leader_id
    )


def hear_leader_confirmation(replica: Replica, now_ms: int, source_id: int, response: LeaderNaming) -> None:
    """Take note of the leader that a voter's answer names, while this replica follows a leader."""
    role = replica.role
    if not replica.has_lost_its_state or not isinstance(role, Follower):
        return
    if (response.leader_id, response.leader_epoch) == (replica.leader_id, replica.epoch):
        role.leader_confirmations.add(source_id)
    elif source_id != replica.leader_id:
        replica.connections.back_off(source_id, now_ms, replica.config.pre_vote_retry_ms)


def maybe_regain_trust(replica: Replica, role: Follower, response: FetchResponse) -> None:
    """Trust the election state again if this answer to a Fetch was the last thing that was missing (rule P3)."""
    if not replica.has_lost_its_state or response.high_watermark == UNKNOWN_OFFSET:
        return
    log = replica.log
    epoch, start_offset = log.epochs[-1] if log.epochs else (-1, 0)
    if response.records:
        has_all = role.leader_end is not None and log.flushed_offset >= role.leader_end
    else:
        has_all = response.high_watermark <= log.flushed_offset
    is_current = epoch == replica.epoch and start_offset < min(response.high_watermark, log.flushed_offset)
    if has_all and is_current and role.leader_confirmations.issuperset(replica.other_voters):
        replica.has_lost_its_state = False
        replica.outbox.has_caught_up = True
        replica.outbox.quorum_state = replica.state


# A damaged log

# No log is as long as that.
FARTHEST_OFFSET = 2**63 - 1


def cannot_judge(replica: Replica, last_offset_epoch: int) -> bool:
    """Whether a candidate with this last epoch may lack what this replica acknowledged and has lost."""
    return replica.damaged_epoch is not None and last_offset_epoch <= replica.damaged_epoch


def must_ask_for_end(replica: Replica) -> bool:
    """Whether its leader is that of the loss, and has not said yet where its log ends; who lost its election state as
    well asks every leader (`raft.recovery`)."""
    role = replica.role
    if not isinstance(role, Follower):
        return False
    if replica.has_lost_its_state:
        return role.leader_end is None
    return replica.damaged_epoch == replica.epoch and replica.lost_until is None


def ask_for_end(replica: Replica, request: FetchRequest) -> FetchRequest:
    """The Fetch that asks for it, made of an ordinary one."""
    return replace(
        request, replica=replica.key, fetch_offset=FARTHEST_OFFSET, last_fetched_epoch=replica.epoch
    )


def hear_end(replica: Replica, response: FetchResponse) -> None:
    """The answer to that. One that makes no sense is not asked for again: there may be an empty answer yet."""
    end = response.diverging
    if replica.has_lost_its_state and isinstance(replica.role, Follower):
        is_named = end is not None and end.epoch == replica.epoch
        replica.role.leader_end = end.offset if end is not None and is_named else FARTHEST_OFFSET
        return
    is_named = end is not None and end.epoch == replica.damaged_epoch
    replica.lost_until = end.offset if end is not None and is_named else FARTHEST_OFFSET


def hear_of_nothing_more(replica: Replica) -> None:
    """The leader has no records from the end of this log on."""
    if replica.damaged_epoch == replica.epoch and not replica.has_lost_its_state:
        replica.lost_until = replica.log.log_end_offset


def maybe_become_whole(replica: Replica, now_ms: int) -> None:
    """Count a damaged log as whole again once it is (rule P4). The core asks in every turn, because an answer to a
    Fetch, the end of a flush or a snapshot can make it so."""
    if replica.damaged_epoch is None or replica.has_lost_its_state:
        return
    log = replica.log
    if replica.config.can_be_voter and log.flushed_offset < log.log_end_offset:
        return  # Only voters wait for their flushes: those of observers take their time.
    if log.last_epoch > replica.damaged_epoch or _reaches_the_end(replica, replica.damaged_epoch):
        replica.damaged_epoch = None
        replica.outbox.has_caught_up = True
        replica.maybe_await_election(now_ms)


def _reaches_the_end(replica: Replica, epoch: int) -> bool:
    log, end_offset = replica.log, replica.lost_until
    return end_offset is not None and log.last_epoch == epoch and log.log_end_offset >= end_offset
