"""What a snapshot begins and ends with, as kraft.version asks; after Kafka's RecordsSnapshotWriterTest and
SnapshotWriterReaderTest."""

from uuid import UUID

import pytest

from kquorum.snapshots.naming import SnapshotId
from kquorum.snapshots.writer import SnapshotWriter
from kquorum.wire.control_records import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    Voter,
    VotersRecord,
    decode_control_record,
)
from kquorum.wire.record_batch import check_batch, read_records

HEADER, FOOTER = SnapshotHeaderRecord(last_contained_log_timestamp=5), SnapshotFooterRecord()
FEATURE = KRaftVersionFeature(min_supported_version=0, max_supported_version=1)
VOTERS = VotersRecord(
    voters=tuple(
        Voter(voter_id=node_id, voter_directory_id=UUID(int=node_id), k_raft_version_feature=FEATURE)
        for node_id in (1, 2, 3)
    )
)
VERSION_1 = KRaftVersionRecord(k_raft_version=1)


def writer_of(kraft_version: int, voters: VotersRecord | None) -> SnapshotWriter:
    return SnapshotWriter(
        SnapshotId(100, 10),
        timestamp_ms=9,
        last_contained_log_timestamp_ms=5,
        kraft_version=kraft_version,
        voters=voters,
    )


def control_records(batch: bytes) -> list[object]:
    """None of any other batch."""
    header = check_batch(batch)
    if not header.is_control:
        return []
    return [decode_control_record(record.key, record.value) for record in read_records(batch, 0, header)]


@pytest.mark.parametrize(
    ("kraft_version", "voters", "expected"),
    [(0, None, [HEADER]), (1, None, [HEADER, VERSION_1]), (1, VOTERS, [HEADER, VERSION_1, VOTERS])],
)
def test_it_begins_with_the_header_and_what_is_in_force_and_ends_with_the_footer(
    kraft_version: int, voters: VotersRecord | None, expected: list[object]
) -> None:
    """testBuilderKRaftVersion0, testBuilderKRaftVersion1WithoutVoterSet, testKBuilderRaftVersion1WithVoterSet"""
    first, data, last = (
        control_records(batch) for batch in writer_of(kraft_version, voters).write([b"a", b"b"])
    )
    assert (first, data, last) == (expected, [], [FOOTER])


def test_voters_without_the_version_that_brings_them_are_our_bug() -> None:
    """testBuilderKRaftVersion0WithVoterSet"""
    with pytest.raises(AssertionError, match="voter set belongs to"):
        writer_of(0, VOTERS)


def test_a_writer_that_has_ended_takes_nothing_more() -> None:
    """testAppendToFrozenSnapshot"""
    writer = writer_of(0, None)
    assert len(list(writer.write([b"a"]))) == 3
    with pytest.raises(AssertionError, match="writes one snapshot"):
        next(writer.write([b"b"]))
