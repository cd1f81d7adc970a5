"""Control batches that the core itself writes."""

from collections.abc import Iterable

from raft.batches import LogBatch, build_batch
from wire.control_records import LeaderChangeMessage, LeaderChangeVoter, encode_control_record


def leader_change_batch(
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    leader_id: int,
    voters: Iterable[int],
    granting_voters: Iterable[int],
) -> LogBatch:
    """The first batch of an epoch (KIP-595): once it is committed, so is all that stands before it."""
    message = LeaderChangeMessage(
        leader_id=leader_id,
        voters=tuple(LeaderChangeVoter(voter_id=voter) for voter in sorted(voters)),
        granting_voters=tuple(LeaderChangeVoter(voter_id=voter) for voter in sorted(granting_voters)),
    )
    return build_batch(
        base_offset, leader_epoch, timestamp_ms, [encode_control_record(message)], control=True
    )
