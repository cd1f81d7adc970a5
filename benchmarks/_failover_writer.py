"""The client of `elections`: a leader that says nothing more does not keep it from asking the others.

A Writer waits for each answer. That would measure its own patience where a leader is paused or cut off, since such a
leader leaves requests open. So here each controller has a thread of its own: the one whose controller took the last
write goes on, and the others ask theirs while that one has been silent for longer than a write takes.
"""

import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from functools import partial

from benchmarks._quorum_writer import (
    PACE_S,
    SEARCH_PAUSE_S,
    Acknowledged,
    AcknowledgedWriteLostError,
    Writer,
)

# Several writes take so long on a busy machine, and no election is as quick.
SILENCE_S = 0.05


class SearchingWriter(Writer):
    """As Writer, but requests at different controllers may be open at the same time."""

    def __init__(self, addresses: Mapping[int, tuple[str, int]], cluster_id: str) -> None:
        super().__init__(addresses, cluster_id)
        self._taker = -1
        self._is_taker_lost = False
        self._highest_ids: list[int] = []
        self._given_out: set[int] = set()

    def last_before(self, moment_s: float) -> Acknowledged | None:
        """The last write, by whomever, that had been acknowledged before."""
        with self._news:
            place = bisect_left(self._acknowledged, moment_s, key=_acknowledged_at)
            return self._acknowledged[place - 1] if place else None

    def count_by(self, node_id: int, since_s: float) -> int:
        """How many writes this controller acknowledged since then."""
        with self._news:
            return sum(write.node_id == node_id for write in self._since(since_s))

    def _run(self) -> None:
        self._guard(self._write_first)
        threads = [
            threading.Thread(target=self._guard, args=(partial(self._write_at, node_id),), daemon=True)
            for node_id in self._order
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the thread's boundary: it is raised where it is waited for
            with self._news:
                self._failure = error
                self._news.notify_all()
            self._stop.set()

    def _write_first(self) -> None:
        """All threads write with the one registration that this makes."""
        while not self._stop.is_set() and not self._acknowledged:
            self._write_somewhere()
            self._stop.wait(SEARCH_PAUSE_S)

    def _write_at(self, node_id: int) -> None:
        while not self._stop.is_set():
            took = (node_id == self._taker or self._is_searching()) and self._write(node_id)
            if not took and node_id == self._taker:
                self._is_taker_lost = True
            self._stop.wait(PACE_S if took else SEARCH_PAUSE_S)

    def _is_searching(self) -> bool:
        return self._is_taker_lost or time.perf_counter() - self._acknowledged[-1].at_s > SILENCE_S

    def _note(self, write: Acknowledged) -> None:
        """A block is new if no client ever had it, and if it is above all that were acknowledged before it was asked
        for. Of two that were asked for at the same time either may be the higher."""
        with self._news:
            before = bisect_right(self._acknowledged, write.sent_at_s, key=_acknowledged_at)
            known = self._highest_ids[before - 1] if before else -1
            if write.first_producer_id in self._given_out or write.first_producer_id <= known:
                raise AcknowledgedWriteLostError(
                    f"node {write.node_id} gave out the producer ids from {write.first_producer_id}, but those up to "
                    f"{max(self._highest_ids)} had been acknowledged before"
                )
            # Threads come here in an order of their own; in the list, times only grow.
            write = Acknowledged(write.sent_at_s, time.perf_counter(), write.node_id, write.first_producer_id)
            self._given_out.add(write.first_producer_id)
            self._highest_ids.append(max([*self._highest_ids[-1:], write.first_producer_id]))
            self._acknowledged.append(write)
            self._taker, self._is_taker_lost = write.node_id, False
            self._news.notify_all()


def _acknowledged_at(write: Acknowledged) -> float:
    return write.at_s
