"""A random history of a log, and what must be found of it when it stops in the middle."""

from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from raft.adapters.durable_files import replace_file
from raft.adapters.file_log import FileLog
from raft.adapters.retired_files import RetiredFiles
from raft.adapters.segment import SegmentLimits
from raft.adapters.snapshot_files import snapshot_path
from raft.batches import LogBatch, OffsetAndEpoch, build_batch
from tests.unit.raft_adapters.log_folders import read_all, snapshot_content

LIMITS = SegmentLimits(segment_bytes=6000)


@dataclass(frozen=True)
class State:
    """What the log holds, or may hold, from `start` on; `begun_anew` if it was emptied for a snapshot."""

    start: int
    batches: tuple[LogBatch, ...]
    begun_anew: bool = False

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start


@dataclass
class History:
    """Drives `log` at random. `promised` is what the last flush or cut made durable; `possible` are the states it may
    be in since, the one being made included."""

    folder: Path
    dice: Random
    epoch: int = 1
    promised: State = State(0, ())
    possible: list[State] = field(default_factory=list)
    made: list[State] = field(default_factory=list)

    def open(self) -> None:
        self.log = FileLog(self.folder, LIMITS, 0, retired=RetiredFiles(0))

    @property
    def state(self) -> State:
        return self.possible[-1] if self.possible else self.promised

    def keep(self) -> None:
        self.promised = self.state
        self.possible.clear()

    def make(self, state: State) -> None:
        """The log is about to become this."""
        self.possible.append(state)
        self.made.append(state)

    def step(self) -> None:
        """Do something; `made` are the states on the way."""
        self.made = []
        choose = self.dice.random()
        if choose < 0.5:
            self.append()
        elif choose < 0.75:
            self.log.flush()
            self.keep()
        elif choose < 0.84:
            self.truncate()
        elif choose < 0.90:
            self.advance()
        elif choose < 0.94:
            self.begin_anew()
        else:
            self.log.close()
            self.keep()
            self.open()

    def append(self) -> None:
        self.epoch += self.dice.random() < 0.2
        end, made = self.state.end, []
        for _ in range(self.dice.randint(1, 4)):
            size = self.dice.choice((3, 40, 700, 3000))
            value = bytes(self.dice.choice((b"\x00", b"\x01", b"\xff"))) * size
            made.append(build_batch(end, self.epoch, 1000, [(None, value)] * self.dice.randint(1, 3)))
            end = made[-1].next_offset
        self.make(State(self.state.start, (*self.state.batches, *made)))
        self.log.append(made)

    def truncate(self) -> None:
        state = self.state
        floor = self.log.log_start_offset
        ends = [state.start, *(each.next_offset for each in state.batches)]
        end = self.dice.choice([each for each in ends if each >= floor][-6:])
        kept = tuple(each for each in state.batches if each.next_offset <= end)
        self.make(State(state.start, kept))
        self.epoch += 1
        self.log.truncate_to(end)
        self.possible = [self.possible[-1]]
        # Durable as it stands, but for what was not before: what is left of that may still be lost.
        self.promised = self._common(self.promised, self.possible[-1])

    @staticmethod
    def _common(one: State, other: State) -> State:
        if one.start != other.start:
            return other
        return one if one.end <= other.end else other

    def advance(self) -> None:
        """Only what is committed is in a snapshot, so only what is durable."""
        self.log.flush()
        self.keep()
        later = [each for each in self.promised.batches if each.next_offset > self.log.log_start_offset]
        if later:
            last = self.dice.choice(later)
            self.write_snapshot(OffsetAndEpoch(last.next_offset, last.leader_epoch))
            self.log.advance_log_start(last.next_offset)

    def begin_anew(self) -> None:
        self.epoch += 1
        snapshot = OffsetAndEpoch(self.state.end + self.dice.randint(1, 20), self.epoch)
        self.make(State(snapshot.offset, (), begun_anew=True))
        self.write_snapshot(snapshot)
        self.log.truncate_fully_to(snapshot.offset)
        self.keep()

    def write_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        replace_file(snapshot_path(self.folder, snapshot), snapshot_content(snapshot.epoch))


def check_survivor(survivor: FileLog, promised: State, possible: list[State]) -> None:
    """All that was promised is there, and nothing that never was."""
    found = read_all(survivor)
    assert any(fits(found, survivor, state) for state in (promised, *possible)), (
        f"invented: {[each.base_offset for each in found]}, end {survivor.end_offset}"
    )
    if any(state.begun_anew and survivor.log_start_offset == state.start for state in possible):
        return
    floor = min([promised.end, *(state.end for state in possible if not state.begun_anew)])
    assert survivor.end_offset >= floor, f"lost: it ends at {survivor.end_offset}, but {floor} was promised"


def fits(found: list[LogBatch], survivor: FileLog, state: State) -> bool:
    expected = [each for each in state.batches if each.next_offset > survivor.log_start_offset]
    is_within = state.start <= survivor.log_start_offset <= survivor.end_offset <= state.end
    return is_within and found == expected[: len(found)]
