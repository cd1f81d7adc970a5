"""Bytes flipped in what Apache Kafka wrote: in its log and in its snapshots, none is taken for what was meant."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.adapters.snapshot_files import problem_of, snapshot_path
from kquorum.snapshots.reader import SnapshotReader
from kquorum.storage.errors import DamagedRange
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch, parse_batches
from kquorum.wire.log_scan import ScannedBatch, scan_batches
from tests.support.fault_file_system import FaultFileSystem
from tests.support.raft.log_folders import FIRST, read_all, snapshot_content
from tests.support.raft.log_history import FOLDER

SNAPSHOT = "00000000000000028869-0000000189.checkpoint"
SEVEN_EPOCHS = Path("seven-epochs", "__cluster_metadata-0", FIRST)
BATCHES_AT_ONCE = 12


@dataclass
class Log:
    """A folder with a few batches of a real log, with a known durable end. A log that begins
    later than at 0 begins at a snapshot."""

    batches: tuple[LogBatch, ...]

    def __post_init__(self) -> None:
        start, epoch = self.batches[0].base_offset, self.batches[0].leader_epoch
        self.fs = FaultFileSystem(FOLDER)
        self.path = FOLDER / f"{start:020}.log"
        self.content = b"".join(each.data for each in self.batches)
        self.fs.put(self.path, self.content)
        if start > 0:
            self.fs.put(snapshot_path(FOLDER, OffsetAndEpoch(start, epoch)), snapshot_content(epoch))
        assert self.opened() is None

    def opened(self) -> DamagedRange | None:
        log = FileLog(FOLDER, on_damage="report", fs=self.fs)
        found = read_all(log)
        assert found == list(self.batches[: len(found)]), "what is read is what was written"
        assert log.recovered_cut_bytes == 0
        log.close()
        return log.damage

    def check_flipped(self, position: int, mask: int) -> None:
        self.fs.flip(self.path, position, mask)
        damaged = self.fs.read(self.path)
        damage = self.opened()
        assert damage is not None, position
        assert damage.position <= position
        assert damage.end_offset == self.batches[-1].next_offset
        assert self.fs.read(self.path) == damaged, "nothing is changed"
        self.fs.put(self.path, self.content)


def check_every_byte(batches: tuple[LogBatch, ...], random_source: Random, share: float = 1.0) -> int:
    log, flipped = Log(batches), 0
    for position in range(len(log.content)):
        if random_source.random() < share:
            log.check_flipped(position, random_source.randint(1, 255))
            flipped += 1
    return flipped


def windows(real_logs: Path) -> Iterator[tuple[LogBatch, ...]]:
    """All batches of a log of seven epochs, a few at a time: opening it as a whole for each byte would take hours."""
    batches = parse_batches((real_logs / SEVEN_EPOCHS).read_bytes())
    for start in range(0, len(batches), BATCHES_AT_ONCE):
        yield batches[start : start + BATCHES_AT_ONCE]


def test_every_flipped_byte_of_a_small_log_that_kafka_wrote_is_found(real_logs: Path) -> None:
    content = (real_logs / "early-3.0" / "__cluster_metadata-0" / FIRST).read_bytes()
    assert check_every_byte(parse_batches(content), Random(3)) == len(content)


def test_flipped_bytes_all_over_a_log_of_seven_epochs_are_found(real_logs: Path) -> None:
    random_source = Random(4)
    assert sum(check_every_byte(window, random_source, 0.003) for window in windows(real_logs)) > 300


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_every_flipped_byte_of_a_log_of_seven_epochs_is_found(real_logs: Path, part: int) -> None:
    flipped = sum(check_every_byte(window, Random(part)) for window in list(windows(real_logs))[part::8])
    assert flipped > 10_000


def check_snapshot(fs: FaultFileSystem, path: Path, position: int, mask: int) -> None:
    """Not taken for a snapshot; a reader that reads it all the same gets a clear error."""
    fs.flip(path, position, mask)
    assert problem_of(path, 189, fs) is not None, position
    try:
        for _value in SnapshotReader(fs.read(path)).values():
            pass
    except DecodeError:
        pass
    fs.flip(path, position, mask)


@pytest.mark.parametrize("share", [0.1, pytest.param(1.0, marks=pytest.mark.slow)])
def test_a_flipped_byte_of_a_snapshot_that_kafka_wrote_is_found(real_logs: Path, share: float) -> None:
    """Of each header every byte."""
    content = (real_logs / "three-controllers-1" / "__cluster_metadata-0" / SNAPSHOT).read_bytes()
    fs = FaultFileSystem(FOLDER)
    path = FOLDER / SNAPSHOT
    fs.put(path, content)
    assert problem_of(path, 189, fs) is None
    starts = [found.position for found in scan_batches(content) if isinstance(found, ScannedBatch)]
    headers = {start + offset for start in starts for offset in range(61)}
    random_source = Random(4)
    for position in range(len(content)):
        if position in headers or random_source.random() < share:
            check_snapshot(fs, path, position, random_source.randint(1, 255))
    assert problem_of(path, 189, fs) is None


@pytest.mark.parametrize("batches", [0, 1, 2])
def test_a_snapshot_cut_between_batches_was_never_finished(real_logs: Path, batches: int) -> None:
    content = (real_logs / "three-controllers-1" / "__cluster_metadata-0" / SNAPSHOT).read_bytes()
    starts = [found.position for found in scan_batches(content) if isinstance(found, ScannedBatch)]
    fs = FaultFileSystem(FOLDER)
    fs.put(FOLDER / SNAPSHOT, content[: starts[batches]])
    assert problem_of(FOLDER / SNAPSHOT, 189, fs) is not None
