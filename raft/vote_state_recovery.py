"""A replica whose election state is gone: what it may do until it is as good as before.

It has forgotten votes that it gave and records that it acknowledged. Were it to go on, a leader that was deposed with
its help could commit once more, and an epoch in which it voted could get a second leader. So it fetches as nobody in
particular, grants nothing and writes no election state, until

1. every other voter has said since that it follows the same leader in the same epoch (or leads it): then nobody can
   still be elected in a later epoch by a vote that was forgotten here;
2. that leader has committed a record of its epoch, so that its high watermark is not one it merely remembers; and
3. this replica has on its disk all that the leader had at some moment since: then whatever it acknowledged to that
   leader is there again, for it acknowledges nothing meanwhile. An answer without records says so. Under load there may
   be none for as long as the load lasts, so that the leader is asked first where its log ends (by a Fetch from the
   farthest offset there is, as in `damaged_log`), and what it had then is enough. That one Fetch bears this replica's
   name: its answer is the divergence, so that it acknowledges nothing, and the leader learns from it that this replica
   has to catch up once more before it can be added as a voter.

That is stricter than Viewstamped Replication's recovery (Liskov and Cowling, 2012, section 4.3), whose views have no
votes to be forgotten.
"""

from raft.messages import UNKNOWN_OFFSET, FetchResponse, LeaderNaming
from raft.replica import Replica
from raft.roles import Follower
from raft.voters import ReplicaKey

# A fetch by nobody in particular: the leader serves it and counts it for nothing.
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
        if voter_id not in role.witnesses and voter_id != replica.leader_id
    )


def hear_leader_confirmation(replica: Replica, now_ms: int, source_id: int, response: LeaderNaming) -> None:
    """Take note of a voter's answer: whom it follows, now that this replica follows somebody."""
    role = replica.role
    if not replica.has_lost_its_state or not isinstance(role, Follower):
        return
    if (response.leader_id, response.leader_epoch) == (replica.leader_id, replica.epoch):
        role.witnesses.add(source_id)
    elif source_id != replica.leader_id:
        replica.connections.back_off(source_id, now_ms, replica.config.pre_vote_retry_ms)


def maybe_regain_trust(replica: Replica, role: Follower, response: FetchResponse) -> None:
    """The leader answered a Fetch; it may have been the last thing that was missing."""
    if not replica.has_lost_its_state or response.high_watermark == UNKNOWN_OFFSET:
        return
    log = replica.log
    epoch, start_offset = log.epochs[-1] if log.epochs else (-1, 0)
    if response.records:
        has_all = role.leader_end is not None and log.flushed_offset >= role.leader_end
    else:
        has_all = response.high_watermark <= log.flushed_offset
    is_current = epoch == replica.epoch and start_offset < min(response.high_watermark, log.flushed_offset)
    if has_all and is_current and role.witnesses.issuperset(replica.other_voters):
        replica.has_lost_its_state = False
        replica.outbox.has_caught_up = True
        replica.outbox.quorum_state = replica.state
