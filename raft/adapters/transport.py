"""Requests to the peers of the quorum over the Kafka protocol.

Each peer has two connections: one for fetches, which the leader holds back until there is something to tell,
and one for everything else. Responses of a connection come in order, so a parked fetch would hold up a vote.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from network.connection import KafkaConnection
from network.errors import CannotConnect, ConnectionLost, NoCommonVersion, RequestTimedOut
from raft.adapters.kafka_codec.codec import RAFT_APIS, api_key_of, decode_response, encode_request
from raft.inputs import FailureReason, Input, RequestFailed, ResponseReceived
from raft.messages import FetchRequest
from raft.ready import OutboundRequest
from raft.voters import Endpoint
from wire.errors import DecodeError, UnsupportedVersion
from wire.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kio.static.protocol import ResponsePayload

log = logging.getLogger("raft.transport")

RECONNECT_BACKOFF_MS = 50
RECONNECT_BACKOFF_MS_MAX = 500


class KafkaTransport:
    """Implements the driver's `Transport`; outcomes go to `receive` as inputs."""

    def __init__(
        self,
        *,
        client_id: str,
        endpoints: Mapping[int, Endpoint],
        receive: Callable[[Input], None],
        request_timeout_ms: int,
    ) -> None:
        self._client_id = client_id
        self._endpoints = endpoints
        self._receive = receive
        self._request_timeout_ms = request_timeout_ms
        self._lanes: dict[tuple[int, bool], Lane] = {}

    def send(self, outbound: OutboundRequest) -> None:
        key = (outbound.destination_id, isinstance(outbound.request, FetchRequest))
        lane = self._lanes.get(key)
        if lane is None:
            endpoint = self._endpoints[outbound.destination_id]
            lane = Lane(endpoint, self._client_id, self._receive, self._request_timeout_ms)
            self._lanes[key] = lane
        lane.send(outbound)

    def close(self) -> None:
        for lane in self._lanes.values():
            lane.close()


class Lane:
    """One connection to one peer, made when it is first needed and made anew after it was lost."""

    def __init__(
        self, endpoint: Endpoint, client_id: str, receive: Callable[[Input], None], request_timeout_ms: int
    ) -> None:
        self._endpoint = endpoint
        self._client_id = client_id
        self._receive = receive
        self._request_timeout_ms = request_timeout_ms
        self._loop = asyncio.get_running_loop()
        self._connection: KafkaConnection | None = None
        self._versions: dict[ApiKey, int] = {}
        self._connecting: asyncio.Task[None] | None = None
        self._backoff_ms = RECONNECT_BACKOFF_MS
        self._closed_until = 0.0
        self._is_closed = False

    def send(self, outbound: OutboundRequest) -> None:
        if self._is_closed:
            return
        if self._connection is not None and not self._connection.is_lost:
            self._send_on(self._connection, outbound)
        elif self._connecting is not None or self._loop.time() < self._closed_until:
            self._loop.call_soon(self._fail, outbound, FailureReason.DISCONNECTED)
        else:
            self._connecting = self._loop.create_task(self._connect_and_send(outbound))

    def close(self) -> None:
        self._is_closed = True
        if self._connecting is not None:
            self._connecting.cancel()
        if self._connection is not None:
            self._connection.close()

    async def _connect_and_send(self, outbound: OutboundRequest) -> None:
        try:
            connection = await self._connect()
        except (CannotConnect, ConnectionLost, RequestTimedOut, TimeoutError) as error:
            log.debug("node %d: %s", outbound.destination_id, error)
            self._closed_until = self._loop.time() + self._backoff_ms / 1000
            self._backoff_ms = min(2 * self._backoff_ms, RECONNECT_BACKOFF_MS_MAX)
            self._fail(outbound, FailureReason.DISCONNECTED)
            return
        finally:
            self._connecting = None
        self._backoff_ms = RECONNECT_BACKOFF_MS
        self._connection = connection
        self._send_on(connection, outbound)

    async def _connect(self) -> KafkaConnection:
        async with asyncio.timeout(self._request_timeout_ms / 1000):
            host, port = self._endpoint.host, self._endpoint.port
            connection = await KafkaConnection.connect(host, port, self._client_id, self._request_timeout_ms)
            self._versions = {}
            for api_key, (_, ours_max) in RAFT_APIS.items():
                try:
                    self._versions[api_key] = min(ours_max, await connection.common_version(api_key))
                except NoCommonVersion:
                    continue
            return connection

    def _send_on(self, connection: KafkaConnection, outbound: OutboundRequest) -> None:
        api_key = api_key_of(outbound.request)
        try:
            version = self._versions[api_key]
            future = connection.send(api_key, version, encode_request(outbound.request, version))
        except (KeyError, UnsupportedVersion):
            self._loop.call_soon(self._fail, outbound, FailureReason.UNSUPPORTED_VERSION)
            return
        # A peer that hangs holds up all behind it: after the timeout the connection is given up, not the request.
        watchdog = self._loop.call_later(self._request_timeout_ms / 1000, connection.close)
        future.add_done_callback(lambda done: self._answered(outbound, api_key, watchdog, done))

    def _answered(
        self,
        outbound: OutboundRequest,
        api_key: ApiKey,
        watchdog: asyncio.TimerHandle,
        done: "asyncio.Future[ResponsePayload]",
    ) -> None:
        watchdog.cancel()
        if done.cancelled() or (done.exception() is not None and self._is_closed):
            return
        try:
            response = decode_response(api_key, done.result())
        except (ConnectionLost, DecodeError) as error:
            log.debug("node %d: %s", outbound.destination_id, error)
            self._fail(outbound, FailureReason.DISCONNECTED)
            return
        self._receive(ResponseReceived(outbound.correlation_id, outbound.destination_id, response))

    def _fail(self, outbound: OutboundRequest, reason: FailureReason) -> None:
        if not self._is_closed:
            self._receive(RequestFailed(outbound.correlation_id, outbound.destination_id, reason))
