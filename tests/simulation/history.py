"""What clients saw, and whether one log that everybody shares could have shown it (linearizability).

The object is an append-only log. An append that ended well says that its records stand at known offsets; a
linearizable read answers an offset: everything below it is there. The log's own offsets are the order in which
things must have happened, so all there is to check is real time: what begins after something has ended comes
after it in the log. For that one number is enough, the highest offset that was answered so far (`visible`): an
operation that begins notes it, and must end at or above it.

An append that failed must not be in the log; one whose outcome is unknown may be, and then obeys the same rule,
but no client may rely on it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kquorum.wire.log_batch import LogBatch


class HistoryBroken(AssertionError):
    """Clients saw what no single log could have shown them."""


@dataclass(slots=True, eq=False)
class Append:
    """A group of records, appended as one; `first_offset` is where the leader that took it put it."""

    values: tuple[bytes, ...]
    floor: int
    begun_ms: int
    leader_epoch: int = -1
    first_offset: int = -1


@dataclass(slots=True, eq=False)
class Read:
    floor: int
    begun_ms: int


@dataclass
class History:
    visible: int = 0
    appends: list[Append] = field(default_factory=list)
    failed: set[bytes] = field(default_factory=set)
    acknowledged: dict[int, bytes] = field(default_factory=dict)
    acknowledged_appends: int = 0
    linearizable_reads: int = 0
    refused_reads: int = 0
    committed_reads: int = 0
    local_reads: int = 0
    last_acknowledged_begun_ms: int = -1
    last_read_begun_ms: int = -1

    # Appends

    def begin_append(self, now_ms: int, values: tuple[bytes, ...]) -> Append:
        return Append(values, self.visible, now_ms)

    def refused(self, append: Append) -> None:
        """The client was told that nothing was appended."""
        self.failed.update(append.values)

    def taken(self, append: Append) -> None:
        """A leader took it; until it is acknowledged its outcome is unknown."""
        self.appends.append(append)

    def acknowledge(self, append: Append) -> None:
        self._check_floor(append, append.first_offset)
        for position, value in enumerate(append.values):
            self.acknowledged[append.first_offset + position] = value
        self.visible = max(self.visible, append.first_offset + len(append.values))
        self.acknowledged_appends += 1
        self.last_acknowledged_begun_ms = max(self.last_acknowledged_begun_ms, append.begun_ms)

    def _check_floor(self, append: Append, offset: int) -> None:
        if offset < append.floor:
            raise HistoryBroken(
                f"an append that began when all below {append.floor} was known to be there ended at {offset}"
            )

    # Reads

    def begin_read(self, now_ms: int) -> Read:
        return Read(self.visible, now_ms)

    def end_read(self, read: Read, confirmed_offset: int, applied_offset: int) -> None:
        """The leader confirmed `confirmed_offset`, and the client saw the log as applied up to `applied_offset`."""
        if confirmed_offset < read.floor:
            raise HistoryBroken(
                f"a linearizable read answered {confirmed_offset}, though {read.floor} was known before it began"
            )
        self.visible = max(self.visible, applied_offset)
        self.linearizable_reads += 1
        self.last_read_begun_ms = max(self.last_read_begun_ms, read.begun_ms)

    # At the end

    def check_against(self, committed: Iterable[LogBatch]) -> None:
        """Nothing acknowledged is missing, nothing refused is there, and every value is there at most once."""
        offsets: dict[bytes, int] = {}
        for batch in committed:
            if batch.is_control:
                continue
            for record in batch.records:
                value = record.value or b""
                if value in offsets:
                    raise HistoryBroken(f"{value!r} stands at {offsets[value]} and again at {record.offset}")
                offsets[value] = record.offset
        for offset, value in self.acknowledged.items():
            if offsets.get(value) != offset:
                raise HistoryBroken(f"the acknowledged record at offset {offset} is lost")
        if ghosts := self.failed & offsets.keys():
            raise HistoryBroken(f"{min(ghosts)!r} was refused, yet it stands at {offsets[min(ghosts)]}")
        for append in self.appends:
            self._check_whole(append, [offsets.get(value) for value in append.values])

    def _check_whole(self, append: Append, offsets: list[int | None]) -> None:
        """A group is there in one piece or not at all, where the leader said, and no earlier than real time allows."""
        if offsets[0] is None and not any(offsets):
            return
        first = append.first_offset
        if offsets != [first + position for position in range(len(offsets))]:
            raise HistoryBroken(f"the group meant for offset {first} stands at {offsets}")
        self._check_floor(append, first)
