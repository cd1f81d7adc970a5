"""What every LogStore promises (raft.ports.LogStore), asked of the files and of the fake alike."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.ports import LogSummary
from kquorum.storage.segment import SegmentLimits
from kquorum.wire.log_batch import LogBatch, build_batch, parse_batches
from tests.support.fault_file_system import FaultFileSystem
from tests.support.memory_log import MemoryLog

Log = FileLog | MemoryLog


class Opener(Protocol):
    def __call__(self) -> Log: ...


def batch(
    base_offset: int, epoch: int = 1, records: int = 1, size: int = 10, timestamp_ms: int = 1000
) -> LogBatch:
    value = bytes([base_offset % 251]) * size
    return build_batch(base_offset, epoch, timestamp_ms + base_offset, [(None, value)] * records)


def batches(*shape: tuple[int, int], start: int = 0) -> list[LogBatch]:
    """Batches of (epoch, records), one behind the other."""
    made = []
    for epoch, records in shape:
        made.append(batch(start, epoch, records))
        start += records
    return made


@pytest.fixture(params=["memory", "files", "small segments", "no cache", "fault disk"])
def open_log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """A function that opens the log, again and again the same one."""
    folder = tmp_path / "__cluster_metadata-0"
    memory = MemoryLog()
    disk, disk_folder = FaultFileSystem(Path("/disk")), Path("/disk/__cluster_metadata-0")
    opened: list[Log] = []
    variants: dict[str, Callable[[], Log]] = {
        "memory": lambda: memory,
        "files": lambda: FileLog(folder),
        "small segments": lambda: FileLog(folder, SegmentLimits(segment_bytes=300)),
        "no cache": lambda: FileLog(folder, SegmentLimits(segment_bytes=20_000), cache_bytes=0),
        "fault disk": lambda: FileLog(
            disk_folder, SegmentLimits(segment_bytes=2_000), cache_bytes=0, fs=disk
        ),
    }

    def open_it() -> Log:
        opened.append(variants[request.param]())
        return opened[-1]

    yield open_it
    if opened:
        opened[-1].close()


def test_an_empty_log_has_no_epochs_and_nothing_to_read(open_log: Opener) -> None:
    log = open_log()
    assert log.summary() == LogSummary(0, 0, ())
    assert log.read(0, 1000) == b""
    assert log.flush() == 0


def test_what_was_appended_is_read_back_in_order(open_log: Opener) -> None:
    log = open_log()
    written = batches((1, 1), (1, 3), (2, 2))
    log.append(written[:1])
    log.append(written[1:])
    assert read_all(log) == written
    assert log.summary() == LogSummary(0, 6, ((1, 0), (2, 4)))


def read_all(log: Log, end_offset: int | None = None) -> list[LogBatch]:
    found: list[LogBatch] = []
    offset = 0
    while data := log.read(offset, 100, end_offset):
        found.extend(parse_batches(data))
        offset = found[-1].next_offset
    return found


def test_a_read_begins_with_the_batch_that_holds_the_offset(open_log: Opener) -> None:
    log = open_log()
    written = batches((1, 4), (1, 4))
    log.append(written)
    for offset in range(4):
        assert parse_batches(log.read(offset, 1))[0] == written[0]
    assert parse_batches(log.read(5, 1)) == (written[1],)


def test_a_read_gives_at_least_one_batch_and_only_whole_ones(open_log: Opener) -> None:
    log = open_log()
    written = [batch(offset, size=40) for offset in range(3)]
    log.append(written)
    one = len(written[0].data)
    assert log.read(0, 0) == written[0].data
    assert log.read(0, 2 * one - 1) == written[0].data
    assert log.read(0, 2 * one) == written[0].data + written[1].data


def test_a_read_ends_below_the_end_offset(open_log: Opener) -> None:
    log = open_log()
    written = batches((1, 2), (1, 2), (1, 2))
    log.append(written)
    assert read_all(log, end_offset=4) == written[:2]
    assert read_all(log, end_offset=5) == written[:2], "a batch is never split"
    assert log.read(0, 1000, end_offset=1) == b""
    assert log.read(4, 1000, end_offset=4) == b""
    assert log.read(6, 1000) == b""
    assert log.read(60, 1000) == b""


def test_values_and_bytes_agree(open_log: Opener) -> None:
    log = open_log()
    log.append([batch(offset) for offset in range(30)])
    for start, size, end in ((0, 1, None), (3, 500, 20), (29, 1, None), (30, 1, None), (5, 10_000, 6)):
        data = log.read(start, size, end)
        assert tuple(log.read_batches(start, size, end)) == parse_batches(data)


def test_a_truncated_log_takes_a_newer_epoch_at_the_cut(open_log: Opener) -> None:
    log = open_log()
    written = batches((1, 2), (2, 2), (2, 1), (3, 1))
    log.append(written)
    log.truncate_to(2)
    assert log.summary() == LogSummary(0, 2, ((1, 0),))
    assert read_all(log) == written[:1]
    newer = batch(2, epoch=5)
    log.append([newer])
    assert read_all(log) == [written[0], newer]
    assert log.summary().epochs == ((1, 0), (5, 2))


def test_truncating_to_the_end_changes_nothing_and_to_zero_empties(open_log: Opener) -> None:
    log = open_log()
    log.append(batches((1, 2), (1, 2)))
    log.truncate_to(4)
    assert log.summary().log_end_offset == 4
    log.truncate_to(0)
    assert log.summary() == LogSummary(0, 0, ())
    log.append([batch(0, epoch=7)])
    assert log.summary() == LogSummary(0, 1, ((7, 0),))


def test_truncating_inside_a_batch_is_our_bug(open_log: Opener) -> None:
    log = open_log()
    log.append(batches((1, 2), (1, 4)))
    with pytest.raises(AssertionError):
        log.truncate_to(3)


def test_a_gap_or_an_older_epoch_is_our_bug(open_log: Opener) -> None:
    log = open_log()
    log.append([batch(0, epoch=4)])
    with pytest.raises(AssertionError):
        log.append([batch(2, epoch=4)])
    with pytest.raises(AssertionError):
        log.append([batch(1, epoch=3)])
    assert log.summary() == LogSummary(0, 1, ((4, 0),))


def test_a_flush_answers_the_end_it_covers_and_reopening_finds_it(open_log: Opener) -> None:
    log = open_log()
    written = batches((1, 1), (2, 3), (2, 1))
    log.append(written[:2])
    assert log.flush() == 4
    log.append(written[2:])
    assert log.flush() == 5
    log.close()
    reopened = open_log()
    assert read_all(reopened) == written
    assert reopened.summary() == LogSummary(0, 5, ((1, 0), (2, 1)))


def test_random_appends_and_cuts_match_a_list(open_log: Opener) -> None:
    """The model is a plain list of batches; the log is closed and opened again now and then."""
    random_source = random.Random(7)
    log = open_log()
    model: list[LogBatch] = []
    epoch = 1
    for _ in range(150):
        choice = random_source.random()
        if choice < 0.75:
            epoch += random_source.random() < 0.1
            end = model[-1].next_offset if model else 0
            group = batches(
                *[(epoch, random_source.randint(1, 5)) for _ in range(random_source.randint(1, 4))], start=end
            )
            log.append(group)
            model.extend(group)
        elif choice < 0.85:
            model = model[: random_source.randint(max(0, len(model) - 8), len(model))]
            log.truncate_to(model[-1].next_offset if model else 0)
        elif choice < 0.9:
            log.close()
            log = open_log()
        else:
            log.flush()
        check_a_random_read(log, model, random_source)
    assert read_all(log) == model


def check_a_random_read(log: Log, model: list[LogBatch], random_source: random.Random) -> None:
    end = model[-1].next_offset if model else 0
    assert log.summary().log_end_offset == end
    start, size, limit = (
        random_source.randint(0, end),
        random_source.randint(0, 600),
        random_source.randint(0, end),
    )
    found = parse_batches(log.read(start, size, limit))
    expected = [item for item in model if item.next_offset > start and item.next_offset <= limit]
    assert list(found) == expected[: len(found)]
    assert (not found) == (not expected)
    assert len(found) <= 1 or sum(len(item.data) for item in found) <= size
