"""Runs the broker's lifecycle and its managers on the event loop: one timer each, replies when they come."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Protocol
from uuid import UUID

from kquorum.broker.adapters.refusals import Refusals
from kquorum.broker.lifecycle import BrokerLifecycle
from kquorum.broker.lifecycle_states import BrokerState
from kquorum.metadata.adapters.controller_channel import ControllerChannel, ControllerUnavailable
from kquorum.network.errors import NoCommonVersion
from kquorum.wire.message_schema import ByVersion, R, Request
from kquorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from kquorum.wire.messages.broker_registration import BrokerRegistrationRequest
from kquorum.wire.protocol.api_keys import ApiKey

log = logging.getLogger("broker.lifecycle")


class Pump:
    """Calls `turn` soon after `poke`, and at the deadline that the last turn answered; never from within itself."""

    def __init__(self, turn: Callable[[int], int | None], now_ms: Callable[[], int]) -> None:
        self._turn = turn
        self._now_ms = now_ms
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | asyncio.Handle | None = None
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    def poke(self) -> None:
        self._arm(0)

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """A task that reports back by poking."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()

    def _arm(self, delay_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._closed:
            self._timer = self._loop.call_later(delay_ms / 1000, self._take_turn)

    def _take_turn(self) -> None:
        self._timer = None
        now_ms = self._now_ms()
        deadline_ms = self._turn(now_ms)
        if deadline_ms is not None and self._timer is None:
            self._arm(max(0, deadline_ms - now_ms))

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a request to the controller failed", exc_info=error)
        self.poke()


class LifecycleRunner:
    """Must be made and used on the loop. `wait_for` is how a startup follows the broker's states."""

    def __init__(
        self,
        lifecycle: BrokerLifecycle,
        channel: ControllerChannel,
        now_ms: Callable[[], int],
        applied_offset: Callable[[], int],
        session_timeout_ms: int,
        gave_up: Callable[[str], None] = lambda _reason: None,
    ) -> None:
        """`session_timeout_ms` is for a message: how long the controllers count on a broker that fell silent. `gave_up`
        hears why a broker that ran ends by itself."""
        self._lifecycle = lifecycle
        self._refusals = Refusals(now_ms, session_timeout_ms)
        self._channel = channel
        self._now_ms = now_ms
        self._applied_offset = applied_offset
        self._pump = Pump(self._turn, now_ms)
        self._waiting: list[tuple[frozenset[BrokerState], asyncio.Future[BrokerState]]] = []
        self._logged_state = lifecycle.state
        self._logged_fenced = True
        self._gave_up = gave_up

    def start(self) -> None:
        self._lifecycle.start(self._now_ms())
        self._pump.poke()

    def set_ready_to_unfence(self) -> None:
        self._lifecycle.set_ready_to_unfence(self._now_ms())
        self._pump.poke()

    def set_offline_log_dirs(self, log_dirs: tuple[UUID, ...]) -> None:
        self._lifecycle.set_offline_log_dirs(self._now_ms(), log_dirs)
        self._pump.poke()

    def handle_leader_change(self, leader_id: int, _leader_epoch: int) -> None:
        """The quorum's leader, as this node knows it; -1 while there is none."""
        self._refusals.handle_new_controller()
        if leader_id >= 0:
            self._lifecycle.handle_new_controller(self._now_ms())
            self._pump.poke()

    def begin_controlled_shutdown(self) -> None:
        self._lifecycle.begin_controlled_shutdown(self._now_ms())
        self._pump.poke()

    def begin_shutdown(self) -> None:
        self._lifecycle.begin_shutdown()
        self._pump.poke()

    def wait_for(self, *states: BrokerState) -> "asyncio.Future[BrokerState]":
        """Done with the state, as soon as the broker is in one of these."""
        future: asyncio.Future[BrokerState] = asyncio.get_running_loop().create_future()
        self._waiting.append((frozenset(states), future))
        self._tell_waiting()
        return future

    def close(self) -> None:
        self._pump.close()
        for _, future in self._waiting:
            future.cancel()

    def _turn(self, now_ms: int) -> int | None:
        self._lifecycle.handle_time(now_ms)
        self._tell_waiting()
        request = self._lifecycle.maybe_next_request(now_ms, self._applied_offset())
        if request is not None:
            self._pump.run(self._communicate(request))
        return self._lifecycle.next_deadline_ms()

    async def _communicate(self, request: BrokerRegistrationRequest | BrokerHeartbeatRequest) -> None:
        try:
            if isinstance(request, BrokerRegistrationRequest):
                await self._register(request)
            else:
                await self._send_heartbeat(request)
        except (ControllerUnavailable, NoCommonVersion) as error:
            log.warning("%s", error)
            self._lifecycle.handle_failure(self._now_ms())

    async def _register(self, request: BrokerRegistrationRequest) -> None:
        response = await self._channel.call(request)
        self._lifecycle.handle_registration_reply(
            self._now_ms(), response.error_code, response.broker_epoch, response.session_ends_in_ms
        )
        session_ends_ms = self._lifecycle.previous_session_ends_ms
        self._refusals.note(ApiKey.BROKER_REGISTRATION, response.error_code, session_ends_ms)

    async def _send_heartbeat(self, request: BrokerHeartbeatRequest) -> None:
        response = await self._channel.call(request)
        self._refusals.note(ApiKey.BROKER_HEARTBEAT, response.error_code)
        self._lifecycle.handle_heartbeat_reply(
            self._now_ms(),
            error=response.error_code,
            is_caught_up=response.is_caught_up,
            is_fenced=response.is_fenced,
            should_shut_down=response.should_shut_down,
        )

    def _tell_waiting(self) -> None:
        state = self._lifecycle.state
        if state is not self._logged_state:
            log.info("the broker is %s (broker epoch %d)", state.value, self._lifecycle.broker_epoch)
            was_running = self._logged_state in (BrokerState.RUNNING, BrokerState.PENDING_CONTROLLED_SHUTDOWN)
            self._logged_state = state
            if was_running and state is BrokerState.SHUTTING_DOWN and self._lifecycle.failure is not None:
                self._gave_up(self._lifecycle.failure)
        if state is BrokerState.RUNNING:
            self._tell_fencing()
        for states, future in self._waiting:
            if state in states and not future.done():
                future.set_result(state)
        self._waiting = [(states, future) for states, future in self._waiting if not future.done()]

    def _tell_fencing(self) -> None:
        """Of a broker that runs; that one which starts is fenced goes without saying."""
        is_fenced = self._lifecycle.is_fenced
        if is_fenced == self._logged_fenced:
            return
        self._logged_fenced = is_fenced
        if is_fenced:
            log.warning("this broker is fenced: clients are sent elsewhere until the controller has it back")
        else:
            log.info("this broker is not fenced (broker epoch %d)", self._lifecycle.broker_epoch)


class RequestManager(Protocol[R]):
    """What knows which request to the controller is due; one is under way at a time."""

    def next_deadline_ms(self) -> int | None: ...

    def maybe_next_request(self, now_ms: int, broker_epoch: int) -> Request[R] | ByVersion[R] | None: ...

    def handle_reply(self, now_ms: int, response: R) -> None: ...

    def handle_failure(self, now_ms: int) -> None: ...


class ManagerRunner(Generic[R]):
    """Sends what a manager asks for."""

    def __init__(
        self,
        manager: RequestManager[R],
        channel: ControllerChannel,
        now_ms: Callable[[], int],
        broker_epoch: Callable[[], int],
    ) -> None:
        self._manager = manager
        self._channel = channel
        self._now_ms = now_ms
        self._broker_epoch = broker_epoch
        self._pump = Pump(self._turn, now_ms)

    def poke(self) -> None:
        self._pump.poke()

    def close(self) -> None:
        self._pump.close()

    def _turn(self, now_ms: int) -> int | None:
        request = self._manager.maybe_next_request(now_ms, self._broker_epoch())
        if request is not None:
            self._pump.run(self._ask(request))
        # Without an epoch nothing can be sent; the registration changes the image, and the image pokes.
        return self._manager.next_deadline_ms() if self._broker_epoch() >= 0 else None

    async def _ask(self, request: Request[R] | ByVersion[R]) -> None:
        try:
            response = await self._channel.call(request)
        except (ControllerUnavailable, NoCommonVersion) as error:
            log.warning("%s", error)
            self._manager.handle_failure(self._now_ms())
            return
        self._manager.handle_reply(self._now_ms(), response)
