"""The first role of a replica that starts, from what it had written down (kraft-semantics A4.2)."""

from raft.causes import RESTARTED_LEADER, STARTED
from raft.ready import QuorumState, RoleChanged
from raft.replica import Replica
from raft.roles import Follower, Resigned, Unattached, name_of


def enter_first_role(replica: Replica, now_ms: int) -> None:
    """Never start as a leader or candidate: what it had not flushed when it died may be gone.

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
    """Nobody else can be elected, so there is nothing to wait for."""
    role = replica.role
    if replica.may_stand and len(replica.voters) == 1 and isinstance(role, Unattached):
        role.election_deadline_ms = now_ms
