"""The columns of the audit's source hold, row for row, what `log dump` makes of the same bytes one by one."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest

from kquorum.spark_replay.decode.files import map_listed
from kquorum.spark_replay.decode.records import RecordDecoder, batch_row, origin_of, scan
from kquorum.spark_replay.decode.rows import BatchRow, DamageRow, RecordRow
from kquorum.spark_replay.decode.sources import FileKind, LogFile, find_log_files, log_file
from kquorum.spark_replay.source import (
    ROW_KINDS,
    KraftLogDataSource,
    KraftLogReader,
)
from kquorum.spark_replay.tables.building.registry import TABLES
from kquorum.spark_replay.tables.building.source_rows import SOURCE_ROWS
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.control_records import SnapshotFooterRecord, SnapshotHeaderRecord, encode_control_record
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.record_batch import write_batch
from kquorum.wire.record_frame import encode_record
from tests.support.batches import batch_of
from tests.support.sample_logs import UNKNOWN_KEY, LogBuilder, write_sample, write_trimmed_sample
from tests.support.spark.log_columns import WHOLE, Rows, in_columns
from tests.support.spark.random_history import write_random_history

NAMES = SOURCE_ROWS.fieldNames()


def one_by_one(*files: LogFile, show_secrets: bool = False) -> Rows:
    found: Rows = {"record": [], "batch": [], "damage": []}
    for file in files:
        fixed = {"source": file.source, "file_kind": str(file.kind)}
        for kind, row in _rows(file, show_secrets):
            found[kind].append({**dict.fromkeys(NAMES), **fixed, "row_kind": kind, **_plain(row)})
    return found


def _rows(file: LogFile, show_secrets: bool) -> Iterator[tuple[str, RecordRow | BatchRow | DamageRow]]:
    origin = origin_of(file)
    decoder = RecordDecoder(origin, show_secrets=show_secrets)
    for item in scan(map_listed(file.path), origin):
        if isinstance(item, DamageRow):
            yield "damage", item
            continue
        yield "batch", batch_row(item, origin)
        for row in decoder.rows(item):
            yield ("damage" if isinstance(row, DamageRow) else "record"), row


def _plain(row: RecordRow | BatchRow | DamageRow) -> Mapping[str, Any]:
    fields = row._asdict()
    if isinstance(row, RecordRow) and row.payload is not None:
        fields["payload"] = json.dumps(row.payload, separators=(",", ":"), ensure_ascii=False)
    return fields


def assert_equal(*files: LogFile, split_bytes: int = WHOLE) -> Rows:
    expected, found = one_by_one(*files), in_columns(*files, split_bytes=split_bytes)
    for kind, rows in expected.items():
        assert found[kind] == rows, kind
    return found


def write(path: Path, data: bytes) -> LogFile:
    path.write_bytes(data)
    return log_file(path, source="test")


def test_logs_of_every_trouble_have_the_same_rows(tmp_path: Path) -> None:
    found = assert_equal(*find_log_files(write_sample(tmp_path / "sample")))
    assert found["damage"]
    assert any(row["problem"] for row in found["record"])
    snapshots = find_log_files(write_trimmed_sample(tmp_path / "trimmed"))
    assert {file.kind for file in snapshots} == {FileKind.LOG, FileKind.SNAPSHOT}
    assert_equal(*snapshots)


def test_secrets_asked_for_are_the_same(tmp_path: Path) -> None:
    files = find_log_files(write_sample(tmp_path / "sample"))
    found = in_columns(*files, show_secrets=True)
    assert found == one_by_one(*files, show_secrets=True)
    assert "hunter2" in "".join(row["payload"] or "" for row in found["record"])


@pytest.mark.parametrize("seed", range(3))
def test_random_histories_have_the_same_rows_in_any_pieces(tmp_path: Path, seed: int) -> None:
    files = find_log_files(write_random_history(tmp_path / "life", seed=seed, operations=300))
    found = assert_equal(*files)
    for split_bytes in (1, 1000, 4096):
        assert in_columns(*files, split_bytes=split_bytes) == found


@pytest.mark.slow
def test_real_logs_have_the_same_rows(real_logs: Path) -> None:
    found = assert_equal(*find_log_files(real_logs))
    assert len(found["record"]) > 10_000


def test_real_snapshots_have_the_same_rows_in_pieces(real_logs: Path) -> None:
    files = [file for file in find_log_files(real_logs) if file.kind is FileKind.SNAPSHOT]
    assert_equal(*files, split_bytes=2000)


@pytest.mark.parametrize("seed", range(40))
def test_damaged_logs_have_the_same_rows(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    (first, *_) = find_log_files(write_random_history(tmp_path / "life", seed=seed, operations=60))
    data = bytearray(Path(first.path).read_bytes())
    for _ in range(random.randint(1, 3)):
        match random.choice(["flip", "cut", "zero"]):
            case "flip":
                data[random.randrange(len(data))] ^= 1 << random.randrange(8)
            case "cut":
                del data[random.randrange(len(data)) :]
            case "zero":
                start = random.randrange(len(data))
                data[start:] = bytes(len(data) - start)
        data = data or bytearray(1)
    assert_equal(write(tmp_path / first.name, bytes(data)))


def change(number: int) -> bytes:
    return encode_record(
        PartitionChangeRecord(
            partition_id=number, topic_id=UUID(int=number % 7), isr=(1, 2), leader=number % 5
        )
    )


def test_large_batches_compressed_or_not_have_the_same_rows(tmp_path: Path) -> None:
    data = b"".join(
        write_batch(
            base_offset=10_000 * place,
            leader_epoch=place,
            timestamp_ms=7 + place,
            records=[(None, change(number) if number % 9 else UNKNOWN_KEY) for number in range(10_000)],
            codec=codec,
        )
        for place, codec in enumerate((CompressionCodec.NONE, CompressionCodec.LZ4))
    )
    found = assert_equal(write(tmp_path / f"{0:020d}.log", data))
    assert [row["offset"] for row in found["record"]] == list(range(20_000))


@pytest.mark.parametrize("attributes", [0, 0x08])
@pytest.mark.parametrize("count", [1, 3, 80])
def test_timestamps_and_offsets_of_unusual_records_are_the_same(
    tmp_path: Path, attributes: int, count: int
) -> None:
    body = bytearray()
    for number in range(count):
        record = bytes([0, 2 * 3, 2 * (number % 60), 1, 2 * 4]) + encode_record(NoOpRecord()) + b"\x00"
        body += bytes([2 * len(record)]) + record
    assert_equal(
        write(tmp_path / f"{0:020d}.log", batch_of(bytes(body), attributes=attributes, record_count=count))
    )


def test_only_the_rows_asked_for_are_given(tmp_path: Path) -> None:
    files = find_log_files(write_sample(tmp_path / "sample"))
    undecodable = write(tmp_path / f"{0:020d}.log", batch_of(b"\x7f\x00\x01\x02"))
    expected = one_by_one(*files, undecodable)
    assert any(row["kind"] == "undecodable" for row in expected["damage"])
    for option, kind in (("records", "record"), ("batches", "batch"), ("damage", "damage")):
        found = in_columns(*files, undecodable, rows=option)
        assert found == {name: rows if name == kind else [] for name, rows in expected.items()}


def snapshot_of(records: int) -> bytes:
    log = bytearray()
    for control, offset in ((SnapshotHeaderRecord(last_contained_log_timestamp=77), 0),):
        log += write_batch(
            base_offset=offset,
            leader_epoch=1,
            timestamp_ms=5,
            records=[encode_control_record(control)],
            control=True,
        )
    for number in range(records):
        log += write_batch(
            base_offset=1 + number, leader_epoch=1, timestamp_ms=5, records=[(None, change(number))]
        )
    log += write_batch(
        base_offset=1 + records,
        leader_epoch=1,
        timestamp_ms=5,
        records=[encode_control_record(SnapshotFooterRecord())],
        control=True,
    )
    return bytes(log)


def test_a_large_snapshot_is_read_in_pieces_that_know_its_time(tmp_path: Path) -> None:
    file = write(tmp_path / f"{100:020d}-{3:010d}.checkpoint", snapshot_of(50))
    found = assert_equal(file, split_bytes=300)
    reader = KraftLogReader(SOURCE_ROWS, (file,), ROW_KINDS["all"], split_bytes=300, show_secrets=False)
    assert len(reader.partitions()) > 10
    assert {(row["state_offset"], row["state_timestamp_ms"]) for row in found["record"]} == {(99, 77)}


def test_a_piece_that_does_not_continue_the_one_before_is_damage_as_in_the_whole(tmp_path: Path) -> None:
    first = LogBuilder().records(1, NoOpRecord()).data
    later = LogBuilder(next_offset=5).records(2, NoOpRecord()).records(3, NoOpRecord()).data
    file = write(tmp_path / f"{0:020d}.log", bytes(first + later))
    found = assert_equal(file, split_bytes=len(first))
    assert [(row["position"], row["offset"]) for row in found["damage"]] == [(len(first), 1)]
    snapshot = replace(file, kind=FileKind.SNAPSHOT, end_offset=9, base_offset=None)
    assert_equal(snapshot, split_bytes=len(first))


@pytest.mark.parametrize("rows", ["records", "batches", "damage"])
def test_rows_of_one_kind_have_the_columns_of_that_kind(tmp_path: Path, rows: str) -> None:
    folder = write_sample(tmp_path / "sample")
    source = KraftLogDataSource({"path": str(folder), "rows": rows})
    schema = source.schema()
    assert set(schema.fieldNames()) == {"row_kind", *TABLES[rows].schema.fieldNames()} - {"timestamp"}
    reader = source.reader(schema)
    found = [
        row for split in reader.partitions() for batch in reader.read(split) for row in batch.to_pylist()
    ]
    expected = in_columns(*find_log_files(folder), rows=rows)
    assert found == [
        {name: row[name] for name in schema.fieldNames()} for kind in expected.values() for row in kind
    ]


def test_options_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="must be one of records, batches, damage, all"):
        KraftLogDataSource({"path": ".", "rows": "record"}).schema()
    with pytest.raises(ValueError, match="path is missing"):
        KraftLogDataSource({}).reader(SOURCE_ROWS)


def test_few_records_of_many_bytes_are_handed_over_before_there_are_many(tmp_path: Path) -> None:
    segment = tmp_path / "00000000000000000000.log"
    value = UNKNOWN_KEY + bytes(7 << 20)
    with segment.open("wb") as file:
        for offset in range(8):
            file.write(batch_of_value(offset, value))
    reader = KraftLogReader(
        SOURCE_ROWS,
        (log_file(segment, source="s"),),
        ROW_KINDS["records"],
        split_bytes=WHOLE,
        show_secrets=True,
    )
    (split,) = reader.partitions()
    assert [batch.num_rows for batch in reader.read(split)] == [5, 3]


def batch_of_value(offset: int, value: bytes) -> bytes:
    return bytes(
        write_batch(
            base_offset=offset,
            leader_epoch=1,
            timestamp_ms=1,
            records=[(None, value)],
            codec=CompressionCodec.LZ4,
        )
    )
