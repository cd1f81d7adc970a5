"""What every log promises of its start and its snapshots (`advance_log_start`, `truncate_fully_to`)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.adapters.snapshot_files import snapshot_path
from kquorum.raft.ports import LogSummary
from kquorum.raft.voters import KRaftVersionAt, QuorumRecord
from kquorum.storage.durable_files import replace_file
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.storage.segment import SegmentLimits
from kquorum.wire.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    encode_control_record,
)
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch, build_batch, parse_batches
from kquorum.wire.record_batch import write_batch
from tests.support.fault_file_system import FaultFileSystem
from tests.support.memory_log import MemoryLog


@dataclass
class Store:
    """A log, how to open it again, and how it comes to have a snapshot."""

    folder: Path
    open: Callable[[], FileLog | MemoryLog]
    fs: FileSystem = POSIX

    def __post_init__(self) -> None:
        self.log = self.open()

    def reopen(self) -> None:
        self.log.close()
        self.log = self.open()

    def take_snapshot(self, offset: int, epoch: int, kraft_version: int = 0) -> OffsetAndEpoch:
        snapshot = OffsetAndEpoch(offset, epoch)
        says = (KRaftVersionAt(offset - 1, kraft_version),) if kraft_version else ()
        if isinstance(self.log, MemoryLog):
            self.log.add_snapshot(snapshot, says)
        else:
            content = snapshot_content(epoch, says)
            replace_file(snapshot_path(self.folder, snapshot), content, self.fs)
        return snapshot


def snapshot_content(epoch: int, says: tuple[QuorumRecord, ...]) -> bytes:
    header: list[ControlRecord] = [SnapshotHeaderRecord(last_contained_log_timestamp=0)]
    if says:
        header.append(KRaftVersionRecord(k_raft_version=1))
    return _control(0, epoch, header) + _control(len(header), epoch, [SnapshotFooterRecord()])


def _control(base_offset: int, epoch: int, records: list[ControlRecord]) -> bytes:
    encoded = [encode_control_record(record) for record in records]
    return write_batch(
        base_offset=base_offset, leader_epoch=epoch, timestamp_ms=0, records=encoded, control=True
    )


@pytest.fixture(params=["memory", "files", "small segments", "fault disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    is_faulty = request.param == "fault disk"
    fs = FaultFileSystem(Path("/disk")) if is_faulty else POSIX
    folder = (Path("/disk") if is_faulty else tmp_path) / "__cluster_metadata-0"
    memory = MemoryLog()
    limits = SegmentLimits(segment_bytes=1_000_000 if request.param == "files" else 250)
    store = Store(
        folder, lambda: memory if request.param == "memory" else FileLog(folder, limits, 0, fs=fs), fs
    )
    yield store
    store.log.close()


def batch(offset: int, epoch: int = 1, records: int = 1) -> LogBatch:
    return build_batch(offset, epoch, 1000, [(None, b"value")] * records)


def a_log() -> list[LogBatch]:
    """Epochs 1 at 0, 2 at 4, 3 at 8; it ends at 10."""
    return [batch(0, 1, 2), batch(2, 1, 2), batch(4, 2, 3), batch(7, 2), batch(8, 3), batch(9, 3)]


def test_snapshots_are_reported_oldest_first_and_epochs_count_before_offsets(store: Store) -> None:
    store.log.append(a_log())
    taken = [store.take_snapshot(9, 3), store.take_snapshot(4, 1), store.take_snapshot(7, 2)]
    assert store.log.summary().snapshots == (taken[1], taken[2], taken[0])


def test_an_advanced_log_begins_at_its_snapshot(store: Store) -> None:
    store.log.append(a_log())
    store.log.flush()
    store.take_snapshot(4, 1)
    kept = [store.take_snapshot(7, 2), store.take_snapshot(9, 3)]
    store.log.advance_log_start(7)
    assert store.log.summary() == LogSummary(7, 10, ((2, 7), (3, 8)), tuple(kept))
    assert parse_batches(store.log.read(7, 1)) == (a_log()[3],)
    assert parse_batches(store.log.read(9, 1)) == (a_log()[5],)
    assert store.log.flush() == 10
    with pytest.raises(AssertionError, match="below the log's start"):
        store.log.read(6, 1)


def test_a_log_may_begin_at_its_very_end(store: Store) -> None:
    store.log.append(a_log())
    store.log.flush()
    store.take_snapshot(10, 3)
    store.log.advance_log_start(10)
    assert store.log.summary().epochs == ()
    store.log.append([batch(10, 3)])
    assert store.log.summary() == LogSummary(10, 11, ((3, 10),), (OffsetAndEpoch(10, 3),))


def test_a_log_begins_only_where_a_snapshot_ends_and_never_goes_back(store: Store) -> None:
    store.log.append(a_log())
    store.log.flush()
    store.take_snapshot(4, 1)
    store.take_snapshot(7, 2)
    store.take_snapshot(12, 3)
    for offset in (8, 12):
        with pytest.raises(AssertionError):
            store.log.advance_log_start(offset)
    store.log.advance_log_start(7)
    for offset in (4, 7):
        with pytest.raises(AssertionError):
            store.log.advance_log_start(offset)
    with pytest.raises(AssertionError):
        store.log.truncate_to(4)
    with pytest.raises(AssertionError):
        store.log.truncate_fully_to(20)


def test_emptied_for_a_snapshot_it_goes_on_from_there(store: Store) -> None:
    store.log.append(a_log())
    store.log.flush()
    store.take_snapshot(4, 1)
    fetched = store.take_snapshot(30, 5, kraft_version=1)
    store.log.truncate_fully_to(30)
    told = (KRaftVersionAt(29, 1),)
    assert store.log.summary() == LogSummary(30, 30, (), (fetched,), told)
    assert store.log.read(30, 1000) == b""
    more = [batch(30, 6, 2), batch(32, 6)]
    store.log.append(more)
    assert store.log.flush() == 33
    assert parse_batches(store.log.read(31, 1))[0] == more[0]
    store.log.truncate_to(32)
    store.log.truncate_to(30)
    assert store.log.summary() == LogSummary(30, 30, (), (fetched,), told)
    store.log.append([batch(30, 7)])
    store.reopen()
    assert store.log.summary() == LogSummary(30, 31, ((7, 30),), (fetched,), told)


def test_emptied_below_its_end_for_a_snapshot_of_a_newer_epoch(store: Store) -> None:
    store.log.append(a_log())
    store.log.flush()
    fetched = store.take_snapshot(6, 4)
    store.log.truncate_fully_to(6)
    store.reopen()
    assert store.log.summary() == LogSummary(6, 6, (), (fetched,))
