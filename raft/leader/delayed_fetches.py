"""The Fetches that wait at a leader, and which of them are to be answered."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from kquorum.raft.messages import FetchRequest
from kquorum.raft.voters import NO_VOTERS, ReplicaKey, VoterSet

Name = ReplicaKey | int
# The heap of deadlines is cleared of old entries when it has this many more than twice the Fetches that wait.
_SPARE_DEADLINES = 64


@dataclass(slots=True)
class DelayedFetch:
    """A Fetch that waits for records or for a higher high watermark."""

    name: Name
    request_id: int
    request: FetchRequest
    deadline_ms: int
    is_waiting: bool = True
    is_put_off: bool = False


class DelayedFetches:
    """By replica, or by request id where a Fetch is anonymous; the oldest first.

    Thousands may wait, and each request has a turn of the leader: a turn looks at those that came since the last one,
    and at all of them only where the log's end or the high watermark has moved, as most are answered then.
    """

    def __init__(self) -> None:
        self._waiting: dict[Name, DelayedFetch] = {}
        # By request id: to hash a replica's name takes several times as long.
        self._due: dict[int, DelayedFetch] = {}
        self._unseen: list[DelayedFetch] = []
        self._seen_at = (-1, -1)
        # The earliest first; an entry stays when its Fetch is answered before. Request ids are unique.
        self._deadlines: list[tuple[int, int, DelayedFetch]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def __bool__(self) -> bool:
        """mypyc does not see that `__len__` says so."""
        return len(self) > 0

    def values(self) -> Iterable[DelayedFetch]:
        return self._waiting.values()

    @property
    def due(self) -> Collection[DelayedFetch]:
        """Those that are to be answered, as of the last `find_due`."""
        return self._due.values()

    def add(self, delayed: DelayedFetch) -> None:
        """One of this name must not wait already."""
        assert delayed.name not in self._waiting, delayed.name
        self._waiting[delayed.name] = delayed
        self._unseen.append(delayed)
        heappush(self._deadlines, (delayed.deadline_ms, delayed.request_id, delayed))
        if len(self._deadlines) > 2 * len(self._waiting) + _SPARE_DEADLINES:
            self._deadlines = [entry for entry in self._deadlines if entry[2].is_waiting]
            heapify(self._deadlines)

    def pop(self, name: Name) -> DelayedFetch | None:
        """Take it out; None where none of this name waits."""
        delayed = self._waiting.pop(name, None)
        if delayed is not None:
            delayed.is_waiting = False
            self._due.pop(delayed.request_id, None)
        return delayed

    def take(self, fetches: Iterable[DelayedFetch]) -> list[DelayedFetch]:
        """Take out these, which all wait; the oldest is the first of the answer."""
        taken = sorted(fetches, key=lambda delayed: delayed.request_id)
        for delayed in taken:
            self.pop(delayed.name)
        return taken

    def find_due(
        self,
        log_end_offset: int,
        high_watermark: int,
        now_ms: int,
        voters: VoterSet = NO_VOTERS,
        patience_ms: int = 0,
    ) -> None:
        """Those for which there are records, a newer high watermark (KIP-1166), or no more time. Neither offset goes
        back while a leader leads, so that whatever is due remains so. With `patience_ms`, a voter's Fetch waits so
        long for records to come with the high watermark."""
        has_moved = self._seen_at != (log_end_offset, high_watermark)
        for delayed in self._waiting.values() if has_moved else self._unseen:
            if not delayed.is_waiting:
                continue
            if delayed.request.fetch_offset < log_end_offset:
                self._due[delayed.request_id] = delayed
            elif _knows_less(delayed.request, high_watermark):
                if patience_ms and voters.contains(delayed.request.replica):
                    self._put_off(delayed, now_ms + patience_ms)
                else:
                    self._due[delayed.request_id] = delayed
        self._unseen.clear()
        self._seen_at = (log_end_offset, high_watermark)
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            delayed = heappop(self._deadlines)[2]
            if delayed.is_waiting:
                self._due[delayed.request_id] = delayed

    def _put_off(self, delayed: DelayedFetch, until_ms: int) -> None:
        # Two entries of one Fetch must differ in their deadlines, for Fetches have no order.
        if not delayed.is_put_off and until_ms < delayed.deadline_ms:
            delayed.is_put_off = True
            heappush(self._deadlines, (until_ms, delayed.request_id, delayed))

    def deadlines_ms(self, now_ms: int) -> Iterator[int]:
        """When to answer next: now those that are due, and the first of the others when it runs out of time."""
        if self._due:
            yield now_ms
        while self._deadlines and not self._deadlines[0][2].is_waiting:
            heappop(self._deadlines)
        if self._deadlines:
            yield self._deadlines[0][0]


def _knows_less(request: FetchRequest, high_watermark: int) -> bool:
    return request.high_watermark is not None and request.high_watermark < high_watermark
