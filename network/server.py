"""A listener for the Kafka protocol. It frames, orders and limits; what a request means is for the handler.

The server itself answers only ApiVersions and SASL. One bad peer never affects
another: a frame, header or body that cannot be read, and an API or version that is not offered, close the
connection it came on, with one line in the log.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from kquorum.network.acceptance import accept_at, close_connections
from kquorum.network.api_versions import NO_FEATURES, ApiVersionsAnswers, Ranges, ServerFeatures
from kquorum.network.authentication import SASL_VERSIONS
from kquorum.network.bounded_log import BoundedLog
from kquorum.network.connection_quota import CreationRate
from kquorum.network.deadlines import check_period_s
from kquorum.network.errors import CannotListen, PortInUse, listen_error
from kquorum.network.limits import ServerCounters, ServerLimits
from kquorum.network.listening import Listening, listening_sockets
from kquorum.network.requests import Admission, Handler, Reply, RequestContext, admit_all
from kquorum.network.security.listener_security import UNSECURED, ListenerSecurity
from kquorum.network.server_connection import ServerConnection
from kquorum.network.server_state import Lease, ServerState, SharedLimits
from kquorum.wire.protocol.apis import ApiKey, is_supported, supported_versions

__all__ = (
    "CannotListen",
    "Handler",
    "KafkaServer",
    "PortInUse",
    "Reply",
    "RequestContext",
    "ServerFeatures",
    "ServerLimits",
    "SharedLimits",
)

_DEFAULT_LIMITS = ServerLimits()
# How often the readers are looked at that others wait for.
_PACE_PERIOD_S = 1.0


class KafkaServer:
    """One listening address.

    `supported` maps each API that the handler answers to its range of versions, both ends included. `shared` are the
    limits that hold for all listeners of a node together; `is_protected` exempts this one from `max.connections` among
    them. `admission` may refuse a request before its body is read.
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
        security: ListenerSecurity | None = None,
        shared: SharedLimits | None = None,
        is_protected: bool = False,
        admission: Admission = admit_all,
        answered_elsewhere: Callable[[], Ranges | None] = lambda: None,
    ) -> None:
        _check_supported(supported)
        served = SASL_VERSIONS | dict(supported)
        offered: dict[int, tuple[int, int]] = dict(served.items())
        offered[ApiKey.API_VERSIONS] = supported_versions(ApiKey.API_VERSIONS)
        self._host = host
        self._port = port
        self._state = ServerState(
            listener_name=listener_name,
            handler=handler,
            supported=offered,
            features=features,
            limits=limits,
            api_versions=ApiVersionsAnswers(served, answered_elsewhere),
            security=security or UNSECURED,
            shared=shared or SharedLimits(),
            warnings=BoundedLog(logging.getLogger("network.server"), time.monotonic),
            rate=CreationRate(limits.max_connection_creation_rate),
            is_protected=is_protected,
            admission=admission,
        )
        self._listening: Listening | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._pace_timer: asyncio.TimerHandle | None = None

    @property
    def bound_port(self) -> int:
        """The port in use, which port 0 leaves to the system. Only between `start` and `stop`."""
        assert self._listening is not None, "the server does not listen"
        return self._listening.bound_port

    @property
    def security(self) -> ListenerSecurity:
        return self._state.security

    @property
    def counters(self) -> ServerCounters:
        return self._state.counters

    async def start(self) -> None:
        """Listen; an empty host means every address of the machine.

        Raises PortInUse or another CannotListen.
        """
        assert self._listening is None, "the server was started before"
        loop = asyncio.get_running_loop()
        try:
            sockets = await listening_sockets(loop, self._host, self._port)
        except OSError as error:
            raise listen_error(self._host, self._port, error) from error

        def make(lease: Lease, transport: asyncio.Transport, certificate: bytes | None) -> ServerConnection:
            return ServerConnection(self._state, loop, lease, transport, certificate)

        self._listening = accept_at(sockets, self._state, loop, make)
        self._check_deadlines(loop)
        self._check_pace(loop)

    async def stop(self) -> None:
        """Accept no more, let the replies under way go out for `drain_timeout_ms` at most, then close all."""
        if self._listening is None:
            return
        listening, self._listening = self._listening, None
        self._state.stopping = True
        listening.close()
        if self._timer is not None:
            self._timer.cancel()
        if self._pace_timer is not None:
            self._pace_timer.cancel()
        await close_connections(self._state)
        self._state.reader.close()
        self._state.importer.close()

    def _check_deadlines(self, loop: asyncio.AbstractEventLoop) -> None:
        now_s = loop.time()
        for connection in tuple(self._state.connections):
            connection.check_deadlines(now_s)
        self._timer = loop.call_later(check_period_s(self._state), self._check_deadlines, loop)

    def _check_pace(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._state.shared.budget.waiting:
            now_s = loop.time()
            for connection in tuple(self._state.connections):
                connection.check_pace(now_s)
        self._pace_timer = loop.call_later(_PACE_PERIOD_S, self._check_pace, loop)


def _check_supported(supported: Mapping[ApiKey, tuple[int, int]]) -> None:
    """Raises ValueError: what is offered must be something that can be read."""
    for api_key, versions in supported.items():
        if versions[0] > versions[1] or not all(is_supported(api_key, version) for version in versions):
            known = supported_versions(api_key)
            raise ValueError(f"{api_key.name} is offered in versions {versions}; versions {known} are known")
