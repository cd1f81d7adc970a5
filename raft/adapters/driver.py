"""RaftDriver: turns the core in an asyncio loop and carries out what it asks for, in its order.

    something happens  ->  node.step(...)            at once, as often as things happen
    end of the turn    ->  ready = node.take_ready() once, so all of a turn shares a batch and a flush
                       ->  truncate | append | quorum state | send | commit | re-arm the one timer

Two things may take the disk long, and are done in its own thread: the flush of the log, beside which all goes on
(what was appended meanwhile is the next flush), and the election state and truncations, which nothing of their
`Ready` or of a later one may overtake. While these last, inputs are still stepped; only their outcome waits.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from raft.adapters.callers import Callers
from raft.adapters.commit_feed import CommitFeed
from raft.adapters.core_view import CoreView
from raft.adapters.disk_thread import DiskThread
from raft.adapters.driver_ports import BatchLog, Clock, ConsensusCore, Responder, Transport
from raft.adapters.one_timer import OneTimer
from raft.errors import NotLeaderError
from raft.inputs import Input, LogFlushed, ShutdownRequested, TimeAdvanced
from raft.messages import (
    FetchResponse,
    LogSlice,
    Request,
    Response,
    TransferLeadershipRequest,
    TransferLeadershipResponse,
)
from raft.ports import QuorumStateStore, StateMachine
from raft.ready import OutboundResponse, QuorumState, Ready, RoleChanged, VotersChanged

Result = TypeVar("Result")
logger = logging.getLogger(__name__)


class RaftDriver(CoreView):
    """One replica at work; satisfies raft.ports.RaftPort. All methods belong to the loop's thread.

    Build it, hand it to the state machine as its `RaftPort`, then `start`. Anything unexpected ends it: no more
    input is taken, and `on_fatal` is called once with the error.
    """

    def __init__(
        self,
        node: ConsensusCore,
        log: BatchLog,
        state_store: QuorumStateStore,
        now_ms: Clock,
        on_fatal: Callable[[Exception], None],
        on_role_change: Callable[[RoleChanged], None] = lambda _: None,
        on_voters_changed: Callable[[VotersChanged], None] = lambda _: None,
        on_caught_up: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(node)
        self._log = log
        self._state_store = state_store
        self._now_ms = now_ms
        self._on_fatal = on_fatal
        self._on_role_change = on_role_change
        self._on_voters_changed = on_voters_changed
        self._on_caught_up = on_caught_up
        # What the core announced last; replaced as a whole, so the disk's thread may read it for `quorum-state`.
        self.in_force = VotersChanged(node.voters, node.kraft_version)
        self._callers = Callers(self.receive)
        self._is_running = False
        self._turn_is_due = False
        self._waits_for_disk = False
        self._is_flushing = False
        self._needs_flush = False
        self._truncations = 0
        self._delivery_is_due = False
        self._node_deadline_ms: int | None = None

    def start(
        self,
        state_machine: StateMachine,
        transport: Transport,
        responder: Responder,
        applied_offset: int | None = None,
    ) -> None:
        """Begin, in the running loop. `applied_offset` is what a snapshot has given the state machine already."""
        self._loop = asyncio.get_running_loop()
        self._shut_down = self._loop.create_future()
        self._disk = DiskThread(self._loop)
        self._timer = OneTimer(self._loop, self._now_ms, lambda: self._guarded(self._timer_fired))
        self._state_machine = state_machine
        self._transport = transport
        self._responder = responder
        first = self._log.summary().log_start_offset if applied_offset is None else applied_offset
        self._feed = CommitFeed(self._log, state_machine, self._node.node_id, first)
        self._is_running = True
        self.wake()

    async def stop(self, timeout_ms: int) -> bool:
        """Leave in good order: a leader first hands over, for `timeout_ms` at most; then the disk is waited for.

        The log, the transport and the listener are the caller's to close, afterwards; the log only if the answer is
        True: otherwise the disk is still at work on it.
        """
        if self._is_running:
            self.receive(ShutdownRequested())
            await asyncio.wait([self._shut_down], timeout=timeout_ms / 1000)
        self._halt()
        is_done = await self._disk.close(timeout_ms)
        if not is_done:
            logger.warning("the disk did not finish within %d ms; leaving without it", timeout_ms)
        return is_done

    # What a state machine may ask (raft.ports.RaftPort), beyond what CoreView answers

    @property
    def applied_offset(self) -> int:
        """The end of what the state machine was given."""
        return self._feed.applied_offset

    def propose(self, now_ms: int, leader_epoch: int, values: Sequence[bytes]) -> int:
        self._check_running()
        last_offset = self._node.propose(now_ms, leader_epoch, values)
        self.wake()
        return last_offset

    def resign(self, now_ms: int, leader_epoch: int) -> None:
        self._node.resign(now_ms, leader_epoch)
        self.wake()

    def upgrade_kraft_version(
        self, now_ms: int, leader_epoch: int, kraft_version: int, *, validate_only: bool = False
    ) -> str | None:
        self._check_running()
        problem = self._node.upgrade_kraft_version(
            now_ms, leader_epoch, kraft_version, validate_only=validate_only
        )
        self.wake()
        return problem

    # Reads, and requests from this process

    async def read_linearizable(self) -> int:
        """Wait until the state machine has everything that was committed anywhere when this was called; answers the
        offset it has reached. A majority confirms that this replica led then. Raises NotLeaderError."""
        self._check_running()
        return await self._callers.read()

    def read_committed(self) -> int:
        """The end of what the state machine was given. All below it is committed and stays; more may be committed
        elsewhere, so this read may be out of date."""
        return self._feed.applied_offset

    def read_local(self) -> int:
        """The end of this replica's log. What stands above `read_committed` may yet be lost."""
        return self._node.log_end_offset

    async def transfer_leadership(self, target_id: int) -> TransferLeadershipResponse:
        """Hand over to another voter once it has caught up. Raises NotLeaderError when the driver ends meanwhile."""
        response = await self.ask(TransferLeadershipRequest(target_id=target_id))
        assert isinstance(response, TransferLeadershipResponse), response
        return response

    async def ask(self, request: Request) -> Response:
        """Have the core answer a request of this process as if a peer had sent it. Raises NotLeaderError when the
        driver is not running, or ends before the answer."""
        self._check_running()
        return await self._callers.ask(request)

    def _check_running(self) -> None:
        if not self._is_running:
            raise NotLeaderError(-1, self._node.leader_epoch)

    # Turns

    def receive(self, event: Input) -> None:
        """Something happened; its outcome comes at the end of this turn of the loop."""
        if not self._is_running:
            return
        try:
            self._node.step(self._now_ms(), event)
        except Exception as error:  # noqa: BLE001 - a core that failed must not be asked again
            self._fail(error)
        else:
            self.wake()

    def wake(self) -> None:
        """Have a turn soon, which also looks at the state machine's deadline anew."""
        if self._is_running and not self._turn_is_due:
            self._turn_is_due = True
            self._loop.call_soon(self._guarded, self._turn)

    def _turn(self) -> None:
        self._turn_is_due = False
        if not self._waits_for_disk:
            self._carry_out(self._node.take_ready(self._now_ms()))

    def _carry_out(self, ready: Ready) -> None:
        if ready.truncate_to is None:
            self._append(ready)
        else:
            self._truncate(ready, ready.truncate_to)

    def _truncate(self, ready: Ready, end_offset: int) -> None:
        self._waits_for_disk = True
        self._truncations += 1
        self._on_disk(lambda: self._log.truncate_to(end_offset), lambda _: self._truncated(ready))

    def _truncated(self, ready: Ready) -> None:
        # What was written below the cut may have been on its way to the disk in a flush that counts no more.
        self._needs_flush = True
        self._append(ready)

    def _append(self, ready: Ready) -> None:
        if ready.append:
            self._log.append(ready.append)
            self._needs_flush = True
        if ready.quorum_state is None:
            self._finish(ready)
        else:
            self._write_state(ready, ready.quorum_state)
        self._maybe_flush()

    def _write_state(self, ready: Ready, state: QuorumState) -> None:
        self._waits_for_disk = True
        self._on_disk(lambda: self._state_store.write(state), lambda _: self._finish(ready))

    def _finish(self, ready: Ready) -> None:
        """What may leave once the state is durable."""
        if self._waits_for_disk:
            self._waits_for_disk = False
            self.wake()
        for request in ready.requests:
            self._transport.send(request)
        for response in ready.responses:
            self._respond(self._with_records(response))
        for change in ready.role_changes:
            self._on_role_change(change)
        if ready.voters_changed is not None:
            self.in_force = ready.voters_changed
            self._on_voters_changed(ready.voters_changed)
        self._node_deadline_ms = ready.deadline_ms
        self._commit(ready)
        self._arm_timer()
        if ready.is_shut_down and not self._shut_down.done():
            self._shut_down.set_result(None)

    def _respond(self, outbound: OutboundResponse) -> None:
        if not self._callers.take_response(outbound):
            self._responder.respond(outbound)

    def _with_records(self, outbound: OutboundResponse) -> OutboundResponse:
        response = outbound.response
        if not isinstance(response, FetchResponse) or not isinstance(response.records, LogSlice):
            return outbound
        records = self._log.read(response.records.start_offset, response.records.max_bytes)
        return OutboundResponse(outbound.request_id, replace(response, records=records))

    # The log's flush

    def _maybe_flush(self) -> None:
        if self._needs_flush and not self._is_flushing:
            self._needs_flush = False
            self._is_flushing = True
            truncations = self._truncations
            self._on_disk(self._log.flush, lambda end_offset: self._flushed(end_offset, truncations))

    def _flushed(self, end_offset: int, truncations: int) -> None:
        self._is_flushing = False
        self._maybe_flush()
        self.receive(LogFlushed(end_offset, truncations))

    # The state machine

    def _commit(self, ready: Ready) -> None:
        now_ms = self._now_ms()
        if ready.high_watermark is not None:
            self._feed.advance(ready.high_watermark)
            self._feed.deliver(now_ms)
        if ready.leader is not None:
            self._feed.lead_changed(now_ms, ready.leader)
        for outcome in ready.reads:
            self._callers.take_read(outcome)
        self._callers.applied(self._feed.applied_offset)
        if ready.has_caught_up:
            self._on_caught_up()
        self._deliver_rest_soon()

    def _deliver_rest_soon(self) -> None:
        if self._feed.has_more and not self._delivery_is_due:
            self._delivery_is_due = True
            self._loop.call_soon(self._guarded, self._deliver_rest)

    def _deliver_rest(self) -> None:
        self._delivery_is_due = False
        if self._waits_for_disk:
            return  # the log may be being cut; `_commit` goes on afterwards
        self._feed.deliver(self._now_ms())
        self._callers.applied(self._feed.applied_offset)
        self._arm_timer()
        self._deliver_rest_soon()

    # The one timer

    def _arm_timer(self) -> None:
        self._timer.arm(self._node_deadline_ms, self._state_machine.next_deadline_ms())

    def _timer_fired(self) -> None:
        now_ms = self._now_ms()
        deadline_ms = self._state_machine.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= now_ms:
            self._state_machine.handle_time(now_ms)
        if self._node_deadline_ms is not None and self._node_deadline_ms <= now_ms:
            self._node_deadline_ms = None  # the coming turn says the next one
            self.receive(TimeAdvanced())
        self._arm_timer()

    # Failing

    def _on_disk(self, job: Callable[[], Result], then: Callable[[Result], None]) -> None:
        """Run `job` in the disk's thread, and `then` in the loop unless the driver has ended meanwhile."""
        self._disk.submit(job, lambda result: self._guarded(lambda: then(result)), self._fail)

    def _guarded(self, step: Callable[[], None]) -> None:
        if not self._is_running:
            return
        try:
            step()
        except Exception as error:  # noqa: BLE001 - the boundary at which a replica stops for good
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not self._is_running:
            return
        logger.critical("node %d stops: %s", self._node.node_id, error, exc_info=error)
        self._halt()
        self._on_fatal(error)

    def _halt(self) -> None:
        self._is_running = False
        self._callers.close(self._node.leader_epoch)
        self._timer.cancel()
        if not self._shut_down.done():
            self._shut_down.set_result(None)
