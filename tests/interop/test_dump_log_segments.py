"""Kafka's `DumpLogSegments` reads every record that we can write as `kquorum log dump` does."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kquorum.raft.adapters.file_log import FileLog
from kquorum.snapshots.naming import SnapshotId
from kquorum.snapshots.writer import SnapshotWriter
from kquorum.storage.segment import SegmentLimits
from kquorum.wire.audit_note import AUDIT_NOTE_TAG
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    VotersRecord,
    encode_control_record,
)
from kquorum.wire.log_batch import parse_batches
from kquorum.wire.metadata_records.cluster import UnregisterControllerRecord
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.metadata_records.registry import ALL
from kquorum.wire.proto.audit_pb2 import AuditNote
from kquorum.wire.record_batch import write_batch
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import plan_of
from tests.interop.dumps import assert_same_dumps, check_indexes_with_kafka
from tests.interop.kafka_process import Kafka
from tests.support.wire_values import fullest, least

pytestmark = pytest.mark.interop

NOT_IN_THIS_RELEASE = {UnregisterControllerRecord}
CODECS = (CompressionCodec.NONE, CompressionCodec.LZ4)
NOTE = AuditNote(principal="User:alice", client_id="admin", api_key=19, covered_records=3, reason="a topic")


def every_value() -> Iterator[bytes]:
    """Every record type at every version, as little and as much of it as there can be."""
    for cls in ALL:
        if cls not in NOT_IN_THIS_RELEASE:
            for version in range(cls.versions[0], cls.versions[1] + 1):
                for make in (least, fullest):
                    yield encode_record(make(plan_of(cls, version)), version)


def audit_note() -> bytes:
    return encode_record(NoOpRecord(unknown_tagged_fields=((AUDIT_NOTE_TAG, NOTE.SerializeToString()),)), 0)


def fullest_voters() -> VotersRecord:
    """Each voter with an id of its own: a set that names one twice is damage."""
    record: VotersRecord = fullest(plan_of(VotersRecord, 0))
    return replace(record, voters=tuple(replace(each, voter_id=n) for n, each in enumerate(record.voters, 1)))


def control_records() -> tuple[ControlRecord, ...]:
    voters = fullest_voters()
    granting = (LeaderChangeVoter(voter_id=1), LeaderChangeVoter(voter_id=3))
    leader = LeaderChangeMessage(
        leader_id=1, voters=(*granting, LeaderChangeVoter(voter_id=2)), granting_voters=granting
    )
    return leader, KRaftVersionRecord(k_raft_version=1), voters


def write_log(folder: Path, limits: SegmentLimits) -> int:
    """A log with an epoch's beginning, all records and audit notes, plain and compressed; answers its end."""
    log = FileLog(folder, limits)
    timestamp_ms = 1_700_000_000_000
    begin = [encode_control_record(record) for record in control_records()]
    _append(log, timestamp_ms, begin, control=True)
    for codec in CODECS:
        for value in every_value():
            timestamp_ms += 7
            _append(log, timestamp_ms, [(None, audit_note()), (None, value)], codec=codec)
        everything = [(None, value) for value in (audit_note(), *every_value())]
        _append(log, timestamp_ms, everything, codec=codec)
    log.flush()
    end = log.end_offset
    log.close()
    return end


def _append(
    log: FileLog,
    timestamp_ms: int,
    records: Sequence[tuple[bytes | None, bytes | None]],
    *,
    control: bool = False,
    codec: CompressionCodec = CompressionCodec.NONE,
) -> None:
    data = write_batch(
        base_offset=log.end_offset,
        leader_epoch=3,
        timestamp_ms=timestamp_ms,
        records=records,
        control=control,
        codec=codec,
    )
    log.append(tuple(parse_batches(data)))


def test_kafka_reads_every_record_in_segments_and_their_indexes(kafka: Kafka, tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    end = write_log(folder, SegmentLimits(segment_bytes=6 * 1024))
    segments = sorted(folder.glob("*.log"))
    assert len(segments) >= 4
    dumps = assert_same_dumps(kafka, segments)
    read = [record.offset for path in segments for record in dumps[path].records]
    assert read == list(range(end))
    assert {codec for found in dumps.values() for codec in found.codecs} == {"none", "lz4"}
    check_indexes_with_kafka(kafka, *sorted(folder.glob("*.index")), *sorted(folder.glob("*.timeindex")))


@pytest.mark.parametrize("codec", CODECS)
def test_kafka_reads_snapshots(kafka: Kafka, tmp_path: Path, codec: CompressionCodec) -> None:
    values = list(every_value()) * 20
    snapshot_id = SnapshotId(1000, 7)
    static = SnapshotWriter(
        snapshot_id,
        timestamp_ms=1_700_000_000_000,
        last_contained_log_timestamp_ms=1_600_000_000_000,
        codec=codec,
        max_batch_bytes=20_000,
    )
    dynamic = SnapshotWriter(
        SnapshotId(2000, 9),
        timestamp_ms=1_700_000_000_000,
        last_contained_log_timestamp_ms=1_600_000_000_000,
        codec=codec,
        voters=fullest_voters(),
        kraft_version=1,
    )
    paths = [tmp_path / snapshot_id.file_name, tmp_path / SnapshotId(2000, 9).file_name]
    for path, writer in zip(paths, (static, dynamic), strict=True):
        path.write_bytes(b"".join(writer.write(iter(values))))
    dumps = assert_same_dumps(kafka, paths)
    assert [len(dumps[path].records) for path in paths] == [len(values) + 2, len(values) + 4]
    assert {"lz4"} & set(dumps[paths[0]].codecs) == ({"lz4"} if codec is CompressionCodec.LZ4 else set())
