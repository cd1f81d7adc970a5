"""When a replica must be looked at again, were nothing to happen before."""

from collections.abc import Iterator
from typing import assert_never

from raft.elections import gives_way, votes_wanted
from raft.follower import next_fetch_at_ms
from raft.reads import is_asked_for
from raft.replica import Replica
from raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Role, Unattached, deadline_of
from raft.vote_state_recovery import leader_confirmations_wanted


def next_deadline_ms(replica: Replica, now_ms: int) -> int | None:
    """The earliest moment at which `take_ready` has something to do; always after `now_ms`.

    A deadline that has passed and led to nothing would make the driver spin (KAFKA-17751), so what cannot
    be acted upon now is not asked for.
    """
    own = deadline_of(replica.role)
    candidates = [] if own is None or _is_idle(replica) else [own]
    candidates.extend(_sends_due_ms(replica, now_ms))
    if replica.handed_over is not None:
        candidates.append(replica.handed_over.deadline_ms)
    return max(min(candidates), now_ms + 1) if candidates else None


def put_off_deadline(role: Role, late_by_ms: int) -> None:
    """A replica that could not speak for so long has not been waiting for the others, nor they for it."""
    match role:
        case Follower():
            # A leader that has left meanwhile has said when to stand, and its successor wastes no time.
            role.fetch_deadline_ms += 0 if role.leader_left else late_by_ms
        case Leader():
            role.check_quorum_deadline_ms += late_by_ms
        case Prospective() | Candidate() | Resigned():
            role.election_deadline_ms += late_by_ms
        case Unattached():
            if role.election_deadline_ms is not None:
                role.election_deadline_ms += late_by_ms
        case _:
            assert_never(role)


def _is_idle(replica: Replica) -> bool:
    """A replica that shuts down does not act on its role's time-out any more."""
    return replica.is_shutting_down and not isinstance(replica.role, Leader)


def _sends_due_ms(replica: Replica, now_ms: int) -> Iterator[int]:
    role, connections = replica.role, replica.connections
    match role:
        case Leader():
            for voter_id in replica.other_voters:
                is_asked = role.reads and is_asked_for(role, voter_id)
                due_ms = 0 if is_asked else role.begin_epoch_due_ms.get(voter_id, 0)
                yield max(due_ms, connections.ready_at_ms(voter_id))
            if role.change is not None:
                yield role.change.deadline_ms
            if role.transfer is not None:
                yield role.transfer.deadline_ms
            yield from role.parked.deadlines_ms(now_ms)
        case Prospective(stands_from_ms=int(stands_from_ms)) if gives_way(replica, role, now_ms):
            yield stands_from_ms
        case Prospective() | Candidate():
            yield from (connections.ready_at_ms(voter_id) for voter_id in votes_wanted(replica, role))
        case Resigned():
            yield from (connections.ready_at_ms(voter_id) for voter_id in role.unacknowledged)
        case Follower() | Unattached():
            if isinstance(role, Follower) and not replica.is_shutting_down:
                yield from (
                    connections.ready_at_ms(voter_id)
                    for voter_id in leader_confirmations_wanted(replica, role)
                )
            fetch_at_ms = next_fetch_at_ms(replica)
            if fetch_at_ms is not None and not replica.is_shutting_down:
                yield fetch_at_ms
