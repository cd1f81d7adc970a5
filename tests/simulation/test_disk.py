"""The simulated disk keeps what was flushed, and of the rest a prefix of the operations, in order."""

from random import Random

from kquorum.wire.log_batch import LogBatch, build_batch
from tests.simulation.disk import SimulatedDisk


def batch(base_offset: int, epoch: int = 1) -> LogBatch:
    return build_batch(base_offset, epoch, 0, [(None, b"x")])


def crashed_disks(flushed: int, written: int, truncate_to: int | None = None) -> list[SimulatedDisk]:
    disks = []
    for seed in range(100):
        disk = SimulatedDisk(Random(seed))
        disk.append([batch(offset) for offset in range(flushed)])
        disk.end_flush(disk.begin_flush())
        if truncate_to is not None:
            disk.truncate_to(truncate_to)
        disk.append([batch(offset, 2) for offset in range(disk.log_end_offset, written)])
        disk.crash()
        disks.append(disk)
    return disks


def test_a_crash_keeps_what_was_flushed_and_any_prefix_of_the_rest() -> None:
    ends = {disk.log_end_offset for disk in crashed_disks(flushed=3, written=6)}
    assert ends == {3, 4, 5, 6}


def test_a_cut_is_durable_and_what_follows_it_is_not() -> None:
    logs = {
        tuple(found.leader_epoch for found in disk.batches)
        for disk in crashed_disks(flushed=4, written=4, truncate_to=2)
    }
    assert logs == {(1, 1), (1, 1, 2), (1, 1, 2, 2)}


def test_a_flush_from_before_a_cut_covers_nothing_that_was_written_after_it() -> None:
    disk = SimulatedDisk(Random(1))
    disk.append([batch(0), batch(1), batch(2)])
    operations = disk.begin_flush()
    disk.truncate_to(1)
    disk.append([batch(1, 2), batch(2, 2)])
    disk.end_flush(operations)
    assert disk.durable == [batch(0)]


def test_a_flush_covers_what_was_written_before_it_began() -> None:
    disk = SimulatedDisk(Random(1))
    disk.append([batch(0)])
    operations = disk.begin_flush()
    disk.append([batch(1)])
    disk.end_flush(operations)
    assert (disk.durable_ends, disk.ends) == ([1], [1, 2])
    assert disk.durable_batch_before(1) == batch(0)
    assert disk.durable_batch_before(2) is None


def test_reading_begins_with_the_batch_that_holds_the_offset() -> None:
    disk = SimulatedDisk(Random(1))
    pair = build_batch(0, 1, 0, [(None, b"a"), (None, b"b")])
    disk.append([pair, batch(2), batch(3)])
    assert disk.read(1, 1) == pair.data
    assert disk.read(2, 1_000_000) == batch(2).data + batch(3).data
    assert disk.read(4, 1_000_000) == b""
    assert disk.between(0, 3) == [pair, batch(2)]
