"""Kafka's OffsetControlManager: a snapshot is one state, so no transaction begins or ends in it."""

import pytest

from kquorum.metadata.image.errors import ReplayError
from kquorum.metadata.image.loading import delta_from_values
from kquorum.metadata.log_check.snapshot_comparison import SnapshotLoading
from kquorum.snapshots.checking import SnapshotFault
from kquorum.snapshots.naming import SnapshotId
from kquorum.snapshots.writer import SnapshotWriter
from kquorum.wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.metadata.snapshot_parts import level

MARKERS = (BeginTransactionRecord(name="x"), EndTransactionRecord(), AbortTransactionRecord(reason="x"))


@pytest.mark.parametrize("marker", MARKERS)
def test_a_snapshot_with_a_marker_cannot_be_loaded(marker: MetadataRecord) -> None:
    values = [encode_record(each) for each in (level("metadata.version", 20), marker)]
    with pytest.raises(ReplayError) as raised:
        delta_from_values(values)
    assert raised.value.offset == 1
    assert "snapshot" in raised.value.reason


@pytest.mark.parametrize("marker", MARKERS)
def test_log_verify_finds_it(marker: MetadataRecord) -> None:
    snapshot_id = SnapshotId(10, 1)
    writer = SnapshotWriter(snapshot_id, timestamp_ms=5, last_contained_log_timestamp_ms=4)
    values = [encode_record(each) for each in (level("metadata.version", 20), marker)]
    faults: list[SnapshotFault] = []
    loading = SnapshotLoading(faults.append, faults.append)
    loaded = loading.load(memoryview(b"".join(writer.write(values))), snapshot_id)
    assert not loaded.is_sound
    (fault,) = faults
    assert type(marker).__name__ in fault.reason
