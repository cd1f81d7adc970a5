"""Runs the data plane on the event loop: what the handlers of one turn have moved is settled once after them, and the
timers of waiting requests and of replication are one."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from kquorum.broker.fetch.waits import Waits
from kquorum.broker.replica.log_moves import LogMoves
from kquorum.broker.replica.partition import TopicPartition, Wake
from kquorum.broker.replica.replica_manager import ReplicaManager


class Coordinator(Protocol):
    """Of groups, or of transactions: the shards of one internal topic that this broker leads."""

    @property
    def is_loading(self) -> bool:
        """Whether it has work that takes long: to load, or to resolve regular expressions."""
        ...

    def handle_woken(self, now_ms: int, woken: Mapping[TopicPartition, Wake]) -> None: ...

    def load_some(self, now_ms: int) -> bool:
        """A part of such work; whether there is more."""
        ...

    def expire(self, now_ms: int) -> None: ...

    def next_deadline_ms(self) -> int | None: ...


class DataPlaneRunner:
    """Made and used on the loop. `ask_controller` is called when a change of an ISR waits to be sent, `take_turn` after
    each turn: if it moved something, there is another one; `on_tick` after replicas may have been opened."""

    def __init__(
        self,
        replicas: ReplicaManager,
        waits: Waits,
        now_ms: Callable[[], int],
        ask_controller: Callable[[], None],
        coordinators: Sequence[Coordinator],
        moves: LogMoves,
        take_turn: Callable[[int], bool] = lambda _now_ms: False,
        on_tick: Callable[[], object] = lambda: None,
    ) -> None:
        self._replicas = replicas
        self._waits = waits
        self._now_ms = now_ms
        self._ask_controller = ask_controller
        self._coordinators = coordinators
        self._take_coordinators_turn = take_turn
        self._on_tick = on_tick
        self._moves = moves
        self._is_loading = False
        self._loop = asyncio.get_running_loop()
        self._is_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._armed_ms = 0
        self._is_closed = False

    def start(self) -> None:
        self._replicas.tick(self._now_ms())
        self.settle_soon()

    def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    def settle_soon(self) -> None:
        """After the handlers of this turn of the loop: so a thousand appends wake a waiting follower once."""
        if not self._is_due and not self._is_closed:
            self._is_due = True
            self._loop.call_soon(self._settle)

    def _settle(self) -> None:
        self._is_due = False
        if self._is_closed:
            return
        replicas, now_ms = self._replicas, self._now_ms()
        replicas.submit_isr_changes()
        if not replicas.alter_partitions.is_idle:
            self._ask_controller()
        is_behind = self._waits.work(self._now_ms)
        while woken := replicas.outbox.take_woken():
            self._waits.wake(woken)
            for each in self._coordinators:
                each.handle_woken(now_ms, woken)
            if not is_behind:
                is_behind = self._waits.work(self._now_ms)
        if is_behind:
            self.settle_soon()
        if self._take_coordinators_turn(now_ms):
            self.settle_soon()
        if not self._is_loading and any(each.is_loading for each in self._coordinators):
            self._is_loading = True
            self._loop.call_soon(self._load_some)
        self._arm(now_ms)

    def _load_some(self) -> None:
        """A part in each turn of the loop, between which other clients are served."""
        self._is_loading = False
        if self._is_closed:
            return
        now_ms = self._now_ms()
        loading = [each for each in self._coordinators if each.is_loading]
        if loading and (loading[0].load_some(now_ms) or loading[1:]):
            self._is_loading = True
            self._loop.call_soon(self._load_some)
        else:
            self.settle_soon()

    def _arm(self, now_ms: int) -> None:
        deadlines = (
            self._waits.next_deadline_ms(),
            self._replicas.next_deadline_ms(),
            self._moves.next_deadline_ms(),
            *(each.next_deadline_ms() for each in self._coordinators),
        )
        due_ms = min((each for each in deadlines if each is not None), default=None)
        if due_ms is None or (self._timer is not None and self._armed_ms <= due_ms):
            # A timer that comes too early arms itself again: most waits end before their deadline.
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed_ms = due_ms
        self._timer = self._loop.call_later(max(due_ms - now_ms, 0) / 1000, self._take_turn)

    def _take_turn(self) -> None:
        self._timer = None
        now_ms = self._now_ms()
        for each in self._coordinators:
            each.expire(now_ms)
        due_ms = self._replicas.next_deadline_ms()
        if due_ms is not None and due_ms <= now_ms:
            self._replicas.tick(now_ms)
            self._on_tick()
        due_ms = self._moves.next_deadline_ms()
        if due_ms is not None and due_ms <= now_ms:
            # One piece; the next one in another turn, with room for clients in between.
            self._moves.step(now_ms)
        self._settle()
