"""The connections on which this broker fetches from the leaders that it follows: one for each fetcher of the replica
manager, each with one request under way."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from kquorum.broker.fetch.slices import SLICE_MS
from kquorum.broker.replica.fetcher import Fetcher
from kquorum.broker.replica.replica_manager import FetcherKey, ReplicaManager, RunningFetcher
from kquorum.metadata.image.cluster import Endpoint
from kquorum.network.bounded_log import BoundedLog
from kquorum.network.connection import UNSECURED, KafkaConnection
from kquorum.network.errors import CannotConnect, ConnectionLost, NoCommonVersion, RequestTimedOut
from kquorum.network.security.client_security import ClientSecurity
from kquorum.wire.errors import DecodeError
from kquorum.wire.message_schema import ByVersion, Response
from kquorum.wire.protocol.apis import api_name

log = logging.getLogger("broker.replica")

_FAILURES = (CannotConnect, ConnectionLost, RequestTimedOut, NoCommonVersion, DecodeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchConnections:
    """How the fetchers connect and wait. `request_timeout_ms` is replica.socket.timeout.ms."""

    broker_id: int
    request_timeout_ms: int
    now_ms: Callable[[], int]
    broker_epoch: Callable[[], int]
    security: ClientSecurity = UNSECURED


class ReplicaFetchers:
    """Made and used on the loop. `on_answer` is called after each answer or failure that a fetcher took."""

    def __init__(
        self, replicas: ReplicaManager, connections: FetchConnections, on_answer: Callable[[], None]
    ) -> None:
        self._replicas = replicas
        self._connections = connections
        self._on_answer = on_answer
        self._loops: dict[FetcherKey, FetchLoop] = {}
        self._is_closed = False

    def sync(self) -> None:
        """After each image and each answer: connections for new fetchers, none for those that are gone."""
        if self._is_closed:
            return
        wanted = self._replicas.fetchers
        for key, running in list(self._loops.items()):
            if wanted.get(key) is not running.running:
                running.close()
                del self._loops[key]
        for key, each in wanted.items():
            known = self._loops.get(key)
            if known is None:
                self._loops[key] = FetchLoop(key, each, self._connections, self._on_answer)
            else:
                known.poke()

    async def close(self) -> None:
        self._is_closed = True
        loops, self._loops = self._loops, {}
        for each in loops.values():
            each.close()
        await asyncio.gather(*(each.task for each in loops.values()), return_exceptions=True)


class FetchLoop:
    """Asks one leader again and again, for as long as there is something to fetch."""

    def __init__(
        self,
        key: FetcherKey,
        running: RunningFetcher,
        connections: FetchConnections,
        on_answer: Callable[[], None],
    ) -> None:
        self.running = running
        self._connections = connections
        self._on_answer = on_answer
        self._client_id = f"broker-{connections.broker_id}-fetcher-{key.number}"
        self._connection: KafkaConnection | None = None
        self._poked = asyncio.Event()
        self._warnings = BoundedLog(log, time.monotonic)
        self._loop = asyncio.get_running_loop()
        # What the connection's peer and this side both know, as far as it was asked.
        self._versions: dict[int, int] = {}
        self._awaited: asyncio.Future[Response] | None = None
        self._awaited_key = 0
        self._due_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.task = self._loop.create_task(self._run())
        self.task.add_done_callback(self._has_ended)

    @property
    def fetcher(self) -> Fetcher:
        return self.running.fetcher

    @property
    def endpoint(self) -> Endpoint:
        return self.running.endpoint

    def poke(self) -> None:
        """Its partitions may have changed."""
        self._poked.set()

    def close(self) -> None:
        self.task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._drop()

    async def _run(self) -> None:
        connections = self._connections
        while True:
            request = self.fetcher.next_request(connections.now_ms(), connections.broker_epoch())
            if request is None:
                await self._pause()
                continue
            try:
                connection = await self._connected()
                response = await self._answer_to(connection, cast(ByVersion[Response], request))
            except _FAILURES as error:
                self._warnings.warning(
                    "fetching from broker %d at %s:%d: %s",
                    self.fetcher.source_id,
                    self.endpoint.host,
                    self.endpoint.port,
                    error,
                )
                self._drop()
                self.fetcher.handle_failure(connections.now_ms())
            else:
                try:
                    await self._handle(response)
                except Exception:
                    # One log's trouble must not end the fetching of all that this broker leads.
                    log.exception("an answer of broker %d was not handled", self.fetcher.source_id)
                    self._drop()
                    self.fetcher.handle_failure(connections.now_ms())
            self._on_answer()

    async def _handle(self, response: Response) -> None:
        """The rest of what takes longer than a slice comes in later turns of the loop."""
        now_ms = self._connections.now_ms
        began_ms = now_ms()
        for _ in self.fetcher.handling(began_ms, response):
            if now_ms() - began_ms >= SLICE_MS:
                await asyncio.sleep(0)
                began_ms = now_ms()

    async def _answer_to(self, connection: KafkaConnection, request: ByVersion[Response]) -> Response:
        """As `KafkaConnection.call`, but with one timer for many requests: one of its own for each would cost more than
        to read the answer. Raises what `call` raises."""
        version = self._versions.get(request.api_key)
        if version is None:
            # The first request of its kind on this connection.
            response = await connection.call(request, self._connections.request_timeout_ms)
            self._versions[request.api_key] = await connection.common_version(request.api_key)
            return response
        answer = connection.send_request(request.make(version), version)
        self._await_in_time(answer, request.api_key)
        try:
            return await answer
        finally:
            self._awaited = None

    def _await_in_time(self, answer: "asyncio.Future[Response]", api_key: int) -> None:
        self._awaited, self._awaited_key = answer, api_key
        self._due_s = self._loop.time() + self._connections.request_timeout_ms / 1000
        if self._timer is None:
            self._timer = self._loop.call_at(self._due_s, self._look_at_time)

    def _look_at_time(self) -> None:
        self._timer = None
        answer = self._awaited
        if answer is None or answer.done():
            return
        if self._loop.time() < self._due_s:
            # Of a request that was answered.
            self._timer = self._loop.call_at(self._due_s, self._look_at_time)
            return
        host, port = self.endpoint.host, self.endpoint.port
        timeout_ms = self._connections.request_timeout_ms
        answer.set_exception(RequestTimedOut(host, port, api_name(self._awaited_key), timeout_ms))

    async def _pause(self) -> None:
        self._poked.clear()
        deadline_ms = self.fetcher.next_deadline_ms()
        if deadline_ms is None:
            await self._poked.wait()
            return
        # A millisecond at least: a fetcher that has nothing to ask for must not keep the loop busy.
        pause_ms = max(deadline_ms - self._connections.now_ms(), 1)
        try:
            async with asyncio.timeout(pause_ms / 1000):
                await self._poked.wait()
        except TimeoutError:
            return

    async def _connected(self) -> KafkaConnection:
        if self._connection is None or self._connection.is_lost:
            self._connection = await KafkaConnection.connect(
                self.endpoint.host,
                self.endpoint.port,
                self._client_id,
                self._connections.request_timeout_ms,
                security=self._connections.security,
            )
            self._versions.clear()
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _has_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("broker %d is not fetched from any more", self.fetcher.source_id, exc_info=error)
