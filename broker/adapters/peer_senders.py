"""Sends what waits for other brokers: a connection to each for each queue, with one request under way."""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial

from kquorum.broker.transactions.peers import PeerQueue
from kquorum.metadata.image.cluster import Endpoint
from kquorum.network.bounded_log import BoundedLog
from kquorum.network.connection import UNSECURED, KafkaConnection
from kquorum.network.errors import CannotConnect, ConnectionLost, NoCommonVersion, RequestTimedOut
from kquorum.network.security.client_security import ClientSecurity
from kquorum.wire.errors import DecodeError

log = logging.getLogger("broker.transactions")

_FAILURES = (CannotConnect, ConnectionLost, RequestTimedOut, DecodeError)
# What a broker is asked about transactions has to come soon again: its producer waits.
_RECONNECT_BACKOFF_S = 0.05


class PeerSenders:
    """Made and used on the loop. `endpoint_of` finds a broker on the listener between brokers; `on_answer` is called
    after each answer or failure that the queue took."""

    def __init__(
        self,
        queue: PeerQueue,
        client_id: str,
        endpoint_of: Callable[[int], Endpoint | None],
        *,
        own_id: int,
        request_timeout_ms: int,
        now_ms: Callable[[], int],
        on_answer: Callable[[], None],
        security: ClientSecurity = UNSECURED,
    ) -> None:
        self._queue = queue
        self._client_id = client_id
        self._endpoint_of = endpoint_of
        self._own_id = own_id
        self._request_timeout_ms = request_timeout_ms
        self._now_ms = now_ms
        self._on_answer = on_answer
        self._security = security
        self._connections: dict[int, tuple[Endpoint, KafkaConnection]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._warnings = BoundedLog(log, time.monotonic)
        self._is_closed = False

    def poke(self) -> None:
        """Something may wait. Cheap where nothing does."""
        if self._is_closed:
            return
        for broker_id in self._queue.destinations(self._now_ms()):
            if broker_id != self._own_id and broker_id not in self._tasks:
                task = asyncio.get_running_loop().create_task(self._send(broker_id))
                self._tasks[broker_id] = task
                task.add_done_callback(partial(self._has_ended, broker_id))

    async def close(self) -> None:
        self._is_closed = True
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for broker_id in tuple(self._connections):
            self._drop(broker_id)

    async def _send(self, broker_id: int) -> None:
        """As long as something waits for the broker."""
        while (request := self._queue.next_request(self._now_ms(), broker_id)) is not None:
            is_unknown_there = False
            try:
                connection = await self._connected(broker_id)
                response = await connection.call(request, self._request_timeout_ms)
            except NoCommonVersion as error:
                self._warn(broker_id, error)
                is_unknown_there = True
            except _FAILURES as error:
                self._warn(broker_id, error)
                self._drop(broker_id)
                # A broker that is gone is not to be tried at each turn of the loop.
                await asyncio.sleep(_RECONNECT_BACKOFF_S)
            else:
                self._queue.handle_reply(self._now_ms(), broker_id, response)
                self._on_answer()
                continue
            self._queue.handle_failure(self._now_ms(), broker_id, is_unknown_there=is_unknown_there)
            self._on_answer()

    async def _connected(self, broker_id: int) -> KafkaConnection:
        endpoint = self._endpoint_of(broker_id)
        if endpoint is None:
            raise CannotConnect(f"broker {broker_id}", 0, "it is not registered, or not on this listener")
        known = self._connections.get(broker_id)
        if known is not None and known[0] == endpoint and not known[1].is_lost:
            return known[1]
        self._drop(broker_id)
        connection = await KafkaConnection.connect(
            endpoint.host,
            endpoint.port,
            self._client_id,
            self._request_timeout_ms,
            security=self._security,
        )
        self._connections[broker_id] = (endpoint, connection)
        return connection

    def _drop(self, broker_id: int) -> None:
        known = self._connections.pop(broker_id, None)
        if known is not None:
            known[1].close()

    def _warn(self, broker_id: int, error: Exception) -> None:
        self._warnings.warning("%s to broker %d: %s", self._client_id, broker_id, error)

    def _has_ended(self, broker_id: int, task: asyncio.Task[None]) -> None:
        del self._tasks[broker_id]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s to broker %d failed", self._client_id, broker_id, exc_info=error)
            self._queue.handle_failure(self._now_ms(), broker_id, is_unknown_there=False)
        # What came between the last look and the end of the task.
        self.poke()
