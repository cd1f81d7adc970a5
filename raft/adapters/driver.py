"""RaftDriver: turns the core in an asyncio loop and carries out what it asks for, in its order.

    something happens  ->  node.step(...)            at once, as often as things happen
    end of the turn    ->  ready = node.take_ready() once, so all of a turn shares a batch and a flush
                       ->  truncate | append | quorum state | send | commit | re-arm the one timer

The disk thread does the two kinds of work that may take long. The flush of the log runs beside everything else; batches
appended meanwhile belong to the next flush. The election state and truncations must finish before any later output of
the same `Ready` or of a later one. Meanwhile inputs are still stepped; only their outputs wait.

"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from kquorum.raft.adapters.clock import OneTimer
from kquorum.raft.adapters.delivery import CommitFeed, Delivery
from kquorum.raft.adapters.disk_thread import DiskThread, LogFlusher
from kquorum.raft.adapters.driver_ports import BatchLog, Clock, ConsensusCore, Responder, Transport
from kquorum.raft.adapters.driver_snapshots import Snapshots, SnapshotTraffic
from kquorum.raft.adapters.local_requests import LocalRequests
from kquorum.raft.adapters.space_watch import SpaceWatch, Unwatched
from kquorum.raft.errors import NotLeaderError
from kquorum.raft.inputs import (
    Input,
    LogStartAdvanced,
    QuorumStateWritten,
    ShutdownRequested,
    SnapshotReceived,
    TimeAdvanced,
)
from kquorum.raft.messages import (
    FetchResponse,
    FetchSnapshotResponse,
    LogSlice,
    Request,
    Response,
    SnapshotSlice,
    TransferLeadershipRequest,
    TransferLeadershipResponse,
)
from kquorum.raft.ports import QuorumAt, QuorumStateStore, StateMachine
from kquorum.raft.ready import OutboundResponse, QuorumState, Ready, RoleChanged, VotersChanged
from kquorum.raft.voters import Endpoint, VoterSet
from kquorum.wire.log_batch import OffsetAndEpoch

Result = TypeVar("Result")
NO_SNAPSHOT = OffsetAndEpoch(0, 0)
# For the answers to all Fetches of a turn together. Each batch is checked when it is read, so a MiB of short ones takes
# some 30 ms; sixty Fetches of the whole log, answered in one turn with 7 MB each, deposed a leader.
MOST_READ_BYTES = 1_048_576
logger = logging.getLogger(__name__)


class RaftDriver:
    """One replica at work; satisfies raft.ports.RaftClient. All methods belong to the loop's thread.

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
        snapshots: Snapshots | None = None,
        space: SpaceWatch | Unwatched | None = None,
        flush_interval_ms: int = 0,
    ) -> None:
        """Without `snapshots` none may come in, be asked for, or stand in the log's folder. `flush_interval_ms` is for
        replicas that never vote; see LogFlusher."""
        self._node = node
        self._log = log
        self._state_store = state_store
        self._now_ms = now_ms
        self._on_fatal = on_fatal
        self._on_role_change = on_role_change
        self._on_voters_changed = on_voters_changed
        self._on_caught_up = on_caught_up
        # What the core announced last; replaced as a whole, so the disk's thread may read it for `quorum-state`.
        self.in_force = VotersChanged(node.voters, node.kraft_version)
        self._snapshots = snapshots
        self._space = space or Unwatched()
        self._flush_interval_ms = flush_interval_ms
        self._when_free: deque[Callable[[], None]] = deque()
        self._callers = LocalRequests(self.receive)
        self._is_running = False
        self._turn_is_due = False
        self._bytes_to_read = MOST_READ_BYTES
        self._waits_for_disk = False
        # The log is being cut, or dropped for a snapshot: it must not be read.
        self.is_cutting_log = False
        self._node_deadline_ms: int | None = None

    def start(self, state_machine: StateMachine, transport: Transport, responder: Responder) -> None:
        """Begin, in the running loop, with the newest snapshot if there is one."""
        self._loop = asyncio.get_running_loop()
        self._shut_down = self._loop.create_future()
        self._disk = DiskThread(self._loop)
        self._flusher = LogFlusher(
            self._log.flush,
            self.write_on_disk,
            self.receive,
            interval_ms=self._flush_interval_ms,
            rest=lambda delay_ms, then: self._loop.call_later(delay_ms / 1000, self._guarded, then),
        )
        self._timer = OneTimer(self._loop, self._now_ms, lambda: self._guarded(self._timer_fired))
        self._state_machine = state_machine
        self._transport = transport
        self._responder = responder
        if self._snapshots is not None:
            self._traffic = SnapshotTraffic(self._snapshots, self.receive, self._guarded, self._fail)
        summary = self._log.summary()
        self._delivery = Delivery(
            CommitFeed(self._log, state_machine, self._node.node_id, summary.log_start_offset),
            self._callers,
            self._now_ms,
            guarded=self._guarded,
            is_blocked=lambda: self._waits_for_disk,
            arm_timer=self._arm_timer,
            load=None if self._snapshots is None else self._traffic.load,
            forget=None if self._snapshots is None else self._traffic.forget,
        )
        self._is_running = True
        self._space.start(self._loop, self.receive, self.on_disk)
        newest = max(summary.snapshots, key=lambda each: each.offset, default=NO_SNAPSHOT)
        if newest.offset > 0:
            self._delivery.load(newest)
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
        if self._snapshots is not None:
            is_done = await self._traffic.close(timeout_ms) and is_done
        if not is_done:
            logger.warning("the disk did not finish within %d ms; leaving without it", timeout_ms)
        return is_done

    # What callers may ask (raft.ports.RaftClient)

    @property
    def node_id(self) -> int:
        return self._node.node_id

    @property
    def leader_id(self) -> int:
        return self._node.leader_id

    @property
    def leader_epoch(self) -> int:
        return self._node.leader_epoch

    @property
    def log_end_offset(self) -> int:
        return self._node.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self._node.high_watermark

    @property
    def voters(self) -> VoterSet:
        return self._node.voters

    @property
    def kraft_version(self) -> int:
        return self._node.kraft_version

    def quorum_at(self, end_offset: int) -> QuorumAt:
        return self._node.quorum_at(end_offset)

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        return self._node.endpoint_of(node_id)

    @property
    def applied_offset(self) -> int:
        """The end of what the state machine was given."""
        return self._delivery.applied_offset

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

    async def read_linearizable(self) -> int:
        """Wait until the state machine has everything that was committed anywhere when this was called; answers the
        offset it has reached. A majority confirms that this replica led then. Raises NotLeaderError."""
        self._check_running()
        return await self._callers.read()

    def read_committed(self) -> int:
        """The end of what the state machine was given. All below it is committed and stays; more may be committed
        elsewhere, so this read may be out of date."""
        return self.applied_offset

    def read_local(self) -> int:
        """The end of this replica's log. What stands above `read_committed` may yet be lost."""
        return self._node.log_end_offset

    async def transfer_leadership(self, target_id: int) -> TransferLeadershipResponse:
        """Hand over to another voter once it has caught up; answers when that voter leads. Raises NotLeaderError when
        the driver ends meanwhile."""
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
        """Have a turn soon, which also reads the state machine's deadline again."""
        if self._is_running and not self._turn_is_due:
            self._turn_is_due = True
            self._loop.call_soon(self._guarded, self._turn)

    def _turn(self) -> None:
        self._turn_is_due = False
        if not self._waits_for_disk:
            self._carry_out(self._node.take_ready(self._now_ms()))
        if self._when_free and not self._waits_for_disk:
            self._when_free.popleft()()
            self.wake()

    def _carry_out(self, ready: Ready) -> None:
        if ready.truncate_to is None:
            self._append(ready)
        else:
            self._truncate(ready, ready.truncate_to)

    def _truncate(self, ready: Ready, end_offset: int) -> None:
        self._waits_for_disk = self.is_cutting_log = True
        self._flusher.log_was_cut()
        self.write_on_disk(lambda: self._log.truncate_to(end_offset), lambda _: self._truncated(ready))

    def _truncated(self, ready: Ready) -> None:
        self.is_cutting_log = False
        # What was written below the cut may have been on its way to the disk in a flush that counts no more.
        self._flusher.flush_soon()
        self._append(ready)

    def _append(self, ready: Ready) -> None:
        if ready.append:
            self._space.with_space(lambda: self._log.append(ready.append))
            self._flusher.flush_soon()
        if ready.snapshot_chunks:
            self._traffic.take_in(ready.snapshot_chunks, self._install)
        if ready.load_snapshot is not None:
            self._delivery.load(ready.load_snapshot)
        else:
            self._delivery.release()
        if ready.quorum_state is None:
            self._finish(ready)
        else:
            self._write_state(ready, ready.quorum_state)
        self._flusher.maybe_begin()

    def _write_state(self, ready: Ready, state: QuorumState) -> None:
        self._waits_for_disk = True
        self.write_on_disk(lambda: self._state_store.write(state), lambda _: self._state_written(ready))

    def _state_written(self, ready: Ready) -> None:
        self.receive(QuorumStateWritten())
        self._finish(ready)

    def _finish(self, ready: Ready) -> None:
        """What may leave once the state is durable."""
        if self._waits_for_disk:
            self._waits_for_disk = False
            self.wake()
        for request in ready.requests:
            self._transport.send(request)
        self._bytes_to_read = MOST_READ_BYTES
        for response in ready.responses:
            self._answer(response)
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

    def _answer(self, outbound: OutboundResponse) -> None:
        response = outbound.response
        if isinstance(response, FetchSnapshotResponse) and isinstance(response.data, SnapshotSlice):
            self._traffic.answer(outbound, self._respond)
        else:
            self._respond(self._with_records(outbound))

    def _with_records(self, outbound: OutboundResponse) -> OutboundResponse:
        response = outbound.response
        if not isinstance(response, FetchResponse) or not isinstance(response.records, LogSlice):
            return outbound
        # At least one batch, or a replica might take the answer for the end of the log.
        most = max(min(response.records.max_bytes, self._bytes_to_read), 1)
        records = self._log.read(response.records.start_offset, most)
        self._bytes_to_read -= len(records)
        return OutboundResponse(outbound.request_id, response.with_records(records))

    # Snapshots

    def advance_log_start(self, offset: int) -> None:
        """Have the log begin at a later offset, where a snapshot ends, as soon as nothing is under way in it."""

        def advance() -> None:
            summary = self._log.summary()
            # Meanwhile the snapshot may have been found damaged; and a damaged log may end below it until it is mended.
            is_there = any(each.offset == offset for each in summary.snapshots)
            if is_there and summary.log_start_offset < offset <= summary.log_end_offset:
                self._space.with_space(lambda: self._log.advance_log_start(offset))
                self._flusher.flush_soon()
                self._flusher.maybe_begin()
                self.receive(LogStartAdvanced(offset))

        self._when_free.append(advance)
        self.wake()

    def _install(self, snapshot_id: OffsetAndEpoch) -> None:
        """A fetched snapshot is whole: the log is dropped for it, which nothing may overtake."""

        def install() -> None:
            self._delivery.hold()
            self._waits_for_disk = self.is_cutting_log = True
            self._flusher.log_was_cut()
            self.write_on_disk(lambda: self._log.truncate_fully_to(snapshot_id.offset), lambda _: installed())

        def installed() -> None:
            self._waits_for_disk = self.is_cutting_log = False
            self.receive(SnapshotReceived(snapshot_id, self._log.summary().quorum_records))

        self._when_free.append(install)
        self.wake()

    # The state machine

    def _commit(self, ready: Ready) -> None:
        # A leader's clients wait for its state machine; of a replica that never votes no leader awaits a flush.
        is_follower = self._node.leader_id != self._node.node_id
        waits_for_flush = bool(ready.append) and is_follower and not self._flush_interval_ms
        self._delivery.commit(self._now_ms(), ready, waits_for_flush=waits_for_flush)
        if ready.has_caught_up:
            self._on_caught_up()

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

    def write_on_disk(self, job: Callable[[], Result], then: Callable[[Result], None]) -> None:
        """As `on_disk`, for a job that may find the disk full and then get the reserve's space."""
        self.on_disk(lambda: self._space.with_space(job), then)

    def on_disk(self, job: Callable[[], Result], then: Callable[[Result], None]) -> None:
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
        self._space.close()
        if not self._shut_down.done():
            self._shut_down.set_result(None)
