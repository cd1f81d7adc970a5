import os
import shutil
import struct
import threading
from pathlib import Path

import pytest

from kquorum.raft.adapters.file_log import FileLog
from kquorum.storage.errors import FsyncFailed
from kquorum.storage.segment import SegmentLimits
from kquorum.wire.log_batch import LogBatch, build_batch, parse_batches
from kquorum.wire.log_scan import ScannedBatch, scan_batches
from kquorum.wire.record_batch import BatchHeader

FIRST = "00000000000000000000"
LOGS = (
    "early-3.0",
    "seven-epochs",
    "single-node-3.6",
    "six-snapshots",
    "three-controllers-1",
    "three-controllers-2",
)


def batch(offset: int, size: int = 100, epoch: int = 1, timestamp_ms: int = 1_000_000) -> LogBatch:
    return build_batch(offset, epoch, timestamp_ms + offset, [(None, bytes([offset % 250 + 1]) * size)])


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_new_log_has_the_files_that_kafka_makes(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    FileLog(folder).close()
    assert files(folder) == {
        f"{FIRST}.log",
        f"{FIRST}.index",
        f"{FIRST}.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "recovery-point",  # ours; Kafka passes over it
    }
    assert (folder / "partition.metadata").read_bytes() == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    assert (folder / "leader-epoch-checkpoint").read_bytes() == b"0\n0\n"


def test_segments_are_rolled_by_size_and_named_by_their_first_offset(tmp_path: Path) -> None:
    limits = SegmentLimits(segment_bytes=3 * len(batch(0).data))
    log = FileLog(tmp_path, limits)
    log.append([batch(offset) for offset in range(7)])
    assert sorted(path.name for path in tmp_path.glob("*.log")) == [f"{FIRST}.log"], (
        "not before it is durable"
    )
    log.flush()
    assert sorted(int(path.stem) for path in tmp_path.glob("*.log")) == [0, 3, 6]
    log.close()
    assert b"".join(path.read_bytes() for path in sorted(tmp_path.glob("*.log"))) == b"".join(
        batch(offset).data for offset in range(7)
    )


def test_segments_are_rolled_by_the_age_of_their_first_batch(tmp_path: Path) -> None:
    log = FileLog(tmp_path, SegmentLimits(segment_ms=500))
    for offset, timestamp_ms in enumerate((0, 100, 500, 501, 900, 5000)):
        log.append([batch(offset, timestamp_ms=timestamp_ms - offset)])
    log.close()
    assert sorted(int(path.stem) for path in tmp_path.glob("*.log")) == [0, 3, 5]


def test_a_batch_larger_than_a_segment_gets_one_of_its_own(tmp_path: Path) -> None:
    log = FileLog(tmp_path, SegmentLimits(segment_bytes=400))
    log.append([batch(0, size=1000), batch(1, size=1000)])
    log.close()
    assert sorted(int(path.stem) for path in tmp_path.glob("*.log")) == [0, 1]


def test_the_indexes_written_while_appending_equal_those_rebuilt(tmp_path: Path) -> None:
    log = FileLog(tmp_path, SegmentLimits(segment_bytes=60_000))
    for start in range(0, 900, 3):
        log.append([batch(offset, size=offset % 700) for offset in range(start, start + 3)])
    log.truncate_to(700)
    log.append([batch(offset, size=50, epoch=2) for offset in range(700, 1000)])
    log.close()
    written = {path.name: path.read_bytes() for path in tmp_path.glob("*index")}
    assert len(written[f"{FIRST}.index"]) > 80
    for path in tmp_path.glob("*index"):
        path.unlink()
    FileLog(tmp_path).close()
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*index")} == written


@pytest.mark.parametrize("name", ["single-node-3.6", "three-controllers-2", "three-controllers-3"])
def test_the_offset_index_is_the_one_that_kafka_wrote(real_logs: Path, tmp_path: Path, name: str) -> None:
    original = real_logs / name / "__cluster_metadata-0"
    log = FileLog(copy_of(original, tmp_path, without=("index", "timeindex")))
    log.close()
    copy = tmp_path / "__cluster_metadata-0" / f"{FIRST}.index"
    assert copy.read_bytes() == (original / f"{FIRST}.index").read_bytes()


def copy_of(folder: Path, tmp_path: Path, without: tuple[str, ...] = ()) -> Path:
    """A writable copy of a log folder, less the files with the suffixes or names given."""
    target = tmp_path / "__cluster_metadata-0"
    target.mkdir()
    for path in folder.iterdir():
        if path.suffix.lstrip(".") not in without and path.name not in without:
            shutil.copyfile(path, target / path.name)
    return target


@pytest.mark.parametrize("name", ["seven-epochs", "three-controllers-1", "three-controllers-2"])
def test_the_index_rule_explains_kafkas_own_files(real_logs: Path, name: str) -> None:
    """Each entry is (last offset, start) of a batch, more than 4096 bytes after the entry before it."""
    folder = real_logs / name / "__cluster_metadata-0"
    headers = {found.position: found.header for found in sound_batches(folder / f"{FIRST}.log")}
    entries = list(struct.iter_unpack(">ii", (folder / f"{FIRST}.index").read_bytes()))
    assert len(entries) > 30
    previous = 0
    for relative_offset, position in entries:
        assert headers[position].last_offset == relative_offset
        assert position - previous > 4096
        previous = position
    by_last_offset = {header.last_offset: header for header in headers.values()}
    times = list(struct.iter_unpack(">qi", (folder / f"{FIRST}.timeindex").read_bytes()))
    assert all(by_last_offset[offset].max_timestamp_ms == time for time, offset in times)


def sound_batches(path: Path) -> list[ScannedBatch]:
    return [found for found in scan_batches(path.read_bytes()) if isinstance(found, ScannedBatch)]


@pytest.mark.parametrize("name", LOGS)
def test_a_folder_written_by_kafka_opens_grows_and_opens_again(
    real_logs: Path, tmp_path: Path, name: str
) -> None:
    original = real_logs / name / "__cluster_metadata-0"
    folder = copy_of(original, tmp_path, without=("leader-epoch-checkpoint",))
    log = FileLog(folder)
    assert log.recovered_cut_bytes == 0
    checkpoint = (folder / "leader-epoch-checkpoint").read_bytes()
    # One of the folders was written on Windows.
    assert checkpoint == (original / "leader-epoch-checkpoint").read_bytes().replace(b"\r\n", b"\n")
    end, epoch = log.summary().log_end_offset, log.summary().epochs[-1][0]
    more = [batch(end, epoch=epoch + 1), batch(end + 1, epoch=epoch + 1)]
    log.append(more)
    log.close()
    content = (original / f"{FIRST}.log").read_bytes()
    assert (folder / f"{FIRST}.log").read_bytes() == content + more[0].data + more[1].data
    reopened = FileLog(folder)
    assert reopened.summary().epochs[-1] == (epoch + 1, end)
    assert parse_batches(reopened.read(end, 10_000)) == tuple(more)
    check_reads(reopened, [found.header for found in sound_batches(folder / f"{FIRST}.log")])
    reopened.close()


def check_reads(log: FileLog, headers: list[BatchHeader]) -> None:
    """A sample of reads by offset finds the batch that holds it."""
    for header in headers[:: max(1, len(headers) // 50)]:
        first = parse_batches(log.read(header.last_offset, 1))[0]
        assert (first.base_offset, first.last_offset) == (header.base_offset, header.last_offset)


def test_a_truncation_over_segments_leaves_no_file_behind(tmp_path: Path) -> None:
    log = FileLog(tmp_path, SegmentLimits(segment_bytes=400))
    log.append([batch(offset, epoch=offset // 4 + 1) for offset in range(12)])
    log.flush()
    log.truncate_to(3)
    assert sorted(int(path.stem) for path in tmp_path.glob("*.log")) == [0, 2]
    log.append([batch(3, epoch=9)])
    log.close()
    reopened = FileLog(tmp_path)
    assert reopened.summary().epochs == ((1, 0), (9, 3))
    reopened.close()


def test_a_flush_may_run_while_the_loop_goes_on_appending(tmp_path: Path) -> None:
    log = FileLog(tmp_path, SegmentLimits(segment_bytes=5000))
    stop = threading.Event()
    ends: list[int] = []

    def flush_all_the_time() -> None:
        while not stop.is_set():
            ends.append(log.flush())

    thread = threading.Thread(target=flush_all_the_time)
    thread.start()
    for offset in range(2000):
        log.append([batch(offset)])
    stop.set()
    thread.join()
    assert log.flush() == 2000
    assert ends == sorted(ends)
    log.close()
    reopened = FileLog(tmp_path)
    assert reopened.summary().log_end_offset == 2000
    reopened.close()


def test_after_a_failed_flush_nothing_works_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = FileLog(tmp_path)
    log.append([batch(0)])

    def broken(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", broken)
    with pytest.raises(FsyncFailed, match=r"cannot flush to stable storage .*\.log: Input/output error"):
        log.flush()
    monkeypatch.undo()
    with pytest.raises(FsyncFailed):
        log.flush()
    with pytest.raises(FsyncFailed):
        log.append([batch(1)])
    log.close()
