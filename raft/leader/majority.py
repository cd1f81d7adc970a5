"""Linearizable reads at the leader: answered once a majority says, after the read began, that it still follows.

That is Raft's ReadIndex (§6.4) for replicas that pull. What a voter says by fetching it may have said long ago: a
Fetch can be under way for as long as a process is paused, while another leader is elected and commits (etcd#20418).
So the leader asks: BeginQuorumEpoch to whoever has not confirmed, which a voter of a newer epoch refuses. Under load
the question is often spared, since a Fetch from beyond the log end that the read saw was sent after it.
"""

from raft.ready import ReadConfirmed, ReadRefused
from raft.replica import Replica
from raft.roles import Leader, PendingRead


def handle_read(replica: Replica, read_id: int) -> None:
    """Begin a read; its outcome is in the `Ready` of this turn or of a later one."""
    leader = replica.role
    if not isinstance(leader, Leader):
        replica.outbox.reads.append(ReadRefused(read_id, replica.leader_id, replica.epoch))
        return
    read = PendingRead(read_id, replica.connections.next_correlation_id, replica.accumulator.next_offset)
    leader.reads.append(read)


def confirm_by_answer(leader: Leader, voter_id: int, correlation_id: int) -> None:
    """A voter answered, within the epoch and without error, a request that was sent after the read began."""
    for read in leader.reads:
        if correlation_id >= read.first_correlation_id:
            read.confirmed_by.add(voter_id)


def confirm_by_fetch(leader: Leader, voter_id: int, fetch_offset: int) -> None:
    """A voter has records that were appended after the read began, so its Fetch was sent after that as well."""
    for read in leader.reads:
        if fetch_offset > read.log_end_offset:
            read.confirmed_by.add(voter_id)


def is_asked_for(leader: Leader, voter_id: int) -> bool:
    """Whether a read waits for this voter."""
    return any(voter_id not in read.confirmed_by for read in leader.reads)


def confirm_reads(replica: Replica, leader: Leader) -> None:
    """Answer every read that a majority confirmed; never before a record of this epoch is committed, since until then
    the leader does not know what its predecessors have committed (Raft §8)."""
    if not leader.reads or replica.high_watermark <= leader.epoch_start_offset:
        return
    own = 1 if replica.is_voter else 0
    waiting = []
    for read in leader.reads:
        if own + len(read.confirmed_by.intersection(replica.other_voters)) >= replica.voters.majority:
            replica.outbox.reads.append(ReadConfirmed(read.read_id, replica.high_watermark))
        else:
            waiting.append(read)
    leader.reads = waiting
