"""A listener for the Kafka protocol. It frames, orders and limits; what a request means is for the handler.

ApiVersions alone is answered here, for it only says what else may be asked. One bad peer never touches
another: a frame, header or body that cannot be read, and an API or version that is not offered, close the
connection it came on, with one line in the log.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping

from network.api_versions import NO_FEATURES, ApiVersionsAnswers, ServerFeatures
from network.errors import CannotListen, PortInUse, listen_error
from network.limits import ServerCounters, ServerLimits
from network.requests import Handler, Reply, RequestContext
from network.server_connection import ServerConnection, ServerState
from wire.protocol.apis import ApiKey, is_supported, supported_versions

__all__ = (
    "CannotListen",
    "Handler",
    "KafkaServer",
    "PortInUse",
    "Reply",
    "RequestContext",
    "ServerFeatures",
    "ServerLimits",
)

_DEFAULT_LIMITS = ServerLimits()
_ACCEPT_QUEUE = 1024
_IDLE_CHECKS_PER_PERIOD = 4


class KafkaServer:
    """One listening address.

    `supported` says which versions of which APIs the handler answers, ends included.
    """

    def __init__(
        self,
        *,
        host: str,
        port: int,
        handler: Handler,
        supported: Mapping[ApiKey, tuple[int, int]],
        listener_name: str,
        limits: ServerLimits = _DEFAULT_LIMITS,
        features: Callable[[], ServerFeatures] = lambda: NO_FEATURES,
    ) -> None:
        _check_supported(supported)
        offered: dict[int, tuple[int, int]] = dict(supported.items())
        offered[ApiKey.API_VERSIONS] = supported_versions(ApiKey.API_VERSIONS)
        self._host = host
        self._port = port
        self._state = ServerState(
            listener_name=listener_name,
            handler=handler,
            supported=offered,
            features=features,
            limits=limits,
            api_versions=ApiVersionsAnswers(supported),
        )
        self._server: asyncio.Server | None = None
        self._idle_timer: asyncio.TimerHandle | None = None

    @property
    def bound_port(self) -> int:
        """The port in use, which port 0 leaves to the system. Only between `start` and `stop`."""
        assert self._server is not None, "the server does not listen"
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def counters(self) -> ServerCounters:
        return self._state.counters

    async def start(self) -> None:
        """Listen; an empty host means every address of the machine.

        Raises PortInUse or another CannotListen.
        """
        assert self._server is None, "the server was started before"
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: ServerConnection(self._state, loop),
                self._host or None,
                self._port,
                backlog=_ACCEPT_QUEUE,
            )
        except OSError as error:
            raise listen_error(self._host, self._port, error) from error
        self._check_idle(loop)

    async def stop(self) -> None:
        """Accept no more, let the replies under way go out for `drain_timeout_ms` at most, then close all."""
        if self._server is None:
            return
        server, self._server = self._server, None
        self._state.stopping = True
        server.close()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        await self._close_connections()
        await server.wait_closed()

    async def _close_connections(self) -> None:
        connections = tuple(self._state.connections)
        for connection in connections:
            connection.drain()
        all_closed = asyncio.gather(*(connection.closed for connection in connections))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(all_closed), self._state.limits.drain_timeout_ms / 1000)
        for connection in tuple(self._state.connections):
            connection.abort()
        await all_closed

    def _check_idle(self, loop: asyncio.AbstractEventLoop) -> None:
        period_s = self._state.limits.max_idle_ms / 1000
        for connection in tuple(self._state.connections):
            if connection.is_idle_since(loop.time() - period_s):
                self._state.counters.idle_connections_closed += 1
                connection.close()
        self._idle_timer = loop.call_later(period_s / _IDLE_CHECKS_PER_PERIOD, self._check_idle, loop)


def _check_supported(supported: Mapping[ApiKey, tuple[int, int]]) -> None:
    """Raises ValueError: what is offered must be something that can be read."""
    for api_key, versions in supported.items():
        if versions[0] > versions[1] or not all(is_supported(api_key, version) for version in versions):
            known = supported_versions(api_key)
            raise ValueError(f"{api_key.name} is offered in versions {versions}; versions {known} are known")
