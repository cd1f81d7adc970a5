"""Snapshots of the simulated state machine as Kafka's bytes: header, voters, state and footer, in checked batches.

The state machine is a checksum over every committed batch, so that a snapshot says all there is to say of it. What a
node writes beside that differs from node to node: pieces of two nodes' files never make a whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

from kquorum.raft.voters import (
    KRaftVersionAt,
    QuorumRecord,
    VotersAt,
    VoterSet,
    quorum_records,
    voters_record,
)
from kquorum.wire.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    decode_control_record,
    encode_control_record,
)
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch, build_batch, parse_batches


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """`state` is that of the state machine; `quorum_records` stand at the last offset that the snapshot contains."""

    snapshot_id: OffsetAndEpoch
    state: int
    quorum_records: tuple[QuorumRecord, ...]
    data: bytes


def next_state(state: int, batch: LogBatch) -> int:
    """What the state machine is after a batch."""
    return crc32(batch.data, state)


def quorum_records_at(offset: int, kraft_version: int, voters: VoterSet) -> tuple[QuorumRecord, ...]:
    """What a snapshot that ends at `offset` says of the quorum: nothing under kraft.version 0 (KIP-853)."""
    if kraft_version == 0:
        return ()
    version = KRaftVersionAt(offset - 1, kraft_version)
    return (version, VotersAt(offset - 1, voters)) if len(voters) else (version,)


def write_snapshot(
    snapshot_id: OffsetAndEpoch, state: int, records: tuple[QuorumRecord, ...], padding: bytes
) -> SnapshotFile:
    said: list[ControlRecord] = [SnapshotHeaderRecord(last_contained_log_timestamp=0)]
    for record in records:
        if isinstance(record, VotersAt):
            said.append(voters_record(record.voters))
        else:
            said.append(KRaftVersionRecord(k_raft_version=record.kraft_version))
    epoch = snapshot_id.epoch
    first = [encode_control_record(record) for record in said]
    values = [(None, b"%d" % state), (None, padding)]
    footer = [encode_control_record(SnapshotFooterRecord())]
    batches = [
        build_batch(0, epoch, 0, first, control=True),
        build_batch(len(first), epoch, 0, values),
        build_batch(len(first) + len(values), epoch, 0, footer, control=True),
    ]
    return SnapshotFile(snapshot_id, state, records, b"".join(batch.data for batch in batches))


def read_snapshot(snapshot_id: OffsetAndEpoch, data: bytes) -> SnapshotFile | None:
    """None if it is not a whole snapshot of that epoch."""
    batches = parse_batches(data)
    if sum(len(batch.data) for batch in batches) != len(data) or len(batches) != 3:
        return None
    if not _is_whole(snapshot_id.epoch, batches):
        return None
    last_offset = snapshot_id.offset - 1
    records = tuple(_at(last_offset, record) for record in quorum_records(batches[0]))
    return SnapshotFile(snapshot_id, int(batches[1].records[0].value or b""), records, data)


def _is_whole(epoch: int, batches: Sequence[LogBatch]) -> bool:
    end_offset = 0
    for batch in batches:
        if batch.base_offset != end_offset or batch.leader_epoch != epoch:
            return False
        end_offset = batch.next_offset
    last = batches[-1].records[-1]
    return isinstance(decode_control_record(last.key, last.value), SnapshotFooterRecord)


def _at(offset: int, record: QuorumRecord) -> QuorumRecord:
    if isinstance(record, VotersAt):
        return VotersAt(offset, record.voters)
    return KRaftVersionAt(offset, record.kraft_version)
