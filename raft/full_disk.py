"""A replica whose disk is full (rule P5): it goes on following and voting, but neither writes records nor leads.

A leader hands over, to a voter that has its whole log if there is one soon. A follower fetches at the end of its log
and leaves what comes, or asks for a byte of the snapshot that its leader names: so its leader hears of it, and it of
its leader, and neither is disturbed by an election that it could not win for good anyway. Election states are written
meanwhile (the adapters keep space for them), so it votes, and never twice. If every voter is full, the cluster
has no leader, and stays readable.
"""

from kquorum.raft.elections import stop_standing
from kquorum.raft.leader.leadership_transfer import begin_flight, end_flight
from kquorum.raft.membership import abandon_add
from kquorum.raft.replica import Replica
from kquorum.raft.roles import NO_SPACE, Candidate, Follower, Leader, Prospective, Unattached


def handle_writes_paused(replica: Replica, now_ms: int, *, is_paused: bool) -> None:
    if replica.writes_are_paused == is_paused:
        return
    if is_paused and isinstance(replica.role, Candidate) and replica.may_stand:
        # By way of the pre-vote, as when an election is lost: the table of legal moves knows no shorter one.
        replica.become_prospective(now_ms, NO_SPACE)
    replica.writes_are_paused = is_paused
    if is_paused:
        _pause(replica, now_ms)
    else:
        _resume(replica, now_ms)


def _pause(replica: Replica, now_ms: int) -> None:
    role = replica.role
    match role:
        case Leader():
            # What was proposed in this turn is in no log yet; its proposers hear that this replica leads no more.
            replica.accumulator.drain()
            replica.accumulator.begin(replica.epoch, replica.log.log_end_offset)
            abandon_add(replica, role)
            begin_flight(replica, role, now_ms)
        case Follower():
            role.download = None
        case Prospective():
            stop_standing(replica, now_ms, NO_SPACE)
        case Unattached():
            role.election_deadline_ms = None
        case _:
            pass


def _resume(replica: Replica, now_ms: int) -> None:
    """Fetch at once; a replica that waits for a leader may stand for election again."""
    replica.connections.end_back_off(replica.leader_id)
    if isinstance(replica.role, Leader):
        end_flight(replica, replica.role)
    replica.maybe_await_election(now_ms)
