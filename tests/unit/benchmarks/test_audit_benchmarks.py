"""The benchmarks of the audit do what they say, at a size that takes no time."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import audit_decode, audit_replay
from benchmarks._memory import PeakMemory
from kquorum.spark_replay.decode.splits import split_ranges
from kquorum.wire.log_scan import ScannedBatch, scan_batches
from kquorum.wire.record_batch import read_records
from kquorum.wire.record_frame import decode_record


def test_a_generated_log_is_sound_and_has_the_records_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_replay, "SEGMENT_BYTES", 20_000)
    count, size = audit_replay.generate(tmp_path, 1000, partitions=32)
    files = sorted((tmp_path / "__cluster_metadata-0").glob("*.log"))
    assert len(files) > 2
    assert sum(file.stat().st_size for file in files) == size
    next_offset = 0
    for file in files:
        assert int(file.stem) == next_offset
        for batch in scan_batches(file.read_bytes(), base_offset=next_offset):
            assert isinstance(batch, ScannedBatch)
            next_offset = batch.header.next_offset
    assert next_offset == count >= 1000


def test_audit_decode(capsys: pytest.CaptureFixture[str]) -> None:
    audit_decode.main(["--records", "1500", "--json"])
    rows = json.loads(capsys.readouterr().out)["results"]["bytes to columns"]
    assert [row["records"] >= 1500 for row in rows] == [True, True, True]
    assert all(row["columns_per_s"] > 0 and row["parquet_per_s"] > 0 for row in rows)


def test_decoding_alone_reads_the_folder(tmp_path: Path) -> None:
    audit_replay.generate(tmp_path, 3000, partitions=64)
    for step in ("decode", "replay"):
        assert audit_replay.run_step(step, tmp_path, 1)["seconds"] > 0


def test_the_generated_log_is_of_a_busy_cluster() -> None:
    types = Counter[str]()
    for _, data in audit_replay.log_batches(60_000, partitions=160):
        for batch in scan_batches(data):
            assert isinstance(batch, ScannedBatch)
            for record in read_records(batch.data, 0, batch.header):
                types["control" if batch.header.is_control else type_of(record.value)] += 1
    assert 0.5 < types["NoOpRecord"] / types.total() < 0.7
    assert types["PartitionChangeRecord"] / types.total() > 0.25
    others = {"RemoveTopicRecord", "ConfigRecord", "RegisterBrokerRecord", "ProducerIdsRecord", "control"}
    assert others | {"BrokerRegistrationChangeRecord", "TopicRecord", "PartitionRecord"} <= set(types)


def type_of(value: bytes | None) -> str:
    return type(decode_record(value or b"")).__name__


def test_the_segments_are_cut_at_their_indexes(tmp_path: Path) -> None:
    audit_replay.generate(tmp_path, 3000, partitions=64)
    (path,) = (tmp_path / "__cluster_metadata-0").glob("*.log")
    index = path.with_suffix(".index").read_bytes()
    view = memoryview(path.read_bytes())
    assert len(index) > 100
    cut = split_ranges(view, index, 20_000)
    assert len(cut) > 5
    assert cut != split_ranges(view, b"", 20_000)


def test_the_peak_of_memory_is_that_of_this_process_by_name() -> None:
    with PeakMemory(os.getpid()) as memory:
        while not memory.peak_mb:
            pass
    assert max(memory.peak_mb.values()) > 5
