"""What is lawful in the files beside a log, though it looks odd: nothing is reported."""

import struct

import pytest

from kquorum.metadata.log_check.findings import Check, Finding, Findings, Severity
from kquorum.metadata.log_check.indexes import IndexFault, OffsetIndexWalk, TimeIndexWalk
from kquorum.metadata.log_check.small_files import epoch_faults, partition_metadata_fault
from kquorum.wire.log_scan import ScannedBatch, scan_batches
from kquorum.wire.metadata_records.features import NoOpRecord
from tests.support.sample_logs import LogBuilder


def log(count: int, base: int = 50) -> list[ScannedBatch]:
    """Batches of one record, at offsets from `base` on and times 0, 10, 20..."""
    builder = LogBuilder(next_offset=base)
    for number in range(count):
        builder.records(number * 10, NoOpRecord())
    return [found for found in scan_batches(bytes(builder.data)) if isinstance(found, ScannedBatch)]


def offset_faults(
    batches: list[ScannedBatch], *entries: tuple[int, int], tail: bytes = b""
) -> list[IndexFault]:
    faults: list[IndexFault] = []
    data = b"".join(struct.pack(">ii", *entry) for entry in entries) + tail
    walk = OffsetIndexWalk(memoryview(data), 50, faults.append)
    for found in batches:
        walk.observe(found.position, found.header)
    walk.finish()
    return faults


def time_faults(
    batches: list[ScannedBatch], *entries: tuple[int, int], tail: bytes = b""
) -> list[IndexFault]:
    faults: list[IndexFault] = []
    data = b"".join(struct.pack(">qi", *entry) for entry in entries) + tail
    walk = TimeIndexWalk(memoryview(data), 50, faults.append)
    for found in batches:
        walk.observe(found.position, found.header)
    walk.finish()
    return faults


@pytest.mark.parametrize("written", [[], [(3, 100)]])
def test_a_log_that_begins_at_its_end_has_no_epochs_left(written: list[tuple[int, int]]) -> None:
    """What stands below the snapshot goes with its segment, later; Kafka keeps an entry at the end."""
    known = [(1, 60), (3, 80)]
    assert list(epoch_faults(written, known, log_end_offset=100, snapshot_end_offsets=[100])) == []
    assert list(epoch_faults(written, known, log_end_offset=100, snapshot_end_offsets=[90])) != []


def test_an_entry_may_stand_for_several_batches_appended_at_once() -> None:
    batches = log(9)
    assert offset_faults(batches, (4, batches[2].position), (7, batches[6].position)) == []


def test_entries_may_not_overlap_point_between_batches_or_behind_the_log() -> None:
    batches = log(9)
    for entries in (
        [(4, batches[2].position), (7, batches[4].position)],
        [(4, batches[2].position + 1)],
        [(1, batches[2].position)],
        [(9, batches[8].position)],
        [(4, batches[2].position), (4, batches[2].position)],
    ):
        assert len(offset_faults(batches, *entries)) == 1, entries


def test_reserved_space_behind_the_entries_is_no_entry() -> None:
    batches = log(3)
    assert offset_faults(batches, (1, batches[1].position), tail=bytes(80)) == []
    assert offset_faults(batches, tail=bytes(80)) == []
    assert time_faults(batches, (10, 1), tail=bytes(120)) == []
    assert len(offset_faults(batches, (1, batches[1].position), tail=bytes(72) + bytes([0, 0, 0, 1] * 2))) > 0


def test_a_time_entry_names_the_batch_with_the_largest_time_so_far() -> None:
    batches = log(5)
    assert time_faults(batches, (10, 1), (40, 4)) == []
    assert len(time_faults(batches, (11, 1))) == 1
    assert len(time_faults(batches, (40, 9))) == 1
    late = LogBuilder(next_offset=50).records(90, NoOpRecord()).records(20, NoOpRecord())
    found = [each for each in scan_batches(bytes(late.data)) if isinstance(each, ScannedBatch)]
    assert time_faults(found, (90, 0)) == []
    assert len(time_faults(found, (20, 1))) == 1


@pytest.mark.parametrize(
    ("written", "from_batches", "ends"),
    [
        ([(1, 0), (3, 20)], [(1, 0), (3, 20)], []),
        # A leader enters its epoch at the log's end before it writes there.
        ([(1, 0), (3, 100)], [(1, 0)], []),
        # Epochs below the log's start are left out, or cut to the snapshot's end.
        ([(1, 15), (3, 20)], [(1, 10), (3, 20)], [15]),
        ([(3, 30)], [(1, 10), (3, 20)], [30]),
        ([(2, 100)], [], [100]),
        ([], [], []),
    ],
)
def test_valid_epochs(
    written: list[tuple[int, int]], from_batches: list[tuple[int, int]], ends: list[int]
) -> None:
    assert list(epoch_faults(written, from_batches, log_end_offset=100, snapshot_end_offsets=ends)) == []


@pytest.mark.parametrize(
    "written",
    [
        [(1, 0)],
        [(3, 20)],
        [(1, 0), (3, 21)],
        [(1, 0), (2, 10), (3, 20)],
        [(3, 20), (1, 0)],
        [(1, 0), (3, 20), (4, 101)],
        [],
    ],
)
def test_invalid_epochs(written: list[tuple[int, int]]) -> None:
    faults = epoch_faults(written, [(1, 0), (3, 20)], log_end_offset=100, snapshot_end_offsets=[50])
    assert list(faults)


@pytest.mark.parametrize("content", [b"", b"\xff", b"version: 1\ntopic_id: x", b"version: 0", b"version:"])
def test_partition_metadata_of_no_sense(content: bytes) -> None:
    assert partition_metadata_fault(content) is not None


def test_partition_metadata_may_end_with_a_newline() -> None:
    assert partition_metadata_fault(b"version: 0\r\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\r\n") is None


def test_the_gravest_findings_are_kept_and_all_are_counted() -> None:
    findings = Findings(keep=2)
    for severity in (Severity.NOTE, Severity.NOTE, Severity.DAMAGE, Severity.VIOLATION, Severity.NOTE):
        findings.add(Finding(check=Check.BATCHES, severity=severity, file="f", reason="r", remedy="x"))
    (result,) = findings.results()
    assert {finding.severity for finding in result.first} == {Severity.DAMAGE, Severity.VIOLATION}
    assert result.counts == {Severity.NOTE: 3, Severity.DAMAGE: 1, Severity.VIOLATION: 1}
    assert findings.worst is Severity.DAMAGE
