"""All logs of a broker: their directories, checkpoints, what is set aside, and a directory that fails."""

import errno
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from kquorum.broker.adapters.log import log_manager
from kquorum.broker.adapters.log.disk_log import DiskLog
from kquorum.broker.adapters.log.log_dir import LogDir
from kquorum.broker.adapters.log.log_manager import (
    FolderNotOfLog,
    LogManager,
    OpeningWork,
    PartitionFoundTwice,
    run_work,
)
from kquorum.broker.log.errors import InconsistentTopicId, KafkaStorageError
from kquorum.broker.log.log_config import LogConfig
from kquorum.broker.log.producer_state import ProducerSettings
from kquorum.storage.offset_checkpoints import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, read_offsets
from kquorum.wire.uuids import ZERO_UUID
from tests.support.broker.disk_logs import NOW_MS, TOPIC_ID, data, values_in
from tests.support.fault_file_system import FaultFileSystem, refused

OTHER_ID = UUID(int=0x71)
CONFIG = LogConfig(segment_bytes=300, file_delete_delay_ms=1000, retention_ms=-1)


def manager_at(*folders: Path, loaded: bool = True, config: LogConfig = CONFIG) -> LogManager:
    dirs = []
    for number, folder in enumerate(folders, 1):
        folder.mkdir(parents=True, exist_ok=True)
        dirs.append(LogDir(folder, UUID(int=number)))
    manager = LogManager(dirs, config_of=lambda _topic: config)
    if loaded:
        manager.load(NOW_MS)
    return manager


def made(manager: LogManager, topic: str, number: int = 0, count: int = 0) -> DiskLog:
    log = manager.get_or_create(topic, number, TOPIC_ID, now_ms=NOW_MS)
    for value in range(count):
        log.append_as_leader(data(f"v{value}"), leader_epoch=0, now_ms=NOW_MS)
    return log


def test_new_logs_go_to_the_directory_with_the_fewest(tmp_path: Path) -> None:
    manager = manager_at(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    for number in range(20):
        made(manager, "topic", number)
        counts = [sum(1 for _ in (tmp_path / name).glob("topic-*")) for name in "abc"]
        assert max(counts) - min(counts) <= 1


def test_a_named_directory_takes_the_log(tmp_path: Path) -> None:
    manager = manager_at(tmp_path / "a", tmp_path / "b")
    for number in range(3):
        log = manager.get_or_create("topic", number, TOPIC_ID, now_ms=NOW_MS, directory_id=UUID(int=2))
        assert log.directory_id == UUID(int=2)


def test_a_log_of_another_topic_id_is_refused(tmp_path: Path) -> None:
    made(manager_at(tmp_path), "topic")
    manager = manager_at(tmp_path)
    with pytest.raises(InconsistentTopicId):
        manager.get_or_create("topic", 0, OTHER_ID, now_ms=NOW_MS)


def opening(manager: LogManager, topic: str = "topic", number: int = 0) -> OpeningWork:
    work = manager.begin_opening(
        topic, number, TOPIC_ID, now_ms=NOW_MS, directory_id=ZERO_UUID, is_new=True, leader_epoch=3
    )
    assert work is not None
    return work


def test_a_log_that_is_opened_apart_is_there_once_the_work_is_finished(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    work = opening(manager)
    work.run()
    assert manager.get("topic", 0) is None
    work.finish(None)
    log = manager.logs["topic", 0]
    assert log.log_dir is manager.live_dirs[0]
    assert (log.topic_id, log.leader_epochs) == (TOPIC_ID, ((3, 0),))
    assert manager.get_or_create("topic", 0, TOPIC_ID, now_ms=NOW_MS) is log
    log.append_as_leader(data("v"), leader_epoch=3, now_ms=NOW_MS)
    manager.close(1)
    assert manager_at(tmp_path).logs["topic", 0].leader_epochs == ((3, 0),)


def test_logs_that_are_opened_apart_are_spread_over_the_directories(tmp_path: Path) -> None:
    manager = manager_at(tmp_path / "a", tmp_path / "b")
    for work in [opening(manager, "topic", number) for number in range(6)]:
        work.run()
        work.finish(None)
    assert [sum(1 for _ in (tmp_path / name).glob("topic-*")) for name in "ab"] == [3, 3]


def test_a_disk_that_fails_while_a_log_is_opened_apart_is_known_on_the_loop() -> None:
    fs = FaultFileSystem(Path("/a"))
    manager = LogManager([LogDir(Path("/a"), UUID(int=1), fs)], config_of=lambda _topic: CONFIG)
    manager.load(NOW_MS)
    work = opening(manager)

    def break_fsync(_number: int, name: str) -> None:
        if name == "fsync":
            raise refused(errno.EIO)

    fs.on_call = break_fsync
    work.run()
    assert not manager.offline_dirs
    work.finish(None)
    assert len(manager.offline_dirs) == 1
    assert manager.get("topic", 0) is None
    with pytest.raises(KafkaStorageError):
        manager.get_or_create("topic", 0, TOPIC_ID, now_ms=NOW_MS)


def test_a_directory_that_fails_meanwhile_gets_no_log_that_was_opened_apart(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    work = opening(manager)
    work.run()
    manager.live_dirs[0].fail(OSError(errno.EIO, "broken"))
    work.finish(None)
    assert manager.get("topic", 0) is None


def test_configs_that_change_while_a_log_is_opened_apart_are_in_force(tmp_path: Path) -> None:
    configs = [CONFIG]
    manager = LogManager([LogDir(tmp_path, UUID(int=1))], config_of=lambda _topic: configs[-1])
    manager.load(NOW_MS)
    work = opening(manager)
    configs.append(LogConfig(segment_bytes=9_999))
    work.run()
    work.finish(None)
    assert manager.logs["topic", 0].config.segment_bytes == 9_999


def test_nothing_is_opened_apart_where_a_log_is_there_or_may_lie_offline(tmp_path: Path) -> None:
    manager = manager_at(tmp_path / "a", tmp_path / "b")
    made(manager, "topic")
    assert begun(manager, 0, is_new=True) is None
    manager.live_dirs[0].fail(OSError(errno.EIO, "broken"))
    assert begun(manager, 1, is_new=False) is None


def begun(manager: LogManager, number: int, *, is_new: bool) -> OpeningWork | None:
    return manager.begin_opening(
        "topic", number, TOPIC_ID, now_ms=NOW_MS, directory_id=ZERO_UUID, is_new=is_new, leader_epoch=None
    )


def test_a_stop_in_order_leaves_checkpoints_and_the_mark_which_the_next_start_takes_away(
    tmp_path: Path,
) -> None:
    manager = manager_at(tmp_path)
    log = made(manager, "topic", count=9)
    log.update_high_watermark(8)
    log.advance_log_start_offset(2)
    manager.close(77)
    name = ("topic", 0)
    assert read_offsets(tmp_path / RECOVERY_POINTS) == {name: 9}
    assert read_offsets(tmp_path / LOG_STARTS) == {name: 2}
    assert read_offsets(tmp_path / HIGH_WATERMARKS) == {name: 8}
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":77}'
    again = manager_at(tmp_path)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    found = again.logs[name]
    assert (found.log_start_offset, found.high_watermark, found.recovery_point) == (2, 8, 9)


def test_ticks_write_the_checkpoints_when_they_are_due_and_flush_closed_segments(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    log = made(manager, "topic", count=9)
    log.update_high_watermark(9)
    run_work(manager.tick(NOW_MS + 5_000))
    assert read_offsets(tmp_path / HIGH_WATERMARKS) == {("topic", 0): 9}
    assert not (tmp_path / RECOVERY_POINTS).exists()
    assert 0 < log.recovery_point == log.segments[-1].base_offset < 9
    run_work(manager.tick(NOW_MS + 60_000))
    assert read_offsets(tmp_path / RECOVERY_POINTS) == {("topic", 0): log.recovery_point}


def test_a_truncation_below_the_recovery_point_is_written_down_at_the_next_tick(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    log = made(manager, "topic", count=9)
    log.flush()
    run_work(manager.tick(NOW_MS + 60_000))
    log.truncate_to(3)
    run_work(manager.tick(NOW_MS + 60_001))
    assert read_offsets(tmp_path / RECOVERY_POINTS) == {("topic", 0): 3}


def test_flush_ms_flushes_the_last_segment_too(tmp_path: Path) -> None:
    manager = manager_at(tmp_path, config=LogConfig(flush_ms=100))
    log = made(manager, "topic", count=3)
    run_work(manager.tick(NOW_MS + 99))
    assert log.recovery_point == 0
    run_work(manager.tick(NOW_MS + 100))
    assert log.recovery_point == 3


def test_a_deleted_log_is_set_aside_at_once_and_removed_after_the_delay(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    made(manager, "topic", count=3)
    manager.delete("topic", 0, now_ms=NOW_MS)
    assert manager.get("topic", 0) is None
    (aside,) = tmp_path.glob("*-delete")
    fresh = made(manager, "topic", count=1)
    run_work(manager.tick(NOW_MS + 999))
    assert aside.exists()
    run_work(manager.tick(NOW_MS + 1000))
    assert not aside.exists()
    assert values_in(fresh) == ["v0"]


def test_a_folder_that_waits_for_its_removal_waits_again_after_a_restart(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    made(manager, "topic", count=3)
    manager.delete("topic", 0, now_ms=NOW_MS)
    again = manager_at(tmp_path)
    assert not again.logs
    run_work(again.tick(NOW_MS + 59_999))
    assert list(tmp_path.glob("*-delete"))
    run_work(again.tick(NOW_MS + 60_000))
    assert not list(tmp_path.glob("*-delete"))


def test_a_log_that_the_metadata_do_not_give_to_the_broker_is_kept_aside(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    made(manager, "mine", count=1)
    made(manager, "stray", count=2)
    again = manager_at(tmp_path, loaded=False)
    asked: list[tuple[str, int, UUID | None]] = []

    def is_stray(topic: str, number: int, topic_id: UUID | None) -> bool:
        asked.append((topic, number, topic_id))
        return topic == "stray"

    again.load(NOW_MS, is_stray=is_stray)
    assert sorted(asked) == [("mine", 0, TOPIC_ID), ("stray", 0, TOPIC_ID)]
    assert list(again.logs) == [("mine", 0)]
    (folder,) = again.stray_folders()
    assert folder.name.startswith("stray-0.")
    assert folder.name.endswith("-stray")
    assert (folder / "00000000000000000000.log").stat().st_size > 0
    third = manager_at(tmp_path)
    assert third.stray_folders() == (folder,)


def test_a_future_log_takes_the_place_of_the_log(tmp_path: Path) -> None:
    manager = manager_at(tmp_path / "a", tmp_path / "b")
    log = manager.get_or_create("topic", 0, TOPIC_ID, now_ms=NOW_MS, directory_id=UUID(int=1))
    log.append_as_leader(data("one"), leader_epoch=0, now_ms=NOW_MS)
    log.update_high_watermark(1)
    future = manager.get_or_create(
        "topic", 0, TOPIC_ID, now_ms=NOW_MS, directory_id=UUID(int=2), is_future=True
    )
    future.append_as_leader(data("one"), leader_epoch=0, now_ms=NOW_MS)
    moved = manager.promote_future("topic", 0, now_ms=NOW_MS)
    assert moved is manager.get("topic", 0)
    assert (moved.directory_id, moved.high_watermark, manager.futures) == (UUID(int=2), 1, {})
    assert moved.folder == tmp_path / "b" / "topic-0"
    moved.append_as_leader(data("two"), leader_epoch=0, now_ms=NOW_MS)
    run_work(manager.tick(NOW_MS + 1000))
    assert not list((tmp_path / "a").glob("topic*"))
    manager.close(1)
    again = manager_at(tmp_path / "a", tmp_path / "b")
    assert values_in(again.logs["topic", 0]) == ["one", "two"]


def test_two_folders_of_one_partition_stop_the_start_with_both_names(tmp_path: Path) -> None:
    made(manager_at(tmp_path / "a"), "topic")
    made(manager_at(tmp_path / "b"), "topic")
    with pytest.raises(PartitionFoundTwice, match=r"a/topic-0 and .*b/topic-0"):
        manager_at(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize("name", ["nodash", "topic-", "-3", "topic-x", "topic-0-delete", "lost+found"])
def test_a_folder_of_no_partition_stops_the_start(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(FolderNotOfLog, match="move it out"):
        manager_at(tmp_path)


def test_files_and_the_folders_of_others_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    for name in ("__cluster_metadata-0", "remote-log-index-cache"):
        (tmp_path / name).mkdir()
    assert not manager_at(tmp_path).logs


def test_a_malformed_checkpoint_takes_its_directory_offline_and_no_other(tmp_path: Path) -> None:
    made(manager_at(tmp_path / "a"), "one")
    made(manager_at(tmp_path / "b"), "two")
    (tmp_path / "a" / RECOVERY_POINTS).write_text("1\n0\n")
    manager = manager_at(tmp_path / "a", tmp_path / "b")
    assert [each.path.name for each in manager.offline_dirs] == ["a"]
    assert list(manager.logs) == [("two", 0)]
    with pytest.raises(KafkaStorageError, match="may lie"):
        manager.get_or_create("one", 0, TOPIC_ID, now_ms=NOW_MS, is_new=False)
    assert made(manager, "three").log_dir.path.name == "b"


def test_a_directory_whose_disk_fails_loses_its_logs_and_gets_no_mark() -> None:
    disks = [FaultFileSystem(Path("/a")), FaultFileSystem(Path("/b"))]
    dirs = [
        LogDir(Path(f"/{name}"), UUID(int=n), fs)
        for n, (name, fs) in enumerate(zip("ab", disks, strict=True), 1)
    ]
    heard: list[tuple[LogDir, Sequence[tuple[str, int]]]] = []
    manager = LogManager(
        dirs, config_of=lambda _topic: CONFIG, on_offline=lambda log_dir, lost: heard.append((log_dir, lost))
    )
    manager.load(NOW_MS)
    logs = [made(manager, "topic", number, count=1) for number in range(2)]
    broken = next(log for log in logs if log.log_dir is dirs[0])

    def fail(_number: int, name: str) -> None:
        if name == "write":
            raise refused(errno.EIO)

    disks[0].on_call = fail
    with pytest.raises(KafkaStorageError, match="offline"):
        broken.append_as_leader(data("x"), leader_epoch=0, now_ms=NOW_MS)
    disks[0].on_call = lambda _number, _name: None
    assert heard == [(dirs[0], [("topic", broken.partition)])]
    assert manager.offline_dirs == (dirs[0],)
    assert list(manager.logs) == [("topic", 1 - broken.partition)]
    with pytest.raises(KafkaStorageError):
        broken.append_as_leader(data("x"), leader_epoch=0, now_ms=NOW_MS)
    run_work(manager.tick(NOW_MS + 60_000))
    manager.close(4)
    assert not disks[0].exists(Path("/a/.kafka_cleanshutdown"))
    assert disks[1].exists(Path("/b/.kafka_cleanshutdown"))


def test_a_log_that_is_made_again_takes_nothing_from_its_namesake(tmp_path: Path) -> None:
    """The checkpoints that were read at the start had the log start of a topic that was deleted since."""
    manager = manager_at(tmp_path)
    old = made(manager, "topic", count=10)
    old.update_high_watermark(10)
    old.advance_log_start_offset(7)
    manager.close(1)
    manager = manager_at(tmp_path)
    assert manager.logs["topic", 0].log_start_offset == 7
    manager.delete("topic", 0, now_ms=NOW_MS)
    again = manager.get_or_create("topic", 0, UUID(int=99), now_ms=NOW_MS)
    assert (again.log_start_offset, again.log_end_offset, again.high_watermark) == (0, 0, 0)
    assert again.recovery_point == 0


def test_folders_of_removed_logs_go_in_work_for_a_thread_some_a_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_manager, "_FOLDERS_A_TICK", 2)
    manager = manager_at(tmp_path)
    for number in range(3):
        made(manager, "topic", number)
        manager.delete("topic", number, now_ms=NOW_MS)

    def left() -> int:
        return len(list(tmp_path.glob("topic-*")))

    works = manager.tick(NOW_MS + 1000)
    assert left() == 3
    run_work(works)
    assert left() == 1
    run_work(manager.tick(NOW_MS + 2000))
    assert left() == 0


def test_files_that_retention_gave_up_go_in_work_for_a_thread(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    log = made(manager, "topic", count=9)
    log.update_high_watermark(9)
    log.advance_log_start_offset(9)
    assert log.delete_old_segments(NOW_MS)
    works = manager.tick(NOW_MS + 1000)
    assert list(log.folder.glob("*.deleted"))
    run_work(works)
    assert not list(log.folder.glob("*.deleted"))


def test_changed_configs_are_in_force_topic_by_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of a broker's config is one of all its topics."""
    monkeypatch.setattr(log_manager, "_CONFIGS_AT_ONCE", 2)
    configs = dict.fromkeys("abcde", CONFIG)
    asked: list[str] = []

    def config_of(topic: str) -> LogConfig:
        asked.append(topic)
        if configs[topic].retention_ms == 0:
            raise ValueError("no number")
        return configs[topic]

    manager = LogManager([LogDir(tmp_path, UUID(int=1))], config_of=config_of)
    manager.load(NOW_MS)
    logs = [made(manager, topic, number) for topic in configs for number in range(2)]
    asked.clear()
    configs |= {"a": replace(CONFIG, retention_ms=0)} | {
        topic: replace(CONFIG, retention_ms=7) for topic in "bcde"
    }
    assert [manager.change_configs("abcd"), manager.change_configs(()), manager.change_configs(())] == [
        True,
        False,
        False,
    ]
    assert asked == ["a", "b", "c", "d"]
    assert [log.config.retention_ms for log in logs] == [-1, -1, 7, 7, 7, 7, 7, 7, -1, -1]


def test_producers_of_some_logs_expire_a_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To look at 20,000 producers of each of 200 logs takes a second."""
    monkeypatch.setattr(log_manager, "_PRODUCERS_AS_A_SEGMENT", 1)
    monkeypatch.setattr(log_manager, "MOST_DELETED_AT_ONCE", 2)
    manager = LogManager(
        [LogDir(tmp_path, UUID(int=1))],
        config_of=lambda _topic: CONFIG,
        producers=ProducerSettings(expiration_ms=1),
    )
    manager.load(NOW_MS)
    logs = [made(manager, "topic", number) for number in range(3)]
    for log in logs:
        for producer_id in (1, 2):
            batch = data("v", producer_id=producer_id, producer_epoch=0, base_sequence=0)
            log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)

    def known() -> list[int]:
        return [len(log.producers.entries) for log in logs]

    for left in ([0, 2, 2], [0, 0, 2], [0, 0, 0]):
        run_work(manager.tick(NOW_MS + 30_000))
        assert known() == left
