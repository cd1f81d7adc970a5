"""What must be true of voter sets, committed or not (KIP-853; Kafka's AtMostOneUncommittedVoterSet)."""

from collections.abc import Sequence

from kquorum.raft.voters import ReplicaKey, VotersAt, VoterSet, quorum_records
from kquorum.wire.log_batch import LogBatch
from tests.simulation.errors import InvariantBroken
from tests.simulation.hosts import Host


def check_new_voters(host: Host, batches: Sequence[LogBatch], committed_end: int) -> None:
    """Before these batches are appended: one voter more or less at a time, and only after the last set is committed."""
    last = host.disk.voter_sets[-1] if host.disk.voter_sets else None
    for batch in batches:
        if not batch.is_control:
            continue
        for record in quorum_records(batch):
            if isinstance(record, VotersAt):
                if last is not None:
                    _check_step(host, last, record, committed_end)
                last = record


def _check_step(host: Host, before: VotersAt, after: VotersAt, committed_end: int) -> None:
    if len(before.voters.keys ^ after.voters.keys) > 1:
        raise InvariantBroken(
            f"the voters of node {host.node_id} go from {_names(before)} at offset {before.offset} "
            f"to {_names(after)} at offset {after.offset} in one step"
        )
    if before.offset >= committed_end and before.voters.keys != after.voters.keys:
        raise InvariantBroken(
            f"node {host.node_id} has two voter sets that are not committed, "
            f"at offsets {before.offset} and {after.offset}"
        )


def may_stand(host: Host, voters: VoterSet, high_watermark: int) -> bool:
    """Voters may, and who was one until its own removal, which it does not know to be committed: its log may be the
    longest (Ongaro's dissertation, 4.2.2)."""
    if voters.contains(host.key):
        return True
    sets = [
        record for record in (*host.disk.bootstrap, *host.disk.voter_sets) if isinstance(record, VotersAt)
    ]
    if not sets or sets[-1].offset < high_watermark:
        return False
    return len(sets) < 2 or sets[-2].voters.contains(host.key)


def _names(record: VotersAt) -> list[str]:
    return [_name(voter.key) for voter in record.voters]


def _name(key: ReplicaKey) -> str:
    return f"{key.id}/{key.directory_id.int}"
