"""A replica whose log has lost records that it may have acknowledged, and which remembers its votes.

The disk was damaged; the log was opened as far as it is sound, and the rest is fetched again. Let E be the epoch in
which the replica was when it started: it has acknowledged nothing in a later one. (Its epoch is on the disk before
the first Fetch in it leaves.) Until its log is whole it does not stand, and gives its vote only to a candidate whose
last record is of an epoch above E. It is whole, and a voter like any other, once what it has flushed ends

1. with a record of an epoch above E; or
2. with a record of epoch E, where the leader of E said since that its own log ended, or beyond.

That end is asked for: by a Fetch from the farthest offset of epoch E there is. The answer is that the logs diverge, and
where: at the end of the leader's. A leader does not count a Fetch that it answers so, and this one acknowledges
nothing. It bears this replica's name all the same: the leader may remember that this replica was caught up once, and
must not add it as a voter for that (`raft.fetch_handler`). An empty answer to a Fetch says the same of the offset that
it asked for. The high watermark does not: of what this replica acknowledged, the last may be committed later, by an
acknowledgement that is still under way or by another voter's. And who waited for an empty answer alone might wait for
ever: under load there is always more, and once that leader is gone no node can give it.

Why no record that was committed with its help can be lost by that. Let it have acknowledged record r in an epoch e <=
E, and a majority with it, so that r is committed. Take the first leader above e whose log lacks r. Some voter both
acknowledged r and voted for that leader; if it was another, it refused as always (Raft 5.4.3). So it was this one,
after it was damaged (before that it compared what it had). If it was not whole, the candidate's last record was of an
epoch d > E >= e: the leader of d had r (it is an earlier leader above e), and the candidate's log agrees with that of
d's leader up to its record of d, so it has r too. If it was whole by 1, its own log has a record of an epoch above E,
hence r by the same argument, and it compares as always. If it was whole by 2, it shares a record of epoch E with the
leader of E, and so all of that leader's log up to there (Raft 5.3, log matching). Of that r is part: either r was
acknowledged to that very leader, before it named the end of a log that only grew; or e < E, and the leader of E had r
when it was elected, below the first record of its own. Both of what is on the disk, and neither of who leads by now:
the last flush may end when that leader is gone.

What it fetches meanwhile it acknowledges under its own name. That is true whatever was lost: it is on its disk now.
In epoch E such an acknowledgement is like the earlier ones above. In a later one it commits nothing before it covers
the first record of that epoch, since no leader counts less (Raft 5.4.2), and then the log is whole by 1. So the
leader keeps a majority that fetches from it. It brings back even a majority of damaged voters, as long as it goes on
leading; without it they wait for the others, since nobody can tell them what they had.

Nothing else is needed: no witnesses as in `lost_state`, for the votes are known. What is lost may be cut rather than
come back: of what was never committed, the leader may have another version, or none.
"""

from dataclasses import replace

from raft.messages import FetchRequest, FetchResponse
from raft.replica import Replica
from raft.roles import Follower

# No log is as long as that.
FARTHEST_OFFSET = 2**63 - 1


def cannot_judge(replica: Replica, last_offset_epoch: int) -> bool:
    """Whether a candidate with this last epoch may lack what this replica acknowledged and has lost."""
    return replica.damaged_epoch is not None and last_offset_epoch <= replica.damaged_epoch


def must_ask_for_end(replica: Replica) -> bool:
    """Whether its leader is that of the loss, and has not said yet where its log ends; who lost its election state as
    well asks every leader (`raft.vote_state_recovery`)."""
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
        is_told = end is not None and end.epoch == replica.epoch
        replica.role.leader_end = end.offset if end is not None and is_told else FARTHEST_OFFSET
        return
    is_told = end is not None and end.epoch == replica.damaged_epoch
    replica.lost_until = end.offset if end is not None and is_told else FARTHEST_OFFSET


def hear_of_nothing_more(replica: Replica) -> None:
    """The leader has no records from the end of this log on."""
    if replica.damaged_epoch == replica.epoch and not replica.has_lost_its_state:
        replica.lost_until = replica.log.log_end_offset


def maybe_become_whole(replica: Replica, now_ms: int) -> None:
    """Judged in every turn: a Fetch may have been answered, a flush be over, or a snapshot have come in."""
    if replica.damaged_epoch is None or replica.has_lost_its_state:
        return
    log = replica.log
    if replica.config.can_be_voter and log.flushed_offset < log.log_end_offset:
        return  # nobody waits for the flushes of the others, who take their time
    if log.last_epoch > replica.damaged_epoch or _reaches_the_end(replica, replica.damaged_epoch):
        replica.damaged_epoch = None
        replica.outbox.has_caught_up = True
        replica.maybe_await_election(now_ms)


def _reaches_the_end(replica: Replica, epoch: int) -> bool:
    log, end_offset = replica.log, replica.lost_until
    return end_offset is not None and log.last_epoch == epoch and log.log_end_offset >= end_offset
