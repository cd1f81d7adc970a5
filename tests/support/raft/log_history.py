"""A history of all that a node keeps in its log's folder, and what must be found of it when it stops in the middle."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.adapters.quorum_state_file import QuorumStateFile
from kquorum.raft.adapters.snapshot_files import SnapshotStore, list_snapshots, snapshot_path
from kquorum.raft.ready import QuorumState, SnapshotChunk
from kquorum.raft.voters import ReplicaKey
from kquorum.snapshots.adapters.durable_snapshot import write_snapshot
from kquorum.snapshots.naming import SnapshotId
from kquorum.storage.errors import StorageFull
from kquorum.storage.retired_files import RetiredFiles
from kquorum.storage.segment import SegmentLimits
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch, build_batch, parse_batches
from tests.support.fault_file_system import FaultFileSystem
from tests.support.raft.log_folders import read_all, snapshot_content

FOLDER = Path("/disk/__cluster_metadata-0")
LIMITS = SegmentLimits(segment_bytes=6000)
# Everything that the storage does, each more than once and next to whatever may go wrong beside it.
SCRIPT: tuple[str, ...] = (
    *("vote", "append", "append", "flush", "append", "vote", "reopen", "append", "append", "append", "flush"),
    *(
        "truncate",
        "append",
        "flush",
        "take_snapshot",
        "append",
        "append",
        "flush",
        "advance",
        "append",
        "flush",
    ),
    *(
        "truncate",
        "truncate",
        "append",
        "vote",
        "flush",
        "append",
        "receive_snapshot",
        "append",
        "flush",
        "append",
    ),
    *(
        "flush",
        "advance",
        "append",
        "append",
        "flush",
        "repair_damage",
        "append",
        "flush",
        "reopen",
        "append",
    ),
    *(
        "take_snapshot",
        "append",
        "flush",
        "vote",
        "receive_snapshot",
        "vote",
        "append",
        "append",
        "flush",
        "advance",
    ),
    *("append", "repair_damage", "append", "flush", "receive_snapshot", "reopen"),
)


@dataclass(frozen=True)
class State:
    """What the log holds, or may hold, from `start` on; `restarted` if it was emptied for a snapshot."""

    start: int
    batches: tuple[LogBatch, ...]
    restarted: bool = False

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start


@dataclass(frozen=True)
class Expected:
    """What is promised of the log, what else it may hold by now, the election states that may be found, and how far
    records may be missing without having been forgotten."""

    promised: State
    possible: tuple[State, ...]
    elections: tuple[QuorumState | None, ...]
    damaged_until: int = 0


@dataclass
class History:
    """Drives a folder at random. `promised` is what the last flush or cut made durable; `possible` are the states that
    the log may be in since, the one being made included."""

    fs: FaultFileSystem
    random_source: Random
    epoch: int = 1
    floor: int = 0
    damaged_until: int = 0
    promised: State = State(0, ())
    possible: list[State] = field(default_factory=list)
    elections: list[QuorumState | None] = field(default_factory=lambda: [None])

    def __post_init__(self) -> None:
        self.store = SnapshotStore(FOLDER, self.fs)
        self.elections_file = QuorumStateFile(FOLDER, (1, 2, 3), 1, self.fs)

    def open(self) -> None:
        retired = RetiredFiles(0, fs=self.fs)
        self.log = FileLog(FOLDER, LIMITS, 0, on_damage="report", retired=retired, fs=self.fs)

    @property
    def expected(self) -> Expected:
        return Expected(self.promised, tuple(self.possible), tuple(self.elections), self.damaged_until)

    @property
    def state(self) -> State:
        return self.possible[-1] if self.possible else self.promised

    def run(self, script: Sequence[str]) -> None:
        self.open()
        for step in script:
            self.step(step)
        self.log.close()
        self._keep()

    def step(self, name: str) -> None:
        steps: dict[str, Callable[[], None]] = {
            "append": self._append,
            "flush": self._flush,
            "truncate": self._truncate,
            "take_snapshot": self._take_snapshot,
            "advance": self._advance,
            "receive_snapshot": self._receive_snapshot,
            "vote": self._vote,
            "repair_damage": self._repair_damage,
            "reopen": self._reopen,
        }
        steps[name]()

    def _keep(self) -> None:
        self.promised = self.state
        self.possible.clear()

    def _flush(self) -> None:
        self.log.flush()
        self._keep()

    def _reopen(self) -> None:
        self.log.close()
        self._keep()
        self.open()

    def _append(self) -> None:
        self.epoch += self.random_source.random() < 0.2
        end, made = self.state.end, []
        for _ in range(self.random_source.randint(1, 4)):
            size = self.random_source.choice((3, 40, 700, 3000))
            value = bytes(self.random_source.choice((b"\x00", b"\x01", b"\xff"))) * size
            made.append(
                build_batch(end, self.epoch, 1000, [(None, value)] * self.random_source.randint(1, 3))
            )
            end = made[-1].next_offset
        self.possible.append(State(self.state.start, (*self.state.batches, *made)))
        try:
            self.log.append(made)
        except StorageFull:
            self.possible.pop()
            raise

    def _truncate(self) -> None:
        state = self.state
        ends = [state.start, *(each.next_offset for each in state.batches)]
        end = self.random_source.choice([each for each in ends if each >= self.floor][-6:])
        kept = tuple(each for each in state.batches if each.next_offset <= end)
        self.possible.append(State(state.start, kept))
        self.epoch += 1
        self.log.truncate_to(end)
        self.possible = [self.possible[-1]]
        # Durable as it stands, but for what was not before: what is left of that may still be lost.
        if self.promised.start != state.start or self.promised.end > end:
            self.promised = self.possible[-1]

    def _vote(self) -> None:
        self.epoch += 1
        state = QuorumState(leader_epoch=self.epoch, voted=ReplicaKey(self.random_source.randint(1, 3)))
        self.elections.append(state)
        self.elections_file.write(state)
        self.elections = [state]

    def _snapshot_of_own(self) -> OffsetAndEpoch | None:
        """Only what is committed is in a snapshot, so only what is durable; and the newest one is ahead of the rest."""
        self._flush()
        later = [
            each
            for each in self.promised.batches
            if each.next_offset > max(self.floor, self.log.log_start_offset)
        ]
        if not later:
            return None
        last = self.random_source.choice(later)
        self.floor = last.next_offset
        snapshot = OffsetAndEpoch(last.next_offset, last.leader_epoch)
        pieces = [each.data for each in parse_batches(snapshot_content(snapshot.epoch))]
        write_snapshot(
            snapshot_path(FOLDER, snapshot), SnapshotId(snapshot.offset, snapshot.epoch), pieces, fs=self.fs
        )
        return snapshot

    def _take_snapshot(self) -> None:
        self._snapshot_of_own()

    def _advance(self) -> None:
        snapshot = self._snapshot_of_own()
        if snapshot is not None:
            self.log.advance_log_start(snapshot.offset)
            self._flush()

    def _receive_snapshot(self) -> None:
        self.epoch += 1
        snapshot = OffsetAndEpoch(self.state.end + self.random_source.randint(1, 20), self.epoch)
        content, size = snapshot_content(snapshot.epoch), 50
        for position in range(0, len(content), size):
            piece = content[position : position + size]
            self.store.write_chunk(
                SnapshotChunk(snapshot, position, piece, position + size >= len(content), len(content))
            )
        self.possible.append(State(snapshot.offset, (), restarted=True))
        self.store.finish(snapshot)
        self.log.truncate_fully_to(snapshot.offset)
        self.floor = snapshot.offset
        self._keep()

    def _repair_damage(self) -> None:
        """A bit turns in what was acknowledged; the node fetches again from there on what it had."""
        self.log.close()
        self._keep()
        later = [each for each in self.promised.batches if each.base_offset >= self.log.log_start_offset]
        if not later:
            self.open()
            return
        self.damaged_until = self.promised.end
        if self.floor >= self.promised.end:
            # A snapshot stands for all of it: the next start need not look any further.
            self.possible.append(State(self.floor, (), restarted=True))
        damaged = self.random_source.choice(later)
        if damaged.next_offset <= self.floor:
            # Or the log goes on behind a snapshot, which is then the state while that is under way.
            self.possible.extend(
                State(
                    each.offset,
                    tuple(kept for kept in self.promised.batches if kept.base_offset >= each.offset),
                )
                for each in list_snapshots(FOLDER, self.fs)
                if damaged.next_offset <= each.offset < self.promised.end
            )
        self._flip_in(damaged)
        self.open()
        if self.possible and self.log.log_start_offset == self.floor == self.log.end_offset:
            self._keep()
            self.damaged_until = 0
            return
        self.possible.clear()
        if self.log.damage is None:
            self._begin_behind_damage(damaged.base_offset)
            return
        start = self.log.damage.start_offset
        self.log.set_damage_aside()
        self.log.append([each for each in self.promised.batches if each.base_offset >= start])
        self.log.flush()
        self.log.mark_repaired()
        self.damaged_until = 0

    def _begin_behind_damage(self, damaged_offset: int) -> None:
        """A snapshot stands for the damage: the log begins there, with all that was behind."""
        start = self.log.log_start_offset
        assert start > damaged_offset, "the damage was not noticed"
        kept = tuple(each for each in self.promised.batches if each.base_offset >= start)
        self.promised = State(start, kept)
        assert self.log.end_offset == self.promised.end
        self.damaged_until = 0

    def _flip_in(self, batch: LogBatch) -> None:
        for name in [each for each in self.fs.folders[FOLDER].entries if each.endswith(".log")]:
            position = self.fs.inode(FOLDER / name).data.find(batch.data)
            if position >= 0:
                self.fs.flip(
                    FOLDER / name,
                    position + self.random_source.randrange(len(batch.data)),
                    1 << self.random_source.randrange(8),
                )
                return
        raise AssertionError("what was acknowledged is in no segment")


def check_survivor(survivor: FileLog, expected: Expected, *, is_rotten: bool = False) -> None:
    """All that was promised is there, and nothing that never was. Of a folder in which a snapshot has turned bad, all
    that is not there is called damage."""
    found = read_all(survivor)
    if is_rotten and survivor.damage is not None and not found:
        assert survivor.damage.end_offset >= _floor(expected), f"lost: {survivor.damage}"
        return
    assert any(_fits(found, survivor, state) for state in (expected.promised, *expected.possible)), (
        f"invented: {[each.base_offset for each in found]}, end {survivor.end_offset}"
    )
    missing_until = 0
    if survivor.damage is not None:
        missing_until = survivor.damage.end_offset
        assert expected.damaged_until or is_rotten, f"no damage was done, but {survivor.damage}"
    if any(state.restarted and survivor.log_start_offset == state.start for state in expected.possible):
        return
    floor = _floor(expected)
    there = max(survivor.end_offset, missing_until)
    assert there >= floor, f"lost: it ends at {survivor.end_offset}, but {floor} was promised"


def _floor(expected: Expected) -> int:
    """All below was promised and not taken back."""
    return min([expected.promised.end, *(state.end for state in expected.possible if not state.restarted)])


def _fits(found: list[LogBatch], survivor: FileLog, state: State) -> bool:
    expected = [each for each in state.batches if each.next_offset > survivor.log_start_offset]
    is_within = state.start <= survivor.log_start_offset <= survivor.end_offset <= state.end
    return is_within and found == expected[: len(found)]
