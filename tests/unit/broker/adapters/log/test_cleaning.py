"""The log cleaner on a disk: rounds in pieces, groups, checkpoints, and a disk that is cut off, full, damaged."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from kquorum.broker.adapters.log.disk_log import DiskLog
from kquorum.broker.adapters.log.log_dir import LogDir
from kquorum.broker.adapters.log.log_manager import CleanerSettings, LogManager, run_work
from kquorum.broker.log.errors import InvalidRecord, KafkaStorageError
from kquorum.broker.log.log_config import COMPACT, DELETE, LogConfig
from kquorum.broker.log.partition_log import AppendOrigin
from kquorum.storage.offset_checkpoints import CLEANED, decode_offsets
from kquorum.wire.data_batch import Record
from tests.support.broker.disk_logs import (
    DIRECTORY_ID,
    NOW_MS,
    TOPIC_ID,
    all_bytes,
    data,
    marker,
    offset_for_time,
    records_in,
)
from tests.support.fault_file_system import CHANGES, FaultFileSystem, refused

FOLDER = Path("/data")
CONFIG = LogConfig(
    cleanup_policy=frozenset((COMPACT,)),
    min_cleanable_dirty_ratio=0.0,
    segment_bytes=500,
    index_interval_bytes=1,
    file_delete_delay_ms=1000,
)
NAME = ("topic", 0)


class Broker:
    """A log manager with one log, on a disk in memory."""

    def __init__(
        self, fs: FaultFileSystem, config: LogConfig = CONFIG, cleaner: CleanerSettings | None = None
    ) -> None:
        self.fs = fs
        self.config = config
        self.manager = LogManager(
            [LogDir(FOLDER, DIRECTORY_ID, fs)], config_of=lambda _topic: self.config, cleaner=cleaner
        )
        self.manager.load(NOW_MS)
        self.log: DiskLog = self.manager.get_or_create(*NAME, TOPIC_ID, now_ms=NOW_MS)
        self.counter = self.log.log_end_offset

    def append(self, count: int, keys: int = 3) -> None:
        for _ in range(count):
            key = b"key %d" % (self.counter % keys)
            self.log.append_as_leader(data(f"value {self.counter}", key=key), leader_epoch=0, now_ms=NOW_MS)
            self.counter += 1
        self.log.update_high_watermark(self.log.log_end_offset)

    def clean(self, now_ms: int = NOW_MS) -> int:
        """How many pieces there were. Three segments of before fit into one of now."""
        small = self.log.config
        self.log.change_config(replace(small, segment_bytes=3 * small.segment_bytes))
        pieces = 0
        while (work := self.manager.clean(now_ms)) is not None:
            run_work((work,))
            pieces += 1
        if self.log in self.manager.logs.values():
            self.log.change_config(small)
        return pieces

    def values(self) -> dict[int, bytes | None]:
        return {each.offset: each.value for each in records_in(all_bytes(self.log))}


def new_broker(config: LogConfig = CONFIG) -> Broker:
    return Broker(FaultFileSystem(FOLDER), config)


def test_a_round_leaves_the_newest_of_each_key_in_fewer_segments_and_the_last_one_alone() -> None:
    broker = new_broker()
    broker.append(40)
    before, active = broker.values(), broker.log.segments[-1].base_offset
    assert broker.clean() > 1
    after = broker.values()
    assert after == {
        offset: value for offset, value in before.items() if offset >= active or offset >= active - 3
    }
    # Groups of three; a round leaves a group of nothing as an empty segment.
    assert [each.base_offset for each in broker.log.segments] == [0, 18, active]
    assert (broker.log.log_end_offset, broker.log.cleaned_offset) == (40, active)
    assert broker.log.size_bytes == sum(each.size for each in broker.log.segments)
    assert broker.clean() == 0


def test_the_checkpoint_says_where_the_next_round_begins_and_is_read_again() -> None:
    broker = new_broker()
    broker.append(40)
    broker.clean()
    run_work(broker.manager.tick(NOW_MS))
    assert decode_offsets(broker.fs.read(FOLDER / CLEANED)) == {NAME: broker.log.cleaned_offset}
    broker.manager.close(1)
    assert Broker(broker.fs).log.cleaned_offset == broker.log.cleaned_offset


def test_the_new_segment_has_indexes() -> None:
    broker = new_broker()
    broker.append(40, keys=40)
    before = broker.values()
    broker.clean()
    segment = broker.log.segments[0]
    assert len(segment.offsets) > 0
    assert len(segment.times) > 0
    assert broker.values() == before
    assert offset_for_time(broker.log, NOW_MS).offset == 0


def test_a_map_too_small_for_the_log_takes_several_rounds() -> None:
    broker = Broker(FaultFileSystem(FOLDER), CONFIG, CleanerSettings(dedupe_buffer_bytes=24 * 3))
    broker.append(30, keys=5)
    active = broker.log.segments[-1].base_offset
    broker.clean()
    kept = [each.offset for each in records_in(all_bytes(broker.log)) if each.offset < active]
    assert kept == list(range(active - 5, active))
    assert broker.log.cleaned_offset == active


def test_the_marker_of_a_transaction_may_lie_in_the_segment_that_is_not_cleaned() -> None:
    broker = new_broker()
    broker.append(3)
    broker.log.append_as_leader(
        data("aborted", key=b"key 0", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True),
        leader_epoch=0,
        now_ms=NOW_MS,
    )
    broker.counter += 1
    broker.log.roll(NOW_MS)
    broker.log.append_as_leader(
        marker(commit=False, producer_id=7), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    broker.log.update_high_watermark(broker.log.log_end_offset)
    assert broker.clean() > 0
    values = [
        each.value for each in records_in(all_bytes(broker.log)) if each.key and each.key.startswith(b"key")
    ]
    assert values == [b"value 0", b"value 1", b"value 2"]


def test_nothing_is_cleaned_from_an_open_transaction_on() -> None:
    broker = new_broker()
    broker.log.append_as_leader(
        data("open", key=b"key 0", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True),
        leader_epoch=0,
        now_ms=NOW_MS,
    )
    broker.counter = 1
    broker.append(40)
    assert broker.clean() == 0


def test_snapshots_of_segments_that_vanish_go_with_them() -> None:
    broker = new_broker()
    broker.append(40)
    broker.clean()
    bases = {each.base_offset for each in broker.log.segments}
    assert set(broker.log.snapshots.offsets) <= bases
    names = broker.fs.names(broker.log.folder)
    assert any(name.endswith(".snapshot.deleted") for name in names)
    run_work(broker.manager.tick(NOW_MS + 1001))
    assert not [name for name in broker.fs.names(broker.log.folder) if name.endswith(".deleted")]


def test_a_topic_that_is_compacted_and_deleted_loses_old_segments_after_a_round() -> None:
    broker = new_broker(
        LogConfig(
            cleanup_policy=frozenset((COMPACT, DELETE)),
            min_cleanable_dirty_ratio=0.0,
            segment_bytes=500,
            retention_ms=1000,
        )
    )
    broker.append(40)
    broker.clean(NOW_MS + 5000)
    assert broker.log.log_start_offset == 40


def test_a_record_without_a_key_is_refused() -> None:
    with pytest.raises(InvalidRecord):
        new_broker().log.append_as_leader(data("no key"), leader_epoch=0, now_ms=NOW_MS)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda broker: broker.log.truncate_to(5), id="truncation"),
        pytest.param(lambda broker: broker.log.truncate_fully_and_start_at(90), id="full truncation"),
        pytest.param(lambda broker: broker.manager.delete(*NAME, now_ms=NOW_MS), id="deletion"),
        pytest.param(lambda broker: broker.log.close(), id="stop"),
        pytest.param(lambda broker: broker.manager.cancel_cleaning(), id="stop of the cleaner"),
        pytest.param(lambda broker: broker.log.change_config(LogConfig()), id="another policy"),
    ],
)
@pytest.mark.parametrize("piece", [1, 2])
def test_a_round_ends_without_effect_when_the_log_changes_under_it(
    change: Callable[[Broker], object], piece: int
) -> None:
    broker = new_broker()
    broker.append(60)
    for _ in range(piece - 1):
        work = broker.manager.clean(NOW_MS)
        assert work is not None
        run_work((work,))
    work = broker.manager.clean(NOW_MS)
    assert work is not None
    change(broker)
    after = [each.path for each in broker.log.segments]
    run_work((work,))
    assert broker.manager.clean(NOW_MS) is None
    assert [each.path for each in broker.log.segments] == after
    assert not [name for name in broker.fs.names(broker.log.folder) if name.endswith((".cleaned", ".swap"))]
    assert broker.log.cleaned_offset is None
    assert not broker.manager.offline_dirs


def test_a_truncation_below_the_cleaned_part_lowers_the_checkpoint() -> None:
    broker = new_broker()
    broker.append(60)
    broker.clean()
    active = broker.log.segments[-1].base_offset
    broker.append(60)
    broker.clean()
    broker.log.truncate_to(active + 1)
    assert broker.log.cleaned_offset == broker.log.segments[-1].base_offset <= active


def test_a_damaged_segment_is_left_alone_and_others_are_cleaned() -> None:
    broker = new_broker()
    other = broker.manager.get_or_create("other", 0, TOPIC_ID, now_ms=NOW_MS)
    broker.append(40)
    for number in range(40):
        other.append_as_leader(data(f"v{number}", key=b"k"), leader_epoch=0, now_ms=NOW_MS)
    other.update_high_watermark(40)
    broker.fs.flip(broker.log.segments[1].path, 70)
    before = [each.base_offset for each in broker.log.segments]
    broker.clean()
    assert broker.manager.uncleanable() == (NAME,)
    assert [each.base_offset for each in broker.log.segments] == before
    assert (broker.log.cleaned_offset, broker.manager.offline_dirs) == (None, ())
    assert [each.offset for each in records_in(all_bytes(other))][:1] != [0]
    assert not [name for name in broker.fs.names(broker.log.folder) if name.endswith(".cleaned")]


def test_a_full_disk_ends_the_round_and_the_next_one_goes_through() -> None:
    broker = new_broker()
    broker.append(40)
    before = broker.values()
    used = broker.fs.capacity - broker.fs.free_bytes(FOLDER)
    broker.fs.capacity = used + 50
    broker.clean()
    # A group may have been through before: a round counts only as a whole.
    assert broker.values().items() <= before.items()
    check_newest(records_in(all_bytes(broker.log)), 40)
    assert (broker.log.cleaned_offset, broker.manager.offline_dirs) == (None, ())
    broker.fs.capacity = 1 << 40
    broker.clean()
    assert len(broker.values()) < len(before)


def lived(fs: FaultFileSystem, flushed: list[int]) -> None:
    """Records flushed, cleaned, written on and cleaned again; `flushed` gets the ends of the log that were."""
    broker = Broker(fs)
    broker.append(40)
    broker.log.flush()
    flushed.append(40)
    broker.clean()
    run_work(broker.manager.tick(NOW_MS))
    broker.append(20)
    broker.log.flush()
    flushed.append(60)
    broker.clean()
    run_work(broker.manager.tick(NOW_MS + 2000))


def found_after(fs: FaultFileSystem) -> list[Record]:
    broker = Broker(fs)
    assert not broker.manager.offline_dirs
    assert not [
        name for name in fs.names(broker.log.folder) if name.endswith((".cleaned", ".swap", ".deleted"))
    ]
    found = records_in(all_bytes(broker.log))
    offsets = [each.offset for each in found]
    assert offsets == sorted(set(offsets)), "segments overlap"
    bases = [each.base_offset for each in broker.log.segments]
    assert bases == sorted(set(bases))
    broker.append(9)
    broker.clean()
    return found


@pytest.mark.parametrize("share", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_the_newest_of_each_key_survives_a_cut_at_every_call_of_a_cleaning(share: int) -> None:
    calls: list[tuple[int, str]] = []
    fs = FaultFileSystem(FOLDER)
    fs.on_call = lambda number, name: calls.append((number, name)) if name in CHANGES else None
    lived(fs, [])
    assert len(calls) > 200
    for number, name in calls[::share]:
        fs = FaultFileSystem(FOLDER)
        disks: list[tuple[FaultFileSystem, int]] = []
        flushed = [0]

        def cut(
            at: int,
            _name: str,
            fs: FaultFileSystem = fs,
            number: int = number,
            disks: list[tuple[FaultFileSystem, int]] = disks,
            flushed: list[int] = flushed,
        ) -> None:
            if at == number:
                disks.append((fs.killed(), flushed[-1]))
                disks.extend((fs.power_cut(Random(number * 11 + seed)), flushed[-1]) for seed in range(3))

        fs.on_call = cut
        lived(fs, flushed)
        for way, (disk, end) in enumerate(disks):
            try:
                check_newest(found_after(disk), end)
            except BaseException as error:
                error.add_note(f"cut at call {number}, {name}, way {way}")
                raise


def check_newest(found: list[Record], end: int) -> None:
    """A record that was flushed may be missing only where there is a newer one of its key."""
    for key in range(3):
        flushed = max((each for each in range(end) if each % 3 == key), default=-1)
        assert max((each.offset for each in found if each.offset % 3 == key), default=-1) >= flushed
    assert all(each.value == b"value %d" % each.offset for each in found)


def test_a_disk_that_fails_in_a_cleaning_takes_the_directory_offline_and_loses_nothing() -> None:
    calls: list[int] = []
    fs = FaultFileSystem(FOLDER)
    fs.on_call = lambda number, name: calls.append(number) if name in CHANGES else None
    lived(fs, [])
    for number in calls[::5]:
        fs = FaultFileSystem(FOLDER)

        def fail(at: int, _name: str, number: int = number) -> None:
            if at == number:
                raise refused(5)

        fs.on_call = fail
        flushed = [0]
        with suppress(KafkaStorageError):
            lived(fs, flushed)
        fs.on_call = lambda _number, _name: None
        check_newest(found_after(fs.killed()), flushed[-1])
