"""The simulated disk does with logs and snapshots what the files do, whatever they are asked for."""

from pathlib import Path
from random import Random

import pytest

from kquorum.raft.adapters.file_log import FileLog
from kquorum.storage.segment import SegmentLimits
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch, parse_batches
from tests.simulation.disk import SimulatedDisk
from tests.simulation.errors import InvariantBroken
from tests.simulation.snapshot_files import SnapshotFile, read_snapshot, write_snapshot
from tests.support.raft import log_folders

SEGMENT_BATCHES = 3
STEPS = 25


class Twins:
    """A log in files and a simulated one, to which the same is done."""

    def __init__(self, folder: Path, random_source: Random) -> None:
        self.folder = folder
        self.random_source = random_source
        self.limits = SegmentLimits(segment_bytes=SEGMENT_BATCHES * len(log_folders.batch(0).data))
        self.files = FileLog(folder, self.limits)
        self.disk = SimulatedDisk(random_source, SEGMENT_BATCHES)
        self.epoch = 2

    def step(self) -> None:
        choices = (
            self.append,
            self.append,
            self.flush,
            self.cut,
            self.take_snapshot,
            self.forget,
            self.drop,
            self.reopen,
        )
        choices[self.random_source.randrange(len(choices))]()

    def append(self) -> None:
        # The epochs between are those of other histories.
        self.epoch += 2 * (self.random_source.random() < 0.2)
        end_offset = self.disk.log_end_offset
        written = log_folders.batches(end_offset, end_offset + self.random_source.randint(1, 4), self.epoch)
        self.files.append(written)
        self.disk.append(written)

    def flush(self) -> None:
        self.files.flush()
        self.disk.end_flush(self.disk.begin_flush())

    def cut(self) -> None:
        newest = max((each.offset for each in self.disk.snapshots), default=0)
        low = max(self.disk.log_start_offset, newest)
        end_offset = self.random_source.randint(low, self.disk.log_end_offset)
        if end_offset < self.disk.log_end_offset:
            self.files.truncate_to(end_offset)
            self.disk.truncate_to(end_offset)
            self.epoch += 2

    def take_snapshot(self) -> None:
        self.flush()
        held = self.disk.between(self.disk.log_start_offset, self.disk.log_end_offset)
        if held:
            last = held[self.random_source.randrange(len(held))]
            self._put(OffsetAndEpoch(last.next_offset, last.leader_epoch))

    def _put(self, snapshot_id: OffsetAndEpoch) -> SnapshotFile:
        log_folders.write_snapshot(self.folder, snapshot_id.offset, snapshot_id.epoch)
        snapshot = SnapshotFile(snapshot_id, 0, (), b"")
        self.disk.put_snapshot(snapshot)
        return snapshot

    def forget(self) -> None:
        ends = [each.offset for each in self.disk.snapshots if each.offset > self.disk.log_start_offset]
        if ends:
            offset = self.random_source.choice(ends)
            self.files.advance_log_start(offset)
            self.disk.advance_log_start(offset)

    def drop(self) -> None:
        if self.random_source.random() < 0.6:
            self.epoch += 2
            ahead = OffsetAndEpoch(self.disk.log_end_offset + 5, self.epoch)
            snapshot = self._put(ahead if self.random_source.random() < 0.5 else self._of_another_history())
            if self.random_source.random() < 0.5:
                self.reopen()
            else:
                self.files.truncate_fully_to(snapshot.snapshot_id.offset)
                self.disk.drop_log_for(snapshot)

    def _of_another_history(self) -> OffsetAndEpoch:
        """A snapshot that ends within the log, in an epoch before that of the record which stands there."""
        held = self.disk.between(self.disk.log_start_offset, self.disk.log_end_offset)
        if not held:
            return OffsetAndEpoch(self.disk.log_end_offset + 5, self.epoch)
        last = held[-1]
        return OffsetAndEpoch(last.next_offset, last.leader_epoch - 1)

    def reopen(self) -> None:
        self.flush()
        self.files.close()
        self.files = FileLog(self.folder, self.limits)
        self.disk.reopen()

    def check(self) -> None:
        assert self.files.summary() == self.disk.summary()
        start_offset, end_offset = self.disk.log_start_offset, self.disk.log_end_offset
        read: list[LogBatch] = []
        while (offset := read[-1].next_offset if read else start_offset) < end_offset:
            read.extend(parse_batches(self.files.read(offset, 1_000_000)))
        assert read == self.disk.between(start_offset, end_offset)


@pytest.mark.parametrize("seed", range(40))
def test_files_and_the_simulated_disk_stay_alike(tmp_path: Path, seed: int) -> None:
    twins = Twins(tmp_path, Random(seed))
    for _ in range(STEPS):
        twins.step()
        twins.check()
    twins.reopen()
    twins.check()
    twins.files.close()


def crashed(seed: int) -> SimulatedDisk:
    """Six batches in segments of two; the log was to begin at 5, and the power went before the next flush."""
    disk = SimulatedDisk(Random(seed), 2)
    disk.append(log_folders.batches(0, 6))
    disk.end_flush(disk.begin_flush())
    for offset in (3, 5):
        disk.put_snapshot(SnapshotFile(OffsetAndEpoch(offset, 1), 0, (), b""))
    disk.advance_log_start(5)
    disk.crash()
    return disk


def test_a_crash_leaves_any_part_of_what_was_forgotten() -> None:
    assert {crashed(seed).log_start_offset for seed in range(50)} == {0, 3, 5}


def test_a_log_that_nothing_leads_up_to_is_noticed() -> None:
    disk = next(disk for disk in map(crashed, range(50)) if disk.log_start_offset == 5)
    disk.snapshots.clear()
    with pytest.raises(InvariantBroken, match="no snapshot ends there"):
        disk.reopen()


def test_damage_is_remembered_until_as_much_is_there_again() -> None:
    disk = SimulatedDisk(Random(1), 2)
    disk.append(log_folders.batches(0, 6))
    disk.end_flush(disk.begin_flush())
    assert disk.damage_log(4)
    assert (disk.log_end_offset, disk.damaged_until) == (2, 6)
    disk.append(log_folders.batches(2, 5))
    disk.end_flush(disk.begin_flush())
    disk.reopen()
    assert disk.damaged_until == 6
    disk.append(log_folders.batches(5, 6))
    disk.end_flush(disk.begin_flush())
    disk.reopen()
    assert disk.damaged_until is None


def test_a_snapshot_with_any_byte_changed_is_none() -> None:
    snapshot = write_snapshot(OffsetAndEpoch(7, 2), 12345, (), b"padding")
    assert read_snapshot(snapshot.snapshot_id, snapshot.data) == snapshot
    assert read_snapshot(OffsetAndEpoch(7, 3), snapshot.data) is None
    for position in range(len(snapshot.data)):
        changed = bytearray(snapshot.data)
        changed[position] ^= 0x10
        assert read_snapshot(snapshot.snapshot_id, bytes(changed)) is None
        assert read_snapshot(snapshot.snapshot_id, snapshot.data[:position]) is None
