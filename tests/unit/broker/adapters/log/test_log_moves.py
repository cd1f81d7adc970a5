"""Moves between log directories on a disk: copied in pieces, swapped, taken back, cut off and failed at every call."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest

from kquorum.broker.adapters.log.log_dir import LogDir
from kquorum.broker.adapters.log.log_manager import LogManager, run_work
from kquorum.broker.coordinators.loading import LogLoad
from kquorum.broker.log.errors import KafkaStorageError, LogError
from kquorum.broker.log.folder_names import FolderKind, parse_folder_name
from kquorum.broker.log.log_config import COMPACT, LogConfig
from kquorum.broker.quota.rate import Windows
from kquorum.broker.quota.replication import ReplicationThrottle
from kquorum.broker.replica import log_moves
from kquorum.broker.replica.log_moves import LogMoves, MoveState
from kquorum.broker.replica.partition import Outbox, Partition, TopicPartition
from kquorum.metadata.image.directories import UNASSIGNED
from kquorum.node.broker_logs import BrokerLogs
from kquorum.storage.errors import EnvironmentFault
from tests.support.broker.disk_logs import NOW_MS, TOPIC_ID, all_bytes, data, records_in
from tests.support.fault_file_system import CHANGES, FaultFileSystem, refused

A, B, C = UUID(int=1_001), UUID(int=1_002), UUID(int=1_003)
PATHS = {A: Path("/a"), B: Path("/b"), C: Path("/c")}
CONFIG = LogConfig(segment_bytes=1_000, index_interval_bytes=1, file_delete_delay_ms=1_000)
ORDERS = TopicPartition("orders", 0)


class Controller:
    """What outlives a crash of the broker: the directory of the replica."""

    def __init__(self, assigned: UUID = A) -> None:
        self.assigned = assigned


class NowLogs(BrokerLogs):
    """Flushes at once, not in a thread."""

    def flush_future(self, topic_partition: TopicPartition) -> None:
        work = self.manager.begin_future_flush(*topic_partition)
        if work is not None:
            run_work([work])


class Broker:
    def __init__(
        self, fs: FaultFileSystem, controller: Controller, config: LogConfig = CONFIG, *, opens: bool = True
    ) -> None:
        self.fs, self.controller, self.now_ms = fs, controller, NOW_MS
        self.manager = LogManager(
            [LogDir(path, each, fs) for each, path in PATHS.items()],
            config_of=lambda _topic: config,
            on_offline=lambda log_dir, _lost: self.failed.append(log_dir.directory_id),
        )
        self.failed: list[UUID] = []
        self.manager.load(NOW_MS)
        self.logs = NowLogs(self.manager, lambda: self.now_ms)
        self.asked: list[UUID] = []
        self.throttle = ReplicationThrottle(1, Windows())
        self.has_assignments = True
        self.moves = LogMoves(
            self.logs,
            self.throttle,
            lambda _topic, _index, directory: self.asked.append(directory),
            lambda: self.has_assignments,
        )
        self.logs.preferred = self.moves.preferred
        if opens:
            self.open()

    def open(self) -> None:
        log = self.logs.open(ORDERS, TOPIC_ID, directory_id=self.controller.assigned, is_new=True)
        nothing: Any = None
        self.partition = Partition(
            broker_id=1,
            topic_id=TOPIC_ID,
            topic="orders",
            partition=0,
            log=log,
            cluster=nothing,
            outbox=Outbox(),
        )
        self.partition.leader_epoch = 9
        self.moves.opened(self.partition, self.controller.assigned)

    @property
    def log(self) -> Any:
        return self.partition.log

    def append(self, count: int, epoch: int = 3) -> None:
        for _ in range(count):
            self.log.append_as_leader(
                data(f"value {self.log.log_end_offset}"), leader_epoch=epoch, now_ms=NOW_MS
            )
        self.log.update_high_watermark(self.log.log_end_offset - 1)

    def step(self) -> None:
        self.now_ms += 100
        self.moves.step(self.now_ms)

    def answer(self) -> None:
        """The controller carries out what it was asked."""
        while self.asked:
            self.controller.assigned = self.asked.pop(0)
            self.moves.assigned(TOPIC_ID, 0, self.controller.assigned)

    def finish(self, most: int = 200) -> None:
        for _ in range(most):
            if not self.moves.moves and not self.asked:
                return
            self.step()
            self.answer()
        raise AssertionError(f"the move does not end: {self.moves.moves}")

    def folders(self) -> dict[str, list[FolderKind]]:
        """Of the partition, by the log directory."""
        found = {
            path.name: [
                parse_folder_name(name).kind for name in self.fs.names(path) if name.startswith("orders-")
            ]
            for path in PATHS.values()
        }
        return {name: kinds for name, kinds in found.items() if kinds}

    def values(self) -> list[bytes | None]:
        return [each.value for each in records_in(all_bytes(self.log))]


def new_disk() -> FaultFileSystem:
    return FaultFileSystem(*PATHS.values())


def new_broker(**more: Any) -> Broker:
    return Broker(new_disk(), Controller(), **more)


def expected(count: int) -> list[bytes]:
    return [b"value %d" % number for number in range(count)]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_moves, "SLICE_BYTES", 400)


def test_a_coordinator_that_loads_a_log_goes_on_with_the_copy_that_took_its_place() -> None:
    """It read from the log that was closed, and refused all requests until the partition had another leader."""
    broker = new_broker()
    broker.append(40)
    load = LogLoad(broker.partition)
    read: list[int] = []

    def load_some() -> int:
        before = len(read)
        read.extend(header.base_offset for _, _, header in load.next_batches(300))
        return len(read) - before

    assert load_some() > 0
    broker.moves.move(broker.partition, B)
    broker.finish()
    assert broker.log.directory_id == B
    while load_some():
        pass
    assert read == list(range(40))


def test_a_log_is_copied_in_pieces_and_takes_the_place_of_the_old_one_when_the_controller_agrees() -> None:
    broker = new_broker()
    broker.append(40)
    broker.moves.move(broker.partition, B)
    [move] = broker.moves.moves.values()
    assert move.lag == 40
    broker.step()
    assert 0 < move.lag < 40
    for _ in range(100):
        broker.step()
    assert (move.lag, move.state, broker.asked) == (0, MoveState.ASKED, [B])
    broker.append(3)
    assert broker.log.directory_id == A, "the old log serves until then"
    broker.step()
    assert move.lag == 0, "the copy follows the log"
    old_high_watermark = broker.log.high_watermark
    broker.finish()
    assert broker.log.directory_id == B
    assert broker.partition.future is None
    assert broker.log.high_watermark == old_high_watermark
    assert broker.values() == expected(43)
    broker.append(2)
    assert broker.values() == expected(45)
    assert broker.folders() == {"a": [FolderKind.DELETED], "b": [FolderKind.CURRENT]}
    run_work(broker.manager.tick(broker.now_ms + 2_000))
    assert broker.folders() == {"b": [FolderKind.CURRENT]}


def test_a_move_to_where_the_log_lies_is_none_and_ends_a_move_that_is_under_way() -> None:
    broker = new_broker()
    broker.append(40)
    broker.moves.move(broker.partition, A)
    assert not broker.moves.moves
    broker.moves.move(broker.partition, B)
    broker.moves.move(broker.partition, B)
    broker.step()
    assert len(broker.moves.moves) == 1
    broker.moves.move(broker.partition, A)
    assert not broker.moves.moves
    assert not broker.manager.futures
    assert broker.asked == [], "the controller had heard nothing of it"
    assert broker.folders()["b"] == [FolderKind.DELETED]
    assert broker.values() == expected(40)


def test_a_move_elsewhere_takes_the_place_of_the_first() -> None:
    broker = new_broker()
    broker.append(5)
    broker.moves.move(broker.partition, B)
    broker.step()
    broker.moves.move(broker.partition, C)
    broker.finish()
    assert broker.log.directory_id == C
    assert broker.values() == expected(5)


@pytest.mark.parametrize("is_accepted", [False, True])
def test_the_controller_hears_of_a_move_that_ends_after_it_was_asked(is_accepted: bool) -> None:
    broker = new_broker()
    broker.append(5)
    broker.moves.move(broker.partition, B)
    for _ in range(20):
        broker.step()
    assert broker.asked == [B]
    if is_accepted:
        broker.answer()
        assert broker.controller.assigned == B
    broker.moves.move(broker.partition, A)
    assert broker.asked[-1] == A
    broker.answer()
    assert (broker.controller.assigned, broker.log.directory_id) == (A, A)


def test_an_old_cluster_without_directories_is_not_asked() -> None:
    broker = new_broker()
    broker.has_assignments = False
    broker.append(5)
    broker.moves.move(broker.partition, B)
    broker.finish()
    assert broker.log.directory_id == B
    assert broker.controller.assigned == A


def test_the_copy_is_cut_with_the_log() -> None:
    broker = new_broker()
    broker.append(10)
    broker.moves.move(broker.partition, B)
    for _ in range(20):
        broker.step()
    future = broker.partition.future
    assert future is not None
    broker.partition.truncate_to(4)
    assert future.log_end_offset == 4
    broker.append(3, epoch=5)
    broker.partition.truncate_fully_and_start_at(50)
    broker.append(2, epoch=6)
    broker.finish()
    assert (broker.log.directory_id, broker.log.log_start_offset, broker.log.log_end_offset) == (B, 50, 52)
    assert broker.values() == [b"value 50", b"value 51"]


def test_a_log_that_begins_later_is_copied_from_its_start_which_may_lie_in_a_batch() -> None:
    broker = new_broker()
    for number in range(0, 60, 3):
        values = [f"value {number + index}" for index in range(3)]
        broker.log.append_as_leader(data(*values), leader_epoch=3, now_ms=NOW_MS)
    broker.log.update_high_watermark(60)
    broker.log.advance_log_start_offset(31)
    broker.log.delete_old_segments(NOW_MS)
    broker.moves.move(broker.partition, B)
    broker.finish()
    assert (broker.log.directory_id, broker.log.log_start_offset, broker.log.log_end_offset) == (B, 31, 60)
    assert [each.offset for each in records_in(all_bytes(broker.log), from_offset=31)] == list(range(31, 60))


def test_a_start_that_moves_on_moves_that_of_the_copy() -> None:
    broker = new_broker()
    broker.append(30)
    broker.moves.move(broker.partition, B)
    broker.step()
    broker.log.advance_log_start_offset(20)
    broker.log.delete_old_segments(NOW_MS)
    broker.finish()
    assert (broker.log.directory_id, broker.log.log_start_offset) == (B, 20)


def test_no_more_is_copied_than_the_throttle_lets_through() -> None:
    broker = new_broker()
    broker.append(100)
    size = broker.log.size_bytes
    broker.throttle.limit = 1_000
    broker.moves.move(broker.partition, B)
    [move] = broker.moves.moves.values()
    began_ms = broker.now_ms
    while move.lag:
        broker.step()
        copied = size - size * move.lag // 100
        elapsed_s = max((broker.now_ms - began_ms) / 1_000, 1)
        assert copied <= 1_000 * elapsed_s + 1_400, (copied, elapsed_s)
    assert broker.now_ms - began_ms >= (size - 1_400) * 0.9
    broker.throttle.limit = float("inf")
    broker.finish()
    assert broker.values() == expected(100)


def test_one_log_is_copied_at_a_time() -> None:
    broker = new_broker()
    broker.append(40)
    others: list[Partition] = []
    for index in (1, 2):
        log = broker.logs.open(TopicPartition("orders", index), TOPIC_ID, directory_id=A, is_new=True)
        nothing: Any = None
        made = Partition(
            broker_id=1,
            topic_id=TOPIC_ID,
            topic="orders",
            partition=index,
            log=log,
            cluster=nothing,
            outbox=Outbox(),
        )
        made.leader_epoch = 9
        log.append_as_leader(data(*map(str, range(10))), leader_epoch=3, now_ms=NOW_MS)
        others.append(made)
    for each in reversed(others):
        broker.moves.move(each, B)
    broker.moves.move(broker.partition, B)
    broker.step()
    lags = {key.partition: move.lag for key, move in broker.moves.moves.items()}
    assert 0 < lags[0] < 40
    assert (lags[1], lags[2]) == (10, 10)


def test_a_log_that_moves_is_not_cleaned() -> None:
    config = LogConfig(cleanup_policy=frozenset((COMPACT,)), min_cleanable_dirty_ratio=0.0, segment_bytes=500)
    broker = new_broker(config=config)
    for number in range(30):
        broker.log.append_as_leader(data(str(number), key=b"key"), leader_epoch=0, now_ms=NOW_MS)
    broker.log.update_high_watermark(30)
    broker.moves.move(broker.partition, B)
    assert broker.manager.clean(NOW_MS) is None
    broker.finish()
    assert broker.manager.clean(NOW_MS) is not None


def test_a_partition_that_goes_takes_its_copy_along() -> None:
    broker = new_broker()
    broker.append(5)
    broker.moves.move(broker.partition, B)
    broker.moves.stopped(ORDERS)
    assert not broker.moves.moves
    assert not broker.manager.futures
    assert broker.partition.future is None


def test_a_copy_whose_directory_fails_leaves_the_log_where_it_is() -> None:
    broker = new_broker()
    broker.append(40)
    broker.moves.move(broker.partition, B)
    for _ in range(100):
        broker.step()
    broker.answer()
    assert broker.controller.assigned == B
    broker.append(1)
    broker.manager.futures[ORDERS].log_dir.fail(refused(5))
    broker.moves.directory_failed(B)
    assert broker.asked == [A]
    broker.answer()
    broker.step()
    assert (broker.controller.assigned, broker.log.directory_id) == (A, A)
    assert broker.values() == expected(41)


def test_a_log_whose_directory_fails_ends_its_move() -> None:
    broker = new_broker()
    broker.append(40)
    broker.moves.move(broker.partition, B)
    for _ in range(100):
        broker.step()
    broker.answer()
    broker.log.log_dir.fail(refused(5))
    broker.moves.went_offline(ORDERS)
    assert broker.asked == [A], "the controller has to know that the replica is offline"
    assert not broker.moves.moves
    # With a blank disk in the place of the old one, the copy is what there is.
    broker.answer()
    disk = broker.fs.killed()
    for name in disk.names(PATHS[A] / "orders-0"):
        disk.unlink(PATHS[A] / "orders-0" / name)
    disk.remove_folder(PATHS[A] / "orders-0")
    again = Broker(disk, broker.controller)
    assert again.log.directory_id == B
    again.finish()
    assert (again.controller.assigned, again.values()) == (B, expected(40))


def test_a_copy_of_a_partition_that_is_gone_is_dropped_at_the_start() -> None:
    broker = new_broker()
    broker.append(5)
    broker.moves.move(broker.partition, B)
    broker.step()
    again = Broker(broker.fs.killed(), broker.controller, opens=False)
    assert list(again.manager.futures) == [ORDERS]
    again.moves.drop_unowned([ORDERS], lambda _partition: True)
    assert list(again.manager.futures) == [ORDERS]
    again.moves.drop_unowned([ORDERS], lambda _partition: False)
    assert not again.manager.futures


def test_a_copy_goes_on_after_a_crash_from_what_it_shares_with_the_log() -> None:
    broker = new_broker()
    broker.append(20)
    broker.moves.move(broker.partition, B)
    for _ in range(20):
        broker.step()
    # The log is cut, and its copy is not, for the broker ends in between.
    broker.partition.future = None
    broker.partition.truncate_to(12)
    broker.append(10, epoch=8)
    again = Broker(broker.fs.killed(), broker.controller)
    [move] = again.moves.moves.values()
    assert move.future.log_end_offset == 12
    again.finish()
    assert again.log.directory_id == B
    assert again.values() == expected(22)


def test_a_copy_with_an_epoch_that_the_log_lacks_begins_again() -> None:
    broker = new_broker()
    broker.append(10)
    broker.append(5, epoch=8)
    broker.moves.move(broker.partition, B)
    for _ in range(20):
        broker.step()
    broker.partition.future = None
    broker.partition.truncate_to(10)
    again = Broker(broker.fs.killed(), broker.controller)
    [move] = again.moves.moves.values()
    assert move.future.log_end_offset == 0
    again.finish()
    assert again.values() == expected(10)


def test_a_directory_that_was_asked_for_before_there_was_a_log_gets_it() -> None:
    broker = Broker(new_disk(), Controller(UNASSIGNED), opens=False)
    broker.moves.prefer(ORDERS, C)
    broker.open()
    assert broker.log.directory_id == C
    assert broker.moves.preferred(ORDERS) is None


def test_the_controller_hears_of_a_log_that_lies_elsewhere_than_it_says() -> None:
    broker = new_broker()
    broker.append(1)
    again = Broker(broker.fs.killed(), Controller(B))
    assert (again.log.directory_id, again.asked) == (A, [A])


def test_wishes_for_logs_to_come_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_moves, "PREFERENCES_KEPT", 3)
    broker = new_broker()
    for index in range(10):
        broker.moves.prefer(TopicPartition("later", index), B)
    assert [broker.moves.preferred(TopicPartition("later", index)) for index in (6, 7, 8, 9)] == [
        None,
        B,
        B,
        B,
    ]


def lived(fs: FaultFileSystem, controller: Controller, flushed: list[int]) -> None:
    """Records that are flushed, a move while more come, and a move back; `flushed` gets the ends that were."""
    broker = Broker(fs, controller)
    broker.append(14)
    broker.log.flush()
    flushed.append(14)
    broker.moves.move(broker.partition, B)
    for _ in range(4):
        broker.step()
        broker.append(1)
    broker.finish()
    broker.append(2)
    broker.log.flush()
    flushed.append(20)
    run_work(broker.manager.tick(broker.now_ms))
    broker.moves.move(broker.partition, A)
    broker.step()
    broker.finish()
    run_work(broker.manager.tick(broker.now_ms + 5_000))


def check_after(fs: FaultFileSystem, controller: Controller, flushed: int) -> None:
    broker = Broker(fs, controller)
    assert not broker.manager.offline_dirs
    broker.finish()
    values = broker.values()
    assert values == expected(len(values))
    assert len(values) >= flushed
    assert broker.log.directory_id == controller.assigned
    assert not broker.manager.futures
    broker.append(3)
    assert broker.values() == expected(len(values) + 3)
    kinds = [kind for each in broker.folders().values() for kind in each]
    assert kinds.count(FolderKind.CURRENT) == 1
    assert FolderKind.FUTURE not in kinds


def calls_of_a_life() -> list[tuple[int, str]]:
    calls: list[tuple[int, str]] = []
    fs = new_disk()
    fs.on_call = lambda number, name: calls.append((number, name)) if name in CHANGES else None
    lived(fs, Controller(), [])
    assert len(calls) > 100
    return calls


@pytest.mark.parametrize("share", [17, pytest.param(1, marks=pytest.mark.slow)])
def test_nothing_is_lost_by_a_cut_at_any_call_of_a_move(share: int) -> None:
    for number, name in calls_of_a_life()[::share]:
        fs, controller, flushed = new_disk(), Controller(), [0]
        disks: list[tuple[FaultFileSystem, Controller, int]] = []

        def cut(
            at: int,
            _name: str,
            fs: FaultFileSystem = fs,
            number: int = number,
            disks: list[tuple[FaultFileSystem, Controller, int]] = disks,
            controller: Controller = controller,
            flushed: list[int] = flushed,
        ) -> None:
            if at == number:
                found = [fs.killed(), *(fs.power_cut(Random(number * 7 + seed)) for seed in range(3))]
                disks.extend((each, Controller(controller.assigned), flushed[-1]) for each in found)

        fs.on_call = cut
        lived(fs, controller, flushed)
        assert disks
        for way, (disk, then, end) in enumerate(disks):
            try:
                check_after(disk, then, end)
            except BaseException as error:
                error.add_note(f"cut at call {number}, {name}, way {way}")
                raise


@pytest.mark.parametrize("share", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_a_disk_that_fails_in_a_move_loses_nothing(share: int) -> None:
    for number, name in calls_of_a_life()[::share]:
        fs, controller, flushed = new_disk(), Controller(), [0]

        def fail(at: int, _name: str, number: int = number) -> None:
            if at == number:
                raise refused(5)

        fs.on_call = fail
        with suppress(LogError, EnvironmentFault, KafkaStorageError, AssertionError):
            lived(fs, controller, flushed)
        fs.on_call = lambda _number, _name: None
        try:
            check_after(fs.killed(), controller, flushed[-1])
        except BaseException as error:
            error.add_note(f"failed at call {number}, {name}")
            raise


def swaps_before_the_disk_has_it(self: LogMoves, move: Any) -> bool:
    """Planted: the copy takes the log's place although a power cut would take what the log had on its disk."""
    key = move.partition.topic_partition
    move.partition.log = self._logs.promote_future(key)
    move.partition.future = None
    del self._moves[key]
    return True


def forgets_what_it_shared(self: LogMoves, move: Any) -> None:
    """Planted: a copy from before goes on at its end, whatever became of the log."""
    del self, move


def never_hears_of_the_end(self: LogMoves, move: Any) -> None:
    """Planted: the controller is not asked back."""
    del self._moves[move.partition.topic_partition]
    move.partition.future = None


@pytest.mark.parametrize(
    ("name", "planted", "caught_by"),
    [
        (
            "_swap",
            swaps_before_the_disk_has_it,
            lambda: test_nothing_is_lost_by_a_cut_at_any_call_of_a_move(3),
        ),
        (
            "_align",
            forgets_what_it_shared,
            test_a_copy_goes_on_after_a_crash_from_what_it_shares_with_the_log,
        ),
        (
            "_forget",
            never_hears_of_the_end,
            test_a_copy_whose_directory_fails_leaves_the_log_where_it_is,
        ),
    ],
)
def test_planted_mistakes_are_caught(
    monkeypatch: pytest.MonkeyPatch, name: str, planted: Callable[..., object], caught_by: Callable[[], None]
) -> None:
    monkeypatch.setattr(LogMoves, name, planted)
    with pytest.raises(AssertionError):
        caught_by()
