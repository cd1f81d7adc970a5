"""The benchmarks of the audit do what they say, at a size that takes no time."""

import json
import os
from pathlib import Path

import pytest

from benchmarks import audit_decode, audit_replay
from benchmarks._memory import PeakMemory
from wire.log_scan import ScannedBatch, scan_batches


def test_a_generated_log_is_sound_and_has_the_records_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_replay, "SEGMENT_BYTES", 20_000)
    size = audit_replay.generate(tmp_path, 1000)
    files = sorted((tmp_path / "__cluster_metadata-0").glob("*.log"))
    assert len(files) > 2
    assert sum(file.stat().st_size for file in files) == size
    next_offset = 0
    for file in files:
        assert int(file.stem) == next_offset
        for batch in scan_batches(file.read_bytes(), base_offset=next_offset):
            assert isinstance(batch, ScannedBatch)
            next_offset = batch.header.next_offset
    assert next_offset == 1000


def test_audit_decode(capsys: pytest.CaptureFixture[str]) -> None:
    audit_decode.main(["--records", "1500", "--json"])
    rows = json.loads(capsys.readouterr().out)["results"]["bytes to columns"]
    assert [row["records"] for row in rows] == [1500, 1500, 1500]
    assert all(row["columns_per_s"] > 0 and row["parquet_per_s"] > 0 for row in rows)


def test_decoding_alone_reads_the_folder(tmp_path: Path) -> None:
    audit_replay.generate(tmp_path, 500)
    assert audit_replay.run_step("decode", tmp_path, 1) > 0


def test_the_peak_of_memory_is_that_of_this_process_by_name() -> None:
    with PeakMemory(os.getpid()) as memory:
        while not memory.peak_mb:
            pass
    assert max(memory.peak_mb.values()) > 5
