"""A channel to whichever controller is active (Kafka's NodeToControllerChannelManager).

Where the active controller is, the local replica knows: a follower or an observer of the log learns its leader first.
A request that meets NOT_CONTROLLER, a lost connection or silence is sent again, to the leader of that time, until its
time is up. Who sends it must be able to bear that: a request whose connection was lost may have been carried out.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kio.schema.errors import ErrorCode

from network.connection import UNSECURED, KafkaConnection
from network.errors import CannotConnect, ConnectionLost, RequestTimedOut
from network.security.client_security import ClientSecurity
from wire.errors import DecodeError
from wire.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kio.static.protocol import RequestPayload

log = logging.getLogger("metadata.controller_channel")

LOOK_AGAIN_MS = 100
RETRY_PAUSE_MS = 50
_NOBODY_KNOWN = "no active controller is known"
_LOST = (CannotConnect, ConnectionLost, RequestTimedOut, DecodeError)


class ControllerAddress(NamedTuple):
    node_id: int
    host: str
    port: int


FindController = Callable[[], ControllerAddress | None]


class ControllerUnavailable(Exception):
    """No active controller answered in time (not definite: an earlier attempt may have been carried out)."""

    def __init__(self, api_key: ApiKey, timeout_ms: int, reason: str) -> None:
        self.reason = reason
        super().__init__(f"no active controller answered {api_key.name} within {timeout_ms} ms: {reason}")


class ControllerChannel:
    """One connection, shared by concurrent requests and answered in order.

    Use a channel for each purpose, so that a slow CreateTopics never holds up a heartbeat.
    """

    def __init__(
        self,
        find_controller: FindController,
        *,
        client_id: str,
        request_timeout_ms: int,
        retry_timeout_ms: int,
        security: ClientSecurity = UNSECURED,
    ) -> None:
        self._security = security
        self._find_controller = find_controller
        self._client_id = client_id
        self._request_timeout_ms = min(request_timeout_ms, retry_timeout_ms)
        self._retry_timeout_ms = retry_timeout_ms
        self._connection: KafkaConnection | None = None
        self._address: ControllerAddress | None = None
        self._connecting = asyncio.Lock()
        self._woken = asyncio.Event()

    async def request(
        self,
        api_key: ApiKey,
        body: "Mapping[str, object] | RequestPayload",
        on_doubt: Callable[[], object] = lambda: None,
    ) -> Any:
        """The response entity. Raises ControllerUnavailable, or NoCommonVersion when the controller is too old.

        `on_doubt` is called after each attempt that may have been carried out though its answer does not say so.
        """
        loop = asyncio.get_running_loop()
        give_up_at_s = loop.time() + self._retry_timeout_ms / 1000
        reason = _NOBODY_KNOWN
        while (left_ms := int((give_up_at_s - loop.time()) * 1000)) > 0:
            address = self._find_controller()
            if address is None:
                await self._pause(min(left_ms, LOOK_AGAIN_MS))
                continue
            timeout_ms, began_s = min(left_ms, self._request_timeout_ms), loop.time()
            try:
                return await self._attempt(address, api_key, body, timeout_ms)
            except _LOST as error:
                if not isinstance(error, CannotConnect):
                    on_doubt()
                # What the last moments were too short for says less than what came before.
                had_less_time = timeout_ms < self._request_timeout_ms and reason != _NOBODY_KNOWN
                used_it_up = (loop.time() - began_s) * 1000 >= timeout_ms - 1
                reason = reason if had_less_time and used_it_up else str(error)
            except _NotControllerError:
                # It may have led when the request came, and another have committed what it wrote.
                on_doubt()
                reason = f"node {address.node_id} is no longer the active controller"
            log.debug("%s will be sent again: %s", api_key.name, reason)
            await self._pause(min(left_ms, RETRY_PAUSE_MS))
        raise ControllerUnavailable(api_key, self._retry_timeout_ms, reason)

    def handle_leader_change(self, _leader_id: int, _leader_epoch: int) -> None:
        """A new leader: requests still waiting at the old one, which may hang, go to the new one at once."""
        address = self._find_controller()
        if address is not None and address != self._address:
            self._forget(self._connection)
        self._woken.set()
        self._woken = asyncio.Event()

    def close(self) -> None:
        self._forget(self._connection)

    async def _attempt(
        self,
        address: ControllerAddress,
        api_key: ApiKey,
        body: "Mapping[str, object] | RequestPayload",
        timeout_ms: int,
    ) -> Any:
        connection = await self._connected(address, timeout_ms)
        try:
            response: Any = await connection.request(api_key, body, timeout_ms)
        except _LOST:
            self._forget(connection)
            raise
        if response.error_code is ErrorCode.not_controller:
            self._forget(connection)
            raise _NotControllerError
        return response

    async def _connected(self, address: ControllerAddress, timeout_ms: int) -> KafkaConnection:
        async with self._connecting:
            current = self._connection
            if current is not None and not current.is_lost and self._address == address:
                return current
            self._forget(current)
            self._connection = await KafkaConnection.connect(
                address.host, address.port, self._client_id, timeout_ms, security=self._security
            )
            self._address = address
            return self._connection

    def _forget(self, connection: KafkaConnection | None) -> None:
        """Close it; a newer connection that took its place meanwhile stays."""
        if connection is None:
            return
        if connection is self._connection:
            self._connection = self._address = None
        connection.close()

    async def _pause(self, pause_ms: int) -> None:
        """Until the time is over or the leader has changed."""
        woken = self._woken
        try:
            async with asyncio.timeout(pause_ms / 1000):
                await woken.wait()
        except TimeoutError:
            return


class _NotControllerError(Exception):
    """The answering node does not lead any more."""
