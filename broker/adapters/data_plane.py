"""Runs the data plane on the event loop: what the handlers of one turn have moved is settled once after them, and the
timers of waiting requests and of replication are one."""

import asyncio
from collections.abc import Callable

from kquorum.broker.fetch.waits import Waits
from kquorum.broker.groups.coordinator import GroupCoordinator
from kquorum.broker.replica.replica_manager import ReplicaManager


class DataPlaneRunner:
    """Made and used on the loop. `ask_controller` is called when a change of an ISR waits to be sent."""

    def __init__(
        self,
        replicas: ReplicaManager,
        waits: Waits,
        now_ms: Callable[[], int],
        ask_controller: Callable[[], None],
        groups: GroupCoordinator,
    ) -> None:
        self._replicas = replicas
        self._waits = waits
        self._now_ms = now_ms
        self._ask_controller = ask_controller
        self._groups = groups
        self._is_working = False
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
        while woken := replicas.outbox.take_woken():
            self._waits.wake(now_ms, woken)
            self._groups.handle_woken(woken)
        if self._groups.has_work and not self._is_working:
            self._is_working = True
            self._loop.call_soon(self._work_on_groups)
        self._arm(now_ms)

    def _work_on_groups(self) -> None:
        """A part in each turn of the loop, between which other clients are served."""
        self._is_working = False
        if self._is_closed:
            return
        if self._groups.work_some(self._now_ms()):
            self._is_working = True
            self._loop.call_soon(self._work_on_groups)
        else:
            self.settle_soon()

    def _arm(self, now_ms: int) -> None:
        deadlines = (
            self._waits.next_deadline_ms(),
            self._replicas.next_deadline_ms(),
            self._groups.next_deadline_ms(),
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
        self._waits.expire(now_ms)
        self._groups.expire(now_ms)
        due_ms = self._replicas.next_deadline_ms()
        if due_ms is not None and due_ms <= now_ms:
            self._replicas.tick(now_ms)
        self._settle()
