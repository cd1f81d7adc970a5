"""The core's requests to other replicas, in the Kafka protocol: a connection to one peer for one kind of request, made
when it is needed and made again after a while when it is lost.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from kquorum.network.bounded_log import BoundedLog
from kquorum.network.connection import UNSECURED, KafkaConnection
from kquorum.network.errors import AuthenticationFailed, CannotConnect, NoCommonVersion
from kquorum.network.security.client_security import ClientSecurity
from kquorum.raft.adapters.driver_ports import Receive
from kquorum.raft.adapters.kafka_codec.codec import (
    CALLED_APIS,
    KafkaResponse,
    api_key_of,
    decode_response,
    encode_request,
)
from kquorum.raft.inputs import FailureReason, RequestFailed, ResponseReceived
from kquorum.raft.messages import FetchRequest
from kquorum.raft.ready import OutboundRequest
from kquorum.raft.voters import Endpoint, VoterSet
from kquorum.wire.errors import DecodeError, UnsupportedVersion
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey

_FIRST_BOOTSTRAP_ID: Final = -2
# Kafka's `connections.max.idle.ms`.
DEFAULT_IDLE_TIMEOUT_MS: Final = 600_000
logger = logging.getLogger(__name__)
_FIRST_RECONNECT_BACKOFF_MS = 50
_LAST_RECONNECT_BACKOFF_MS = 500


class PeerConnection:
    """Requests sent while connecting wait for the connection; those sent while backing off fail at once.

    Failing at once lets the core turn to another replica; it has its own back-off between tries.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        client_id: str,
        request_timeout_ms: int,
        receive: Receive,
        security: ClientSecurity = UNSECURED,
    ) -> None:
        self._endpoint = endpoint
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._receive = receive
        self._security = security
        self._loop = asyncio.get_running_loop()
        self._connection: KafkaConnection | None = None
        self._versions: Mapping[ApiKey, int] = {}
        self._connecting: asyncio.Task[None] | None = None
        self._waiting: list[OutboundRequest] = []
        self._backoff_ms = _FIRST_RECONNECT_BACKOFF_MS
        self._retry_at = 0.0
        self._is_closed = False
        # The peer is asked again at once, so that one which always sends garbage would fill the log.
        self._warnings = BoundedLog(logger, self._loop.time)
        self._last_used = self._loop.time()
        # The requests without an answer, in their order, each with the time at which it is late. One timer is for all.
        self._awaited: dict[int, tuple[KafkaConnection, OutboundRequest, float]] = {}
        self._last_number = 0
        self._timer: asyncio.TimerHandle | None = None
        # Why the last attempt to connect failed, as long as none has succeeded since.
        self.trouble: str | None = None

    def leads_to(self, endpoint: Endpoint) -> bool:
        """Whether this is the way to `endpoint`; by what name the listener goes does not matter."""
        return (endpoint.host, endpoint.port) == (self._endpoint.host, self._endpoint.port)

    def idle_ms(self) -> float:
        """How long ago a request was sent, or the connection made."""
        return (self._loop.time() - self._last_used) * 1000

    def send(self, request: OutboundRequest) -> None:
        """Send now or when connected; `receive` gets the outcome, never before this returns."""
        self._last_used = self._loop.time()
        if self._connection is not None and not self._connection.is_lost:
            self._transmit(self._connection, request)
        elif self._connecting is not None:
            self._waiting.append(request)
        elif self._is_closed or self._loop.time() < self._retry_at:
            self._fail_soon(request, FailureReason.DISCONNECTED)
        else:
            self._waiting.append(request)
            self._connecting = self._loop.create_task(self._connect())

    def close(self) -> None:
        """Drop the connection; what is under way fails as disconnected."""
        self._is_closed = True
        if self._connecting is not None:
            self._connecting.cancel()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._connection is not None:
            self._connection.close()

    # Connecting

    async def _connect(self) -> None:
        endpoint = self._endpoint
        try:
            connection = await KafkaConnection.connect(
                endpoint.host,
                endpoint.port,
                self._client_id,
                self._request_timeout_ms,
                security=self._security,
            )
            await self._agree_on_versions(connection)
        except Exception as error:  # noqa: BLE001 - whatever it is, the peer cannot be reached for now
            self._connect_failed(error)
        else:
            self._connected(connection)
        finally:
            self._connecting = None
            self._fail_waiting()

    async def _agree_on_versions(self, connection: KafkaConnection) -> None:
        try:
            async with asyncio.timeout(self._request_timeout_ms / 1000):
                self._versions = await _common_versions(connection)
        except BaseException:
            connection.close()
            raise

    def _connected(self, connection: KafkaConnection) -> None:
        logger.debug("connected to %s:%d", self._endpoint.host, self._endpoint.port)
        self._connection = connection
        self.trouble = None
        self._backoff_ms = _FIRST_RECONNECT_BACKOFF_MS
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            self._transmit(connection, request)

    def _connect_failed(self, error: Exception) -> None:
        trouble = error.reason if isinstance(error, CannotConnect) else str(error) or "timed out"
        # What only an operator can put right is said once, and again when it changes.
        is_news = isinstance(error, AuthenticationFailed) and trouble != self.trouble
        level = logging.WARNING if is_news else logging.DEBUG
        logger.log(level, "cannot reach %s:%d: %s", self._endpoint.host, self._endpoint.port, trouble)
        self.trouble = trouble
        self._retry_at = self._loop.time() + self._backoff_ms / 1000
        self._backoff_ms = min(2 * self._backoff_ms, _LAST_RECONNECT_BACKOFF_MS)

    def _fail_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            self._fail_soon(request, FailureReason.DISCONNECTED)

    # Requests

    def _transmit(self, connection: KafkaConnection, outbound: OutboundRequest) -> None:
        api_key = api_key_of(outbound.request)
        version = self._versions.get(api_key)
        number = self._last_number = self._last_number + 1
        try:
            if version is None:
                raise UnsupportedVersion(f"the peer knows no version of {api_key.name} that is ours")
            request = encode_request(outbound.request, version)
            connection.ask(request, version, partial(self._completed, number))
        except UnsupportedVersion:
            self._fail_soon(outbound, FailureReason.UNSUPPORTED_VERSION)
            return
        due_s = self._loop.time() + self._request_timeout_ms / 1000
        self._awaited[number] = connection, outbound, due_s
        self._watch_first()

    def _look_for_late(self) -> None:
        """Responses come in order, so whatever is behind a late one would be late as well: begin afresh. What was
        behind it on its connection fails as disconnected."""
        self._timer = None
        number = next(iter(self._awaited), None)
        if number is None:
            return
        connection, outbound, due_s = self._awaited[number]
        if due_s <= self._loop.time():
            del self._awaited[number]
            connection.close()
            self._receive(
                RequestFailed(outbound.correlation_id, outbound.destination_id, FailureReason.TIMED_OUT)
            )
        self._watch_first()

    def _watch_first(self) -> None:
        if self._awaited and self._timer is None and not self._is_closed:
            _, _, due_s = next(iter(self._awaited.values()))
            self._timer = self._loop.call_at(due_s, self._look_for_late)

    def _completed(self, number: int, response: KafkaResponse | None, error: Exception | None) -> None:
        awaited = self._awaited.pop(number, None)
        if awaited is None:
            return
        connection, outbound, _ = awaited
        if response is not None:
            self._answered(connection, outbound, response)
            return
        if isinstance(error, DecodeError):
            self._distrust(connection, error)
        self._fail(outbound, FailureReason.DISCONNECTED)

    def _answered(
        self, connection: KafkaConnection, outbound: OutboundRequest, answer: KafkaResponse
    ) -> None:
        try:
            response = decode_response(api_key_of(outbound.request), answer, self._endpoint.listener)
        except DecodeError as error:
            self._distrust(connection, error)
            self._fail(outbound, FailureReason.DISCONNECTED)
            return
        if response.error is ErrorCode.unsupported_version and getattr(response, "is_top_level", False):
            self._fail(outbound, FailureReason.UNSUPPORTED_VERSION)
            return
        self._receive(ResponseReceived(outbound.correlation_id, outbound.destination_id, response))

    def _distrust(self, connection: KafkaConnection, error: DecodeError) -> None:
        self._warnings.warning(
            "%s:%d sent a response that cannot be used: %s", self._endpoint.host, self._endpoint.port, error
        )
        connection.close()

    def _fail_soon(self, outbound: OutboundRequest, reason: FailureReason) -> None:
        self._loop.call_soon(self._fail, outbound, reason)

    def _fail(self, outbound: OutboundRequest, reason: FailureReason) -> None:
        self._receive(RequestFailed(outbound.correlation_id, outbound.destination_id, reason))


async def _common_versions(connection: KafkaConnection) -> dict[ApiKey, int]:
    """The version to use of each API; an API that the peer does not offer is absent."""
    versions = {}
    for api_key, (lowest, highest) in CALLED_APIS.items():
        try:
            version = min(highest, await connection.common_version(api_key))
        except NoCommonVersion:
            continue
        if version >= lowest:
            versions[api_key] = version
    return versions


class KafkaTransport:
    """Satisfies raft.adapters.driver_ports.Transport.

    Each peer has two connections, one for fetches alone: responses of a connection come in the order of its
    requests, so a vote behind a parked fetch would wait for it. When a peer turns up at another endpoint, its
    connection to the old one is closed; one that was not used for long is closed too, so those of replicas that
    left the quorum do not stay. Built and used in the loop.
    """

    def __init__(
        self,
        node_id: int,
        endpoints: Mapping[int, Endpoint],
        request_timeout_ms: int,
        receive: Receive,
        idle_timeout_ms: int = DEFAULT_IDLE_TIMEOUT_MS,
        annotation: Callable[[], bytes] = lambda: b"",
        security: ClientSecurity = UNSECURED,
    ) -> None:
        """`endpoints` by destination id (see `endpoints_of`) are asked where a request does not say where it goes;
        `receive` is the driver's; `annotation` is what a Fetch is to carry now."""
        self._endpoints = endpoints
        self._client_id = f"raft-client-{node_id}"
        self._request_timeout_ms = request_timeout_ms
        self._receive = receive
        self._idle_timeout_ms = idle_timeout_ms
        self._annotation = annotation
        self._security = security
        self._connections: dict[tuple[int, bool], PeerConnection] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    def why_unreachable(self, destination_id: int) -> str | None:
        """Why the last attempt to connect to a node failed, for a message; None if there is a connection, or none
        was wanted."""
        connections = (self._connections.get((destination_id, is_fetch)) for is_fetch in (False, True))
        return next(
            (
                connection.trouble
                for connection in connections
                if connection is not None and connection.trouble is not None
            ),
            None,
        )

    def send(self, request: OutboundRequest) -> None:
        """`receive` gets the outcome, never before this returns."""
        endpoint = request.endpoint or self._endpoints.get(request.destination_id)
        if endpoint is None or self._is_closed:
            self._fail_soon(request)
            return
        if isinstance(request.request, FetchRequest):
            request = OutboundRequest(
                request.correlation_id,
                request.destination_id,
                request.request.with_annotation(self._annotation()),
                request.endpoint,
            )
        self._connection_to(request, endpoint).send(request)

    def _fail_soon(self, request: OutboundRequest) -> None:
        """A leader may be known by its id alone, where an old peer named it: the core has to ask another node."""
        logger.debug("node %d cannot be reached: its endpoint is not known", request.destination_id)
        outcome = RequestFailed(request.correlation_id, request.destination_id, FailureReason.DISCONNECTED)
        asyncio.get_running_loop().call_soon(self._receive, outcome)

    def _connection_to(self, request: OutboundRequest, endpoint: Endpoint) -> PeerConnection:
        key = (request.destination_id, isinstance(request.request, FetchRequest))
        connection = self._connections.get(key)
        if connection is not None and not connection.leads_to(endpoint):
            logger.info("node %d is now at %s:%d", request.destination_id, endpoint.host, endpoint.port)
            connection.close()
            connection = None
        if connection is None:
            connection = PeerConnection(
                endpoint, self._client_id, self._request_timeout_ms, self._receive, self._security
            )
            self._connections[key] = connection
            self._sweep_later()
        return connection

    def _sweep_later(self) -> None:
        if self._sweep is None:
            delay_s = self._idle_timeout_ms / 2000
            self._sweep = asyncio.get_running_loop().call_later(delay_s, self._close_idle_connections)

    def _close_idle_connections(self) -> None:
        self._sweep = None
        idle = [
            key
            for key, connection in self._connections.items()
            if connection.idle_ms() >= self._idle_timeout_ms
        ]
        for key in idle:
            self._connections.pop(key).close()
        if self._connections:
            self._sweep_later()

    def close(self) -> None:
        """Drop all connections; what is under way fails as disconnected, and so does what comes after."""
        self._is_closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in self._connections.values():
            connection.close()


def endpoints_of(voters: VoterSet, bootstrap_servers: Sequence[Endpoint] = ()) -> dict[int, Endpoint]:
    """Where each destination listens: voters by node id, bootstrap servers as -2, -3, ... in their order."""
    known = {voter.key.id: voter.endpoints[0] for voter in voters if voter.endpoints}
    servers = {_FIRST_BOOTSTRAP_ID - index: server for index, server in enumerate(bootstrap_servers)}
    return known | servers
