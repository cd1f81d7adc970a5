"""A state machine that takes note of what it is given: the fake for `raft.ports.StateMachine`."""

from collections.abc import Callable, Sequence

from kquorum.wire.log_batch import LogBatch


class RecordingStateMachine:
    """Satisfies raft.ports.StateMachine. `heard` is the order of all calls: ("commit", base offset, values) for each
    batch, ("snapshot", state), ("leader", leader id, epoch) and ("time",). With `slices`, a batch that is handed over
    in slices takes that many calls."""

    def __init__(self, note: Callable[[tuple[object, ...]], None] = lambda _: None, slices: int = 1) -> None:
        """`note` is given each entry as well, of one commit the base offsets only: ("commit", offset, offset, ...)."""
        self.heard: list[tuple[object, ...]] = []
        self.is_in_transaction = False
        self.deadline_ms: int | None = None
        self.slices: list[tuple[int, int]] = []
        self._slices_wanted = slices
        self._note = note

    @property
    def values(self) -> list[bytes | None]:
        """The values of all records that were committed, control records left out."""
        found: list[bytes | None] = []
        for entry in self.heard:
            if entry[0] == "commit" and isinstance(entry[2], list):
                found.extend(entry[2])
        return found

    @property
    def offsets(self) -> list[object]:
        """The base offset of each batch that was committed."""
        return [entry[1] for entry in self.heard if entry[0] == "commit"]

    @property
    def leaders(self) -> list[tuple[object, ...]]:
        """Each leader that was reported, with its epoch."""
        return [entry[1:] for entry in self.heard if entry[0] == "leader"]

    def _hear(self, *entry: object) -> None:
        self.heard.append(entry)
        self._note(entry)

    def handle_commit(self, now_ms: int, batches: Sequence[LogBatch]) -> None:
        for each in batches:
            values = [] if each.is_control else [record.value for record in each.records]
            self.heard.append(("commit", each.base_offset, values))
        self._note(("commit", *[each.base_offset for each in batches]))

    def handle_commit_slice(self, now_ms: int, batches: Sequence[LogBatch]) -> bool:
        self.slices.append((now_ms, batches[0].base_offset))
        if self._slices_wanted > 1:
            return len(self.slices) % self._slices_wanted == 0
        self.handle_commit(now_ms, batches)
        return True

    def handle_snapshot(self, now_ms: int, state: object) -> None:
        self.slices.clear()
        self._hear("snapshot", state)

    def handle_leader_change(self, now_ms: int, leader_id: int, leader_epoch: int) -> None:
        self._hear("leader", leader_id, leader_epoch)

    def handle_time(self, now_ms: int) -> None:
        self._hear("time")
        self.deadline_ms = None

    def next_deadline_ms(self) -> int | None:
        return self.deadline_ms
