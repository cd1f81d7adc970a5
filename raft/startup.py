"""The first role of a replica that starts, from what it had written down (kraft-semantics A4.2)."""

from raft.ready import QuorumState
from raft.replica import Replica
from raft.roles import Follower, Resigned, Unattached


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
    if state.leader_id == config.node_id and replica.is_voter:
        replica.role = Resigned(now_ms + timeout_ms, (), set(replica.other_voters))
    elif state.leader_id in replica.voters.voters and state.leader_id != config.node_id:
        replica.role = Follower(now_ms + config.fetch_timeout_ms, replica.random_fetch_timeout_ms())
    else:
        if state.leader_id == config.node_id:
            replica.state = QuorumState(leader_epoch=state.leader_epoch, voted=state.voted)
        replica.role = Unattached(now_ms + timeout_ms if replica.is_voter else None)
    replica.outbox.quorum_state = replica.state
    _hurry_a_sole_voter(replica, now_ms)


def _hurry_a_sole_voter(replica: Replica, now_ms: int) -> None:
    """Nobody else can be elected, so there is nothing to wait for."""
    role = replica.role
    if replica.is_voter and len(replica.voters) == 1 and isinstance(role, Unattached | Resigned):
        role.election_deadline_ms = now_ms
