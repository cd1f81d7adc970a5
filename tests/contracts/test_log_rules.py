"""What the storage promises for every kind of log: for one without gaps, and for one with gaps and producers."""

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from kquorum.storage.first_failure import FirstFailure
from kquorum.storage.log_rules import CONTIGUOUS, PARTITION_LOG, LogRules
from kquorum.storage.recovery import KnownDurable, RecoveredLog, recover_segments
from kquorum.storage.recovery_point import RecoveryPoint
from kquorum.storage.segment import SegmentLimits
from kquorum.storage.segmented_log import SegmentedLog
from kquorum.storage.torn_tail import valid_batches_behind
from kquorum.wire.batch_search import next_batch_position
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.log_batch import LogBatch, build_batch, log_batch
from kquorum.wire.log_scan import Damage, scan_batches
from tests.support.batches import with_valid_crc

FIRST = "00000000000000000000.log"
_PRODUCER_POSITION = 43


def batch(offset: int, epoch: int = 1) -> LogBatch:
    return build_batch(offset, epoch, 1_000_000 + offset, [(None, bytes([offset % 250 + 1]) * 40)])


def of_producer(made: LogBatch, producer_id: int = 4711) -> LogBatch:
    producer = struct.pack(">qhi", producer_id, 3, 0)
    data = made.data[:_PRODUCER_POSITION] + producer + made.data[_PRODUCER_POSITION + len(producer) :]
    return log_batch(with_valid_crc(data))


def log_of(rules: LogRules) -> list[LogBatch]:
    """As many batches as there are offsets; or what compaction leaves of a log that producers wrote."""
    if rules.has_gaps:
        return [of_producer(batch(offset, 1 + offset // 20)) for offset in (2, 3, 9, 10, 27, 28, 90, 91, 95)]
    return [batch(offset, 1 + offset // 5) for offset in range(9)]


def recover(folder: Path, rules: LogRules, recovery_point: int | None = None) -> RecoveredLog:
    return recover_segments(folder, KnownDurable(recovery_point), lambda _: None, rules=rules)


def open_log(folder: Path, rules: LogRules, *, cache_bytes: int = 0) -> SegmentedLog:
    point = RecoveryPoint(folder)
    recovered = recover(folder, rules, point.offset)
    assert recovered.damage is None, recovered.damage
    return SegmentedLog(
        folder,
        recovered.segments,
        recovered.epochs,
        0,
        point,
        FirstFailure("copy it from another node"),
        limits=SegmentLimits(segment_bytes=250),
        cache_bytes=cache_bytes,
        rules=rules,
    )


def written(folder: Path, rules: LogRules) -> list[LogBatch]:
    batches = log_of(rules)
    log = open_log(folder, rules)
    log.append(batches)
    log.close()
    return batches


def read_from(log: SegmentedLog, offset: int) -> list[LogBatch]:
    found: list[LogBatch] = []
    while batches := log.read_batches(offset, 1):
        found.extend(batches)
        offset = batches[-1].next_offset
    return found


def from_offset(batches: Sequence[LogBatch], offset: int) -> list[LogBatch]:
    return [each for each in batches if each.next_offset > offset]


@pytest.fixture(params=[CONTIGUOUS, PARTITION_LOG], ids=["contiguous", "partition log"])
def rules(request: pytest.FixtureRequest) -> LogRules:
    found: LogRules = request.param
    return found


@pytest.mark.parametrize("cache_bytes", [0, 200, 10_000])
def test_from_any_offset_the_next_batches_are_read(tmp_path: Path, rules: LogRules, cache_bytes: int) -> None:
    log, batches = open_log(tmp_path, rules, cache_bytes=cache_bytes), log_of(rules)
    log.append(batches)
    for offset in range(batches[-1].next_offset + 1):
        assert read_from(log, offset) == from_offset(batches, offset), offset
    log.close()


def test_a_start_finds_the_log_as_it_was(tmp_path: Path, rules: LogRules) -> None:
    batches = written(tmp_path, rules)
    assert len(list(tmp_path.glob("*.log"))) > 2
    log = open_log(tmp_path, rules)
    assert (log.end_offset, [epoch for epoch, _ in log.epochs]) == (
        batches[-1].next_offset,
        sorted({each.leader_epoch for each in batches}),
    )
    assert read_from(log, 0) == batches
    log.close()


def test_a_log_is_cut_at_any_batch_and_goes_on_there(tmp_path: Path, rules: LogRules) -> None:
    batches = written(tmp_path, rules)
    for kept in reversed(range(1, len(batches))):
        log = open_log(tmp_path, rules)
        log.truncate_to(batches[kept].base_offset)
        assert (read_from(log, 0), log.end_offset) == (batches[:kept], batches[kept - 1].next_offset)
        log.append([batches[kept]])
        assert read_from(log, 0) == batches[: kept + 1]
        log.truncate_to(batches[kept].base_offset)
        log.close()


def test_what_is_below_a_new_start_goes_with_the_next_flush(tmp_path: Path, rules: LogRules) -> None:
    batches = written(tmp_path, rules)
    log = open_log(tmp_path, rules)
    log.flush()
    log.advance_start(batches[6].base_offset)
    log.flush()
    assert read_from(log, batches[6].base_offset) == batches[6:]
    assert log.base_offset > 0
    assert not (tmp_path / FIRST).exists()
    log.close()


def test_only_a_compacted_log_may_have_a_gap(tmp_path: Path, rules: LogRules) -> None:
    data = batch(0).data + batch(5).data
    (tmp_path / FIRST).write_bytes(data)
    recovered = recover(tmp_path, rules)
    recovered.close()
    assert (recovered.damage is None) == rules.has_gaps
    assert any(isinstance(found, Damage) for found in rules.scan(data, 0)) != rules.has_gaps


def test_only_a_compacted_log_may_have_a_gap_between_segments(tmp_path: Path, rules: LogRules) -> None:
    (tmp_path / FIRST).write_bytes(batch(0).data)
    (tmp_path / FIRST.replace("0.log", "7.log")).write_bytes(batch(8 if rules.has_gaps else 7).data)
    recovered = recover(tmp_path, rules)
    recovered.close()
    assert (recovered.damage is None) == rules.has_gaps


def test_an_offset_that_goes_back_is_damage_in_any_log(tmp_path: Path, rules: LogRules) -> None:
    (tmp_path / FIRST).write_bytes(batch(0).data + batch(1).data + batch(1).data)
    recovered = recover(tmp_path, rules)
    recovered.close()
    assert recovered.damage is not None
    assert recovered.damage.start_offset == 2


def test_no_batch_is_appended_at_an_offset_that_is_taken(tmp_path: Path, rules: LogRules) -> None:
    log, batches = open_log(tmp_path, rules), log_of(rules)
    log.append(batches)
    with pytest.raises(AssertionError, match="log ends at"):
        log.append([batches[-1]])
    log.close()


def test_a_batch_behind_very_many_compressed_records_is_never_cut(tmp_path: Path, rules: LogRules) -> None:
    """Compressed, records take fewer bytes than any record has plain, so the next batch begins far beyond the bytes."""
    records = [(None, b"the same")] * 20_000
    many = build_batch(0, 1, 1_000_000, records, codec=CompressionCodec.LZ4)
    assert len(many.data) < 7 * 20_000, "a plain record has seven bytes at least"
    behind = batch(many.next_offset)
    content = bytearray(many.data + behind.data)
    content[10] ^= 0x40  # The length: the first batch then looks like the torn end of the log.
    found = [header.base_offset for _, header in valid_batches_behind(bytes(content), 0, 0, rules)]
    assert found == [20_000]
    (tmp_path / FIRST).write_bytes(content)
    recovered = recover(tmp_path, rules)
    recovered.close()
    assert recovered.damage is not None
    assert (recovered.damage.start_offset, recovered.damage.end_offset) == (0, 20_001)
    assert (tmp_path / FIRST).read_bytes() == content


@pytest.mark.parametrize("producer_id", [0, 4711, 2**63 - 1])
def test_a_search_finds_batches_of_producers_where_there_may_be_some(
    rules: LogRules, producer_id: int
) -> None:
    content = b"\x02" * 99 + of_producer(batch(7), producer_id).data + batch(8).data
    own_position = len(content) - len(batch(8).data)
    found = next_batch_position(memoryview(content), 0, has_producers=rules.has_producers)
    assert found == (99 if rules.has_producers else own_position)


def test_a_resync_goes_on_over_gaps_at_a_batch_of_a_producer() -> None:
    batches = log_of(PARTITION_LOG)
    content = bytearray(b"".join(each.data for each in batches))
    size = len(batches[0].data)
    content[size + 10] ^= 0x40
    scanned = scan_batches(
        bytes(content), base_offset=0, resync=range(100), has_gaps=True, has_producers=True
    )
    offsets = [None if isinstance(found, Damage) else found.header.base_offset for found in scanned]
    assert offsets == [2, None, *(each.base_offset for each in batches[2:])]
