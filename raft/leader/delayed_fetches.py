"""The Fetches that wait at a leader, and which of them are to be answered."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from kquorum.raft.messages import FetchRequest
from kquorum.raft.voters import ReplicaKey

Name = ReplicaKey | int
# The heap of deadlines is cleared of old entries when it has this many more than twice the Fetches that wait.
_SPARE_DEADLINES = 64


@dataclass(slots=True)
class DelayedFetch:
    """A Fetch that waits for records or for a higher high watermark."""

    request_id: int
    request: FetchRequest
    deadline_ms: int
    is_put_off: bool = False


class DelayedFetches:
    """By replica, or by request id where a Fetch is anonymous; the oldest first.

    Thousands may wait, and each request has a turn of the leader: a turn looks at those that came since the last one,
    and at all of them only where the log's end or the high watermark has moved, as most are answered then.
    """

    def __init__(self) -> None:
        self._waiting: dict[Name, DelayedFetch] = {}
        self._due: dict[Name, None] = {}
        self._unseen: list[Name] = []
        self._seen_at = (-1, -1)
        # The earliest first; an entry stays when its Fetch is answered before.
        self._deadlines: list[tuple[int, int, Name]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def values(self) -> Iterable[DelayedFetch]:
        return self._waiting.values()

    @property
    def due(self) -> Collection[Name]:
        """Those that are to be answered, as of the last `find_due`."""
        return self._due.keys()

    def add(self, name: Name, parked: DelayedFetch) -> None:
        """One of this name must not wait already."""
        assert name not in self._waiting, name
        self._waiting[name] = parked
        self._unseen.append(name)
        heappush(self._deadlines, (parked.deadline_ms, parked.request_id, name))
        if len(self._deadlines) > 2 * len(self._waiting) + _SPARE_DEADLINES:
            self._deadlines = [entry for entry in self._deadlines if self._is_waiting(entry)]
            heapify(self._deadlines)

    def pop(self, name: Name) -> DelayedFetch | None:
        """Take it out; None where none of this name waits."""
        self._due.pop(name, None)
        return self._waiting.pop(name, None)

    def take(self, names: Iterable[Name]) -> list[DelayedFetch]:
        """Take out those of these names that wait, the oldest first."""
        taken = [parked for parked in map(self.pop, names) if parked is not None]
        return sorted(taken, key=lambda parked: parked.request_id)

    def find_due(
        self,
        log_end_offset: int,
        high_watermark: int,
        now_ms: int,
        patient: Collection[Name] = (),
        patience_ms: int = 0,
    ) -> None:
        """Those for which there are records, a newer high watermark (KIP-1166), or no more time. Neither offset goes
        back while a leader leads, so that whatever is due remains so. With `patience_ms`, a Fetch of `patient` waits so
        long for records to come with the high watermark."""
        has_moved = self._seen_at != (log_end_offset, high_watermark)
        for name in list(self._waiting) if has_moved else self._unseen:
            parked = self._waiting.get(name)
            if parked is None:
                continue
            if parked.request.fetch_offset < log_end_offset:
                self._due[name] = None
            elif _knows_less(parked.request, high_watermark):
                if patience_ms and name in patient:
                    self._put_off(name, parked, now_ms + patience_ms)
                else:
                    self._due[name] = None
        self._unseen.clear()
        self._seen_at = (log_end_offset, high_watermark)
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            entry = heappop(self._deadlines)
            if self._is_waiting(entry):
                self._due[entry[2]] = None

    def _put_off(self, name: Name, parked: DelayedFetch, until_ms: int) -> None:
        if not parked.is_put_off:
            parked.is_put_off = True
            heappush(self._deadlines, (until_ms, parked.request_id, name))

    def deadlines_ms(self, now_ms: int) -> Iterator[int]:
        """When to answer next: now those that are due, and the first of the others when it runs out of time."""
        if self._due:
            yield now_ms
        while self._deadlines and not self._is_waiting(self._deadlines[0]):
            heappop(self._deadlines)
        if self._deadlines:
            yield self._deadlines[0][0]

    def _is_waiting(self, entry: tuple[int, int, Name]) -> bool:
        parked = self._waiting.get(entry[2])
        return parked is not None and parked.request_id == entry[1]


def _knows_less(request: FetchRequest, high_watermark: int) -> bool:
    return request.high_watermark is not None and request.high_watermark < high_watermark
