"""Compaction of a partition's log against a twin that keeps all records in a list.

The twin says which records a round leaves: it looks for the newest of each key in the whole list, knows the
transactions by their markers, and notes when the tombstones of a batch may go. The log lies on a disk in memory, is
rolled, cleaned, closed, killed and opened again. What readers of committed records see, and what is known of
producers, must stay.
"""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from hypothesis.stateful import run_state_machine_as_test as run

from kquorum.broker.adapters.log.disk_log import DiskLog
from kquorum.broker.adapters.log.log_dir import LogDir
from kquorum.broker.adapters.log.log_manager import LogManager, run_work
from kquorum.broker.log import compaction
from kquorum.broker.log.compaction import CleanedTransactions, CopyPass, KeyPass
from kquorum.broker.log.errors import LogError
from kquorum.broker.log.log_config import COMPACT, LogConfig
from kquorum.broker.log.partition_log import AppendOrigin, Isolation
from kquorum.storage.offset_checkpoints import RECOVERY_POINTS
from kquorum.wire.data_batch import BatchHeader, Record, data_headers, read_data_records, write_data_batch
from kquorum.wire.errors import DecodeError
from tests.support.broker.disk_logs import DIRECTORY_ID, NOW_MS, TOPIC_ID, all_bytes, bytes_of, marker
from tests.support.fault_file_system import FaultFileSystem

FOLDER = Path("/data")
RETENTION_MS = 1000
CONFIG = LogConfig(
    cleanup_policy=frozenset((COMPACT,)),
    delete_retention_ms=RETENTION_MS,
    min_cleanable_dirty_ratio=0.0,
    index_interval_bytes=100,
    file_delete_delay_ms=100,
)
PRODUCERS = st.sampled_from([None, 0, 1])


@dataclass
class Batch:
    """One batch as it was appended, and what is left of it."""

    first: int
    last: int
    producer_id: int | None
    is_transactional: bool
    records: list[Record]
    horizon_ms: int | None = None


@dataclass
class Twin:
    batches: list[Batch] = field(default_factory=list)
    open: dict[int, list[Batch]] = field(default_factory=dict)
    aborted: list[Batch] = field(default_factory=list)
    sequences: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    """Last offset of each producer's last batch of data."""

    def append(self, batch: Batch) -> None:
        self.batches.append(batch)
        if batch.producer_id is None:
            return
        self.sequences[batch.producer_id] = self.next_sequence(batch.producer_id) + len(batch.records)
        self.ends[batch.producer_id] = batch.last
        if batch.is_transactional:
            self.open.setdefault(batch.producer_id, []).append(batch)

    def next_sequence(self, producer_id: int) -> int:
        return self.sequences.get(producer_id, 0)

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        ended = self.open.pop(producer_id, [])
        if not commit:
            self.aborted += ended

    @property
    def stable_offset(self) -> int | None:
        return min((batches[0].first for batches in self.open.values()), default=None)

    def is_aborted(self, batch: Batch) -> bool:
        return any(batch is each for each in self.aborted)

    def records(self, *, committed: bool) -> list[Record]:
        stable = self.stable_offset
        return [
            record
            for batch in self.batches
            for record in batch.records
            if not committed
            or not (self.is_aborted(batch) or (stable is not None and record.offset >= stable))
        ]

    def clean(self, first_dirty: int, end: int, now_ms: int) -> None:
        newest: dict[bytes | None, int] = {}
        cleaned = [each for each in self.batches if each.last < end]
        for batch in cleaned:
            for record in batch.records:
                if record.offset >= first_dirty and not self.is_aborted(batch):
                    newest[record.key] = record.offset
        for batch in cleaned:
            batch.records = [
                each
                for each in batch.records
                if not self.is_aborted(batch)
                and each.offset >= newest.get(each.key, -1)
                and (each.value is not None or batch.horizon_ms is None or now_ms < batch.horizon_ms)
            ]
            if batch.horizon_ms is None and any(each.value is None for each in batch.records):
                batch.horizon_ms = now_ms + RETENTION_MS


class LogAndTwin(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.fs = FaultFileSystem(FOLDER)
        self.now_ms = NOW_MS
        self.twin = Twin()
        self.manager = self._opened()
        self.log = self.manager.get_or_create("topic", 0, TOPIC_ID, now_ms=NOW_MS)

    def _opened(self) -> LogManager:
        manager = LogManager([LogDir(FOLDER, DIRECTORY_ID, self.fs)], config_of=lambda _topic: CONFIG)
        manager.load(self.now_ms)
        return manager

    @rule(
        producer_id=PRODUCERS,
        transactional=st.booleans(),
        keys=st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), min_size=1, max_size=4),
    )
    def produce(self, producer_id: int | None, transactional: bool, keys: list[tuple[str, bool]]) -> None:
        end = self.log.log_end_offset
        records = [
            Record(
                end + index,
                NOW_MS + end + index,
                key.encode(),
                None if is_tombstone else b"%d" % (end + index),
            )
            for index, (key, is_tombstone) in enumerate(keys)
        ]
        is_transactional = producer_id is not None and (transactional or producer_id in self.twin.open)
        fields = {}
        if producer_id is not None:
            fields = {
                "producer_id": producer_id,
                "producer_epoch": 0,
                "base_sequence": self.twin.next_sequence(producer_id),
                "transactional": is_transactional,
            }
        sent = [Record(index, each.timestamp_ms, each.key, each.value) for index, each in enumerate(records)]
        self.log.append_as_leader(write_data_batch(sent, **fields), leader_epoch=0, now_ms=self.now_ms)  # type: ignore[arg-type]
        self.twin.append(Batch(end, end + len(keys) - 1, producer_id, is_transactional, records))

    @rule(producer_id=st.sampled_from([0, 1]), commit=st.booleans())
    def mark(self, producer_id: int, commit: bool) -> None:
        self.log.append_as_leader(
            marker(commit=commit, producer_id=producer_id),
            leader_epoch=0,
            now_ms=self.now_ms,
            origin=AppendOrigin.COORDINATOR,
        )
        self.twin.end_transaction(producer_id, commit=commit)

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)

    @rule(waits=st.booleans())
    def clean(self, waits: bool) -> None:
        self.now_ms += RETENTION_MS if waits else 1
        self.log.update_high_watermark(self.log.log_end_offset)
        part = self.log.cleanable(self.now_ms)
        rounds = 0
        while (work := self.manager.clean(self.now_ms)) is not None:
            rounds += 1
            run_work((work,))
        assert not self.manager.uncleanable()
        assert not self.manager.offline_dirs
        assert bool(rounds) == part.is_due(0.0)
        if rounds:
            self.twin.clean(part.first_dirty_offset, part.first_uncleanable_offset, self.now_ms)
            assert self.log.cleaned_offset == part.first_uncleanable_offset

    @rule()
    def clean_until_markers_go(self) -> None:
        for _ in range(3):
            self.produce(None, False, [("d", False)])
            self.roll()
            self.clean(True)

    @rule(way=st.sampled_from(["closed", "killed", "rebuilt"]))
    def open_again(self, way: str) -> None:
        end = self.log.log_end_offset
        if way == "closed":
            self.manager.close(1)
        else:
            run_work(self.manager.tick(self.now_ms))
            self.fs = self.fs.killed()
        if way == "rebuilt":
            # Nothing but the batches says what the producers did.
            for name in self.fs.names(self.log.folder):
                if name.endswith(".snapshot"):
                    self.fs.unlink(self.log.folder / name)
            self.fs.put(FOLDER / RECOVERY_POINTS, b"")
        cleaned = self.log.cleaned_offset
        self.manager = self._opened()
        log = self.manager.get("topic", 0)
        assert log is not None
        self.log = log
        assert (log.log_end_offset, log.cleaned_offset) == (end, cleaned)
        assert not [name for name in self.fs.names(log.folder) if name.endswith((".cleaned", ".swap"))]

    @invariant()
    def the_log_holds_what_the_twin_kept(self) -> None:
        assert data_records(all_bytes(self.log)) == self.twin.records(committed=False)

    @invariant()
    def readers_of_committed_records_see_them_from_wherever_they_begin(self) -> None:
        self.log.update_high_watermark(self.log.log_end_offset)
        expected = self.twin.records(committed=True)
        for start in range(0, self.log.last_stable_offset + 1, 3):
            assert committed(self.log, start) == [each for each in expected if each.offset >= start]

    @invariant()
    def producers_are_known_by_their_last_batch(self) -> None:
        entries = self.log.producers.entries
        for producer_id, end in self.twin.ends.items():
            last = entries[producer_id].batches[-1]
            assert (last.last_offset, last.last_sequence) == (end, self.twin.sequences[producer_id] - 1)


def data_records(content: bytes) -> list[Record]:
    return [
        record
        for position, header in data_headers(content)
        if not header.is_control
        for record in read_data_records(content, position, header)
    ]


def committed(log: DiskLog, start: int) -> list[Record]:
    """What a consumer keeps of the answers to its fetches."""
    found: list[Record] = []
    offset = start
    while True:
        answer = log.read(offset, max_bytes=200, isolation=Isolation.COMMITTED, at_least_one_batch=True)
        content = bytes_of(answer)
        if not content:
            return found
        waiting = sorted((each.first_offset, each.producer_id) for each in answer.aborted_transactions or ())
        skipped: set[int] = set()
        for position, header in data_headers(content):
            while waiting and waiting[0][0] <= header.last_offset:
                skipped.add(waiting.pop(0)[1])
            records = read_data_records(content, position, header)
            offset = header.next_offset
            if header.is_control:
                if records and records[0].key == b"\0\0\0\0":
                    skipped.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in skipped):
                found += [each for each in records if each.offset >= start]


RUNS = settings(max_examples=60, stateful_step_count=30, deadline=None)
HUNTS = settings(RUNS, max_examples=2_000, phases=[Phase.generate], report_multiple_bugs=False, database=None)


def test_a_cleaned_log_agrees_with_the_list_of_its_records() -> None:
    run(LogAndTwin, settings=RUNS)


def _never(*_: object) -> bool:
    return False


def _aborted_keys_count(self: KeyPass, header: BatchHeader, batch: bytes) -> bool:
    for record in () if header.is_control else read_data_records(batch, 0, header):
        if record.key is not None:
            self._offsets.put(record.key, record.offset)
    self._offsets.latest_offset = max(self._offsets.latest_offset, header.last_offset)
    return True


def _marker_goes_first(self: CleanedTransactions, header: BatchHeader, records: list[Record]) -> bool:
    self._begin_up_to(header.last_offset)
    self._aborted.pop(header.producer_id, None)
    self._committed.discard(header.producer_id)
    return True


def _tombstones_go_at_once(self: CopyPass, record: Record, header: BatchHeader) -> bool:
    return record.offset >= self.offsets.get(record.key or b"") and record.value is not None


def _tombstones_stay(self: CopyPass, record: Record, header: BatchHeader) -> bool:
    return record.offset >= self.offsets.get(record.key or b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "name", "broken"),
    [
        pytest.param(KeyPass, "add", _aborted_keys_count, id="aborted records hide committed ones"),
        pytest.param(CopyPass, "_stays", _tombstones_go_at_once, id="tombstones go in the first round"),
        pytest.param(CopyPass, "_stays", _tombstones_stay, id="tombstones stay for ever (KAFKA-8522)"),
        pytest.param(CopyPass, "_is_needed", _never, id="a producer's last batch goes"),
        pytest.param(CleanedTransactions, "on_data", _never, id="aborted records stay as committed ones"),
        pytest.param(
            CleanedTransactions, "on_marker", _marker_goes_first, id="transactions end in the pass only"
        ),
        pytest.param(
            compaction,
            "_digest",
            lambda key: key[:1].rjust(16, b"a") if key > b"b" else b"a" * 16,
            id="hashes collide",
        ),
    ],
)
def test_the_twin_finds_a_planted_mistake(
    owner: object, name: str, broken: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises((AssertionError, KeyError, LogError, DecodeError, IndexError)):
        run(LogAndTwin, settings=HUNTS)
