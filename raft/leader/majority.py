"""What a majority of the voters has confirmed: the high watermark (Raft §5.3, §5.4.2), and linearizable reads.

A read is answered once a majority has confirmed, after the read began, that it still follows this leader. That is
Raft's ReadIndex (§6.4) for replicas that pull. A Fetch alone does not confirm it: it can be under way for as long as a
process is paused, while another leader is elected and commits (etcd#20418). So the leader sends BeginQuorumEpoch to
every voter that has not confirmed; a voter of a newer epoch refuses it. Under load the leader can often spare that
request: a Fetch from beyond the log end that the read saw was sent after the read began.
"""

from collections.abc import Iterable

from kquorum.raft.messages import UNKNOWN_OFFSET
from kquorum.raft.ready import ReadConfirmed, ReadRefused
from kquorum.raft.replica import Replica
from kquorum.raft.roles import Leader, PendingRead
from kquorum.raft.voters import Voter


def maybe_advance_high_watermark(replica: Replica, leader: Leader) -> None:
    """Commit what a majority has on disk, once that includes a record of this epoch (Raft §5.4.2; rules R7.1, R7.2).

    The leader counts what it has flushed, not what it has written (rule R3.3). The high watermark never goes back
    (rule R7.3).
    """
    if replica.high_watermark >= replica.log.log_end_offset:
        return  # Nothing is uncommitted: an idle quorum's fetches end here.
    reached = majority_offset(voter_end_offset(replica, leader, voter) for voter in replica.voters)
    # End offsets are exclusive: above the start offset, `reached` covers this epoch's first record. A record of an
    # older epoch may be on a majority and still be replaced by another leader (Raft, figure 8).
    if reached > leader.epoch_start_offset and reached > replica.high_watermark:
        replica.high_watermark = reached


def voter_end_offset(replica: Replica, leader: Leader, voter: Voter) -> int:
    if voter.matches(replica.key):
        return replica.log.flushed_offset
    progress = leader.progress.get(voter.key)
    return UNKNOWN_OFFSET if progress is None else min(progress.end_offset, replica.log.log_end_offset)


def majority_offset(end_offsets: Iterable[int]) -> int:
    """The offset that a majority of the voters has reached; -1 counts as nothing.

    With the offsets in descending order, n // 2 + 1 voters have reached the one at index n // 2 (rule R7.1). Only
    voters are counted: not a leader that has left the voter set (rule R7.5).
    """
    descending = sorted(end_offsets, reverse=True)
    return descending[len(descending) // 2] if descending else -1


# Linearizable reads


def handle_read(replica: Replica, read_id: int) -> None:
    """Begin a read; its outcome is in the `Ready` of this turn or of a later one."""
    leader = replica.role
    if not isinstance(leader, Leader):
        replica.outbox.reads.append(ReadRefused(read_id, replica.leader_id, replica.epoch))
        return
    # A response confirms the read only if its request has this correlation id or a later one, a Fetch only if it is
    # from beyond this offset: both then were sent after the read began.
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
    """Answer every read that a majority confirmed (rule P1). The leader answers none before a record of its epoch is
    committed: until then it does not know what its predecessors have committed (Raft §8)."""
    if not leader.reads or replica.high_watermark <= leader.epoch_start_offset:
        return
    # A leader that has removed itself leads until that is committed, but no longer counts (KIP-853).
    own = 1 if replica.is_voter else 0
    waiting = []
    for read in leader.reads:
        if own + len(read.confirmed_by.intersection(replica.other_voters)) >= replica.voters.majority:
            replica.outbox.reads.append(ReadConfirmed(read.read_id, replica.high_watermark))
        else:
            waiting.append(read)
    leader.reads = waiting
