"""The loop around a replica: inputs in, and each `Ready` carried out in its documented order.

All inputs of one turn of the event loop are stepped as they come; one `take_ready` follows at the turn's end
(`call_soon`), so they share a batch, a flush and the answers to followers: group commit without a timer.

What can stall on a disk runs in one thread of its own. A flush never holds anything up but what it
acknowledges. Truncations and the election state must be durable before anything of their `Ready` leaves: while
they are written, inputs are stepped but no further `Ready` is taken.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

from raft.adapters.clock import MonotonicWallClock
from raft.adapters.committed_feed import CommittedFeed, CommittedLog
from raft.inputs import Input, LogFlushed, ShutdownRequested, TimeAdvanced
from raft.messages import FetchResponse, LogSlice
from raft.node import RaftNode
from raft.ports import LogStore, QuorumStateStore, StateMachine
from raft.ready import OutboundRequest, OutboundResponse, Ready, RoleChanged


class Transport(Protocol):
    """Carries requests to peers; every outcome comes back as an input."""

    def send(self, outbound: OutboundRequest) -> None: ...

    def close(self) -> None: ...


class DriverLog(LogStore, CommittedLog, Protocol):
    """A log that can be followed and fed from."""


class RaftDriver:
    """Owns one replica and its stores; every method belongs to the loop's thread.

    `fatal` is called once, with what went wrong; after that the driver does nothing more. `responder` takes the
    answers to requests that came in as `RequestReceived`, their records as bytes.
    """

    def __init__(
        self,
        *,
        node: RaftNode,
        log: DriverLog,
        state_store: QuorumStateStore,
        state_machine: StateMachine,
        clock: MonotonicWallClock,
        fatal: Callable[[BaseException], None],
    ) -> None:
        self.node = node
        self.log = log
        self._state_store = state_store
        self._state_machine = state_machine
        self._clock = clock
        self._fatal = fatal
        self._loop = asyncio.get_running_loop()
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="raft-disk")
        self._feed = CommittedFeed(log, state_machine)
        self._transport: Transport | None = None
        self._responder: Callable[[OutboundResponse], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_turn_due = False
        self._is_writing = False
        self._is_flushing = False
        self._is_dirty = False
        self._truncations = 0
        self._failure: BaseException | None = None
        self.shut_down = self._loop.create_future()
        self.role_observers: list[Callable[[RoleChanged], None]] = []

    def start(self, transport: Transport, responder: Callable[[OutboundResponse], None]) -> None:
        self._transport = transport
        self._responder = responder
        self.schedule()

    @property
    def now_ms(self) -> int:
        return self._clock.now_ms()

    @property
    def applied_offset(self) -> int:
        """All below was handed to the state machine."""
        return self._feed.applied_offset

    def receive(self, event: Input) -> None:
        """Step an input now; its effects follow at the end of this turn of the loop."""
        if self._failure is not None:
            return
        try:
            self.node.step(self.now_ms, event)
        except Exception as error:  # noqa: BLE001 - a core that failed must not go on, whatever the reason
            self._fail(error)
        self.schedule()

    def schedule(self) -> None:
        """See to it that a turn follows; whoever proposed records or changed a deadline calls this."""
        if not self._is_turn_due and self._failure is None:
            self._is_turn_due = True
            self._loop.call_soon(self._turn)

    def request_shutdown(self) -> None:
        """Leave in good order; `shut_down` is done when the replica may stop."""
        self.receive(ShutdownRequested())

    async def close(self) -> None:
        """Stop at once; what was written is flushed first, so that a restart finds it."""
        self._cancel_timer()
        if self._failure is None:
            self._failure = asyncio.CancelledError("closed")
            if self._transport is not None:
                self._transport.close()
            await self._loop.run_in_executor(self._disk, self.log.flush)
        self._disk.shutdown(wait=False)

    # A turn

    def _turn(self) -> None:
        self._is_turn_due = False
        if self._failure is not None or self._is_writing:
            return
        try:
            self._begin(self.node.take_ready(self.now_ms))
        except Exception as error:  # noqa: BLE001 - see `receive`
            self._fail(error)

    def _begin(self, ready: Ready) -> None:
        if ready.truncate_to is None and ready.quorum_state is None:
            self._carry_out(ready)
            return
        self._is_writing = True
        writing = self._loop.run_in_executor(self._disk, self._write, ready)
        writing.add_done_callback(lambda done: self._written(ready, done))

    def _write(self, ready: Ready) -> None:
        """In the disk's thread, where it cannot meet a flush."""
        if ready.truncate_to is not None:
            self.log.truncate_to(ready.truncate_to)
        if ready.quorum_state is not None:
            self._state_store.write(ready.quorum_state)

    def _written(self, ready: Ready, done: "asyncio.Future[None]") -> None:
        self._is_writing = False
        if self._failure is not None:
            return
        try:
            done.result()
            if ready.truncate_to is not None:
                self._truncations += 1
                self._is_dirty = True
            self._carry_out(ready)
        except Exception as error:  # noqa: BLE001 - see `receive`
            self._fail(error)
        self.schedule()

    def _carry_out(self, ready: Ready) -> None:
        """What is left of a `Ready` once its truncation and election state are durable."""
        if ready.append:
            self.log.append(ready.append)
            self._is_dirty = True
        self._maybe_flush()
        self._send(ready)
        for change in ready.role_changes:
            for observer in self.role_observers:
                observer(change)
        self._feed.advance(ready.high_watermark, ready.leader)
        if self._feed.run(self.now_ms):
            self.schedule()
        if ready.is_shut_down and not self.shut_down.done():
            self.shut_down.set_result(None)
        self._arm_timer(ready.deadline_ms)

    def _send(self, ready: Ready) -> None:
        assert self._transport is not None
        assert self._responder is not None
        for request in ready.requests:
            self._transport.send(request)
        slices: dict[LogSlice, bytes] = {}
        for outbound in ready.responses:
            self._responder(self._with_records(outbound, slices))

    def _with_records(self, outbound: OutboundResponse, slices: dict[LogSlice, bytes]) -> OutboundResponse:
        """Followers that wait at the same offset get the same bytes, read once."""
        response = outbound.response
        if not isinstance(response, FetchResponse) or not isinstance(response.records, LogSlice):
            return outbound
        wanted = response.records
        if wanted not in slices:
            slices[wanted] = self.log.read(wanted.start_offset, wanted.max_bytes)
        return OutboundResponse(outbound.request_id, replace(response, records=slices[wanted]))

    # Flushing

    def _maybe_flush(self) -> None:
        if self._is_flushing or not self._is_dirty:
            return
        self._is_flushing = True
        self._is_dirty = False
        truncations = self._truncations
        flushing = self._loop.run_in_executor(self._disk, self.log.flush)
        flushing.add_done_callback(lambda done: self._flushed(truncations, done))

    def _flushed(self, truncations: int, done: "asyncio.Future[int]") -> None:
        self._is_flushing = False
        if self._failure is not None:
            return
        try:
            end_offset = done.result()
        except Exception as error:  # noqa: BLE001 - an fsync that failed is fatal, never retried
            self._fail(error)
            return
        self.receive(LogFlushed(end_offset, truncations))
        if not self._is_writing:
            self._maybe_flush()

    # Time

    def _arm_timer(self, deadline_ms: int | None) -> None:
        self._cancel_timer()
        wishes = [wish for wish in (deadline_ms, self._state_machine.next_deadline_ms()) if wish is not None]
        if wishes:
            delay_s = max(0, min(wishes) - self.now_ms) / 1000
            self._timer = self._loop.call_later(delay_s, self._time_is_up)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_is_up(self) -> None:
        wish = self._state_machine.next_deadline_ms()
        try:
            if wish is not None and wish <= self.now_ms and self._failure is None:
                self._state_machine.handle_time(self.now_ms)
        except Exception as error:  # noqa: BLE001 - see `receive`
            self._fail(error)
        self.receive(TimeAdvanced())

    def _fail(self, error: BaseException) -> None:
        if self._failure is not None:
            return
        self._failure = error
        self._cancel_timer()
        if self._transport is not None:
            self._transport.close()
        self._disk.shutdown(wait=False, cancel_futures=True)
        self._fatal(error)
