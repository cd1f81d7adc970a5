"""A replica whose log has lost records that it may have acknowledged, and which remembers its votes.

The disk was damaged; the log was opened as far as it is sound, and the rest is fetched again. Let E be the epoch in
which the replica was when it started: it has acknowledged nothing in a later one. (Its epoch is on the disk before
the first Fetch in it leaves.) Until its log is whole it does not stand, and gives its vote only to a candidate whose
last record is of an epoch above E. It is whole, and a voter like any other, once what it has flushed

1. ends with a record of an epoch above E; or
2. in epoch E itself, was answered by the leader of E that there is nothing more.

Why no record that was committed with its help can be lost by that. Let it have acknowledged record r in an epoch e <=
E, and a majority with it, so that r is committed. Take the first leader above e whose log lacks r. Some voter both
acknowledged r and voted for that leader; if it was another, it refused as always (Raft 5.4.3). So it was this one,
after it was damaged (before that it compared what it had). If it was not whole, the candidate's last record was of an
epoch d > E >= e: the leader of d had r (it is an earlier leader above e), and the candidate's log agrees with that of
d's leader up to its record of d, so it has r too. If it was whole by 1, its own log has a record of an epoch above E,
hence r by the same argument, and it compares as always. If it was whole by 2, the leader of E sent it all of a log in
which r stands: either r was acknowledged to that very leader, as part of a log that only grew since; or e < E and the
leader of E had r when it was elected.

What it fetches meanwhile it acknowledges under its own name. That is true whatever was lost: it is on its disk now.
In epoch E such an acknowledgement is like the earlier ones above. In a later one it commits nothing before it covers
the first record of that epoch, since no leader counts less (Raft 5.4.2), and then the log is whole by 1. So the
leader keeps a majority that fetches from it. It brings back even a majority of damaged voters, as long as it goes on
leading; without it they wait for the others, since nobody can tell them what they had.

Nothing else is needed: no witnesses as in `lost_state`, for the votes are known. What is lost may be cut rather than
come back: of what was never committed, the leader may have another version, or none.
"""

from raft.messages import FetchResponse
from raft.replica import Replica


def cannot_judge(replica: Replica, last_offset_epoch: int) -> bool:
    """Whether a candidate with this last epoch may lack what this replica acknowledged and has lost."""
    return replica.damaged_epoch is not None and last_offset_epoch <= replica.damaged_epoch


def maybe_become_whole(replica: Replica, response: FetchResponse) -> None:
    """The leader answered a Fetch from the end of this log, so that the log is the beginning of its own."""
    log, epoch = replica.log, replica.damaged_epoch
    if epoch is None or replica.has_lost_its_state:
        return
    if replica.config.can_be_voter and log.flushed_offset < log.log_end_offset:
        return  # nobody waits for the flushes of the others, who take their time
    has_everything = replica.epoch == epoch and not response.records
    if log.last_epoch > epoch or has_everything:
        replica.damaged_epoch = None
        replica.outbox.has_caught_up = True
