"""Requests that wait for partitions: producers for their followers, readers for records (Kafka's purgatories).

Sans-IO. A wait is looked at when an event wakes one of its partitions, and ends then or at its deadline; it answers
exactly once. An event costs only the waits of its partition that it concerns: an append wakes followers that wait for
the end of the log, and no consumer, which waits for the high watermark.

Thousands of waits may be woken, or have their deadline, at one time, and each reads and answers: so `work` ends some of
them, and the node goes on before the next.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import ClassVar, Final

from kquorum.broker.replica.partition import TopicPartition, Wake

# Kafka has no such bounds. A waiting request costs some KB, a partition of a Fetch some 300 bytes.
MOST_WAITS: Final = 10_000
MOST_OF_A_CLIENT: Final = 16
MOST_PARTITIONS: Final = 500_000
# Waits that ended leave their entry in the heap of deadlines; so many of them are too many.
_MOST_ENDED: Final = 1_000
# What `work` takes of a turn of the loop, and one answer more.
WORK_MS: Final = 8
# Woken partitions of one wait that are looked at together.
_IN_A_LOOK: Final = 100


class Wait(ABC):
    """One request that waits. `look` and `expire` answer it, never from within `Waits.add`."""

    # Kafka's name for the operation, by which what waits is counted.
    operation: ClassVar[str]

    def __init__(self, partitions: Collection[TopicPartition], wakes_on: Wake, deadline_ms: int) -> None:
        self.partitions = partitions
        self.wakes_on = wakes_on
        self.deadline_ms = deadline_ms
        # Whose it is: the number of a connection.
        self.owner = -1

    def begin(self, now_ms: Callable[[], int], watch: Callable[[TopicPartition], None]) -> Iterator[None]:  # noqa: ARG002 - of those that override it
        """Have each partition watched, in steps if there are many. What happens to one from then on wakes the wait."""
        for each in self.partitions:
            watch(each)
        return iter(())

    @abstractmethod
    def look(self, now_ms: int, woken: Mapping[TopicPartition, Wake]) -> bool:
        """Answer if what was waited for is there; whether that was so. `woken` are those of its own partitions that
        something happened to."""

    @abstractmethod
    def expire(self, now_ms: int) -> None:
        """Answer with what is there at the deadline."""

    @abstractmethod
    def give_up(self) -> None:
        """The broker stops: the client's connection ends."""


Concerned = dict["Wait", dict[TopicPartition, Wake]]


class Waits:
    def __init__(self) -> None:
        self.of_sessions: Callable[[Mapping[TopicPartition, Wake]], Concerned] = lambda _woken: {}
        """Which waits an event concerns besides those that name its partition: the fetch sessions know them."""
        self._of_partition: dict[TopicPartition, dict[Wait, None]] = {}
        self._open: set[Wait] = set()
        self._deadlines: list[tuple[int, int, Wait]] = []
        self._added = 0
        self._is_closed = False
        # What happened and was not looked at yet: by partition, and by wait.
        self._woken: dict[TopicPartition, Wake] = {}
        self._concerned: Concerned = {}
        self._of_owner: dict[int, int] = {}
        self._partitions = 0
        self.waiting: Counter[str] = Counter()
        self.expired: Counter[str] = Counter()
        """By operation."""

    def __len__(self) -> int:
        return len(self._open)

    def have_room(self, owner: int, partitions: int) -> bool:
        """For one more of that owner, over so many partitions."""
        return (
            len(self._open) < MOST_WAITS
            and self._partitions + partitions <= MOST_PARTITIONS
            and self._of_owner.get(owner, 0) < MOST_OF_A_CLIENT
        )

    def add(self, wait: Wait, now_ms: Callable[[], int]) -> Iterator[None]:
        """After its first look, which found that it has to wait. All its partitions are watched after the last step."""
        if self._is_closed:
            wait.give_up()
            return
        self._open.add(wait)
        self.waiting[wait.operation] += 1
        self._partitions += len(wait.partitions)
        self._of_owner[wait.owner] = self._of_owner.get(wait.owner, 0) + 1
        self._added += 1
        heapq.heappush(self._deadlines, (wait.deadline_ms, self._added, wait))
        for _ in wait.begin(now_ms, partial(self._watch, wait)):
            yield
            if wait not in self._open:
                return

    def _watch(self, wait: Wait, topic_partition: TopicPartition) -> None:
        self._of_partition.setdefault(topic_partition, {})[wait] = None

    def remove(self, wait: Wait) -> None:
        """It was answered; no effect on one that has ended."""
        if wait not in self._open:
            return
        self._open.remove(wait)
        self.waiting[wait.operation] -= 1
        self._partitions -= len(wait.partitions)
        left = self._of_owner.pop(wait.owner) - 1
        if left:
            self._of_owner[wait.owner] = left
        for each in wait.partitions:
            waiting = self._of_partition.get(each)
            if waiting is not None:
                waiting.pop(wait, None)
                if not waiting:
                    del self._of_partition[each]
        if len(self._deadlines) > 2 * len(self._open) + _MOST_ENDED:
            self._deadlines = [entry for entry in self._deadlines if entry[2] in self._open]
            heapq.heapify(self._deadlines)

    def abandon(self, wait: Wait) -> None:
        """Its client is gone: nothing is to hold the request any longer."""
        if wait in self._open:
            self.remove(wait)
            wait.give_up()

    def end(self, wait: Wait, now_ms: int) -> None:
        """Answer with what is there, before the deadline."""
        if wait in self._open:
            self.remove(wait)
            wait.expire(now_ms)

    def wake(self, woken: Mapping[TopicPartition, Wake]) -> None:
        """Something happened to these partitions: `work` looks at their waits."""
        for wait, reasons in self.of_sessions(woken).items():
            known = self._concerned.setdefault(wait, {})
            for topic_partition, why in reasons.items():
                known[topic_partition] = known.get(topic_partition, why) | why
        for topic_partition, why in woken.items():
            if topic_partition in self._of_partition:
                self._woken[topic_partition] = self._woken.get(topic_partition, why) | why

    def work(self, now_ms: Callable[[], int]) -> bool:
        """Look at waits that were woken, each once however many of its partitions were, and end those whose deadline
        has come, for `WORK_MS`. Whether there are more."""
        until_ms = now_ms() + WORK_MS
        while self._work_on(now_ms()):
            if now_ms() >= until_ms:
                return True
        return False

    def _work_on(self, now_ms: int) -> bool:
        """One step; whether there was anything to do."""
        if self._woken:
            self._gather(*self._woken.popitem())
        elif self._concerned:
            self._look_at_one(now_ms)
        else:
            return self._expire_one(now_ms)
        return True

    def _gather(self, topic_partition: TopicPartition, why: Wake) -> None:
        for wait in self._of_partition.get(topic_partition, ()):
            if wait.wakes_on & why:
                reasons = self._concerned.setdefault(wait, {})
                reasons[topic_partition] = reasons.get(topic_partition, why) | why

    def _look_at_one(self, now_ms: int) -> None:
        wait = next(iter(self._concerned))
        reasons = self._concerned.pop(wait)
        # One that a look before has ended is not looked at again.
        if wait not in self._open:
            return
        if len(reasons) > _IN_A_LOOK:
            some = dict(islice(reasons.items(), _IN_A_LOOK))
            self._concerned[wait] = {each: why for each, why in reasons.items() if each not in some}
            reasons = some
        if wait.look(now_ms, reasons):
            self.remove(wait)

    def _expire_one(self, now_ms: int) -> bool:
        deadlines = self._deadlines
        if not deadlines or (deadlines[0][0] > now_ms and deadlines[0][2] in self._open):
            return False
        wait = heapq.heappop(deadlines)[2]
        if wait in self._open:
            self.remove(wait)
            self.expired[wait.operation] += 1
            wait.expire(now_ms)
        return True

    def next_deadline_ms(self) -> int | None:
        while self._deadlines and self._deadlines[0][2] not in self._open:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def close(self) -> None:
        """Give up all waits, and those that come later."""
        self._is_closed = True
        self._woken.clear()
        self._concerned.clear()
        for wait in tuple(self._open):
            self.remove(wait)
            wait.give_up()
