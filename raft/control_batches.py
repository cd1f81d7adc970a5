"""Control batches that the core itself writes."""

from collections.abc import Iterable, Sequence

from wire.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    VotersRecord,
    encode_control_record,
)
from wire.log_batch import LogBatch, build_batch


def leader_change_batch(
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    leader_id: int,
    voters: Iterable[int],
    granting_voters: Iterable[int],
    quorum_records: Sequence[KRaftVersionRecord | VotersRecord] = (),
) -> LogBatch:
    """The first batch of an epoch (KIP-595): once it is committed, so is all that stands before it.

    `quorum_records` go with it: the bootstrap checkpoint's on their way into the log, or the leader's new endpoints.
    """
    message = LeaderChangeMessage(
        leader_id=leader_id,
        voters=tuple(LeaderChangeVoter(voter_id=voter) for voter in sorted(voters)),
        granting_voters=tuple(LeaderChangeVoter(voter_id=voter) for voter in sorted(granting_voters)),
    )
    records = [encode_control_record(record) for record in (message, *quorum_records)]
    return build_batch(base_offset, leader_epoch, timestamp_ms, records, control=True)


def quorum_batch(
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    quorum_records: Sequence[KRaftVersionRecord | VotersRecord],
) -> LogBatch:
    """A change of the voters, or of kraft.version and voters together, which must never be seen apart."""
    records = [encode_control_record(record) for record in quorum_records]
    return build_batch(base_offset, leader_epoch, timestamp_ms, records, control=True)
