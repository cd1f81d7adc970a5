"""A channel to whichever controller is active (Kafka's NodeToControllerChannelManager).

Where the active controller is, the local replica knows: a follower or an observer of the log learns its leader first.
A request that meets NOT_CONTROLLER, a lost connection or silence is sent again, to the leader of that time, until its
time is up. The caller must be able to bear that: a request whose connection was lost may have been carried out.

A request may also be why a controller loses its leadership: one that keeps it from its followers for seconds. So a long
request over which one controller may have lost it is not offered to the next, and no request to more than a few.

Only a limited number of clients' requests is on its way at a time, and a smaller number of each client
(`metadata.adapters.shares`); the others wait here, where they cost the controller nothing.

A request may itself be why the controller closes the connection, such as one larger than the controller's limit. So one
that lost it twice is sent on a connection of its own, where it harms no other, with growing pauses, and finally fails.
"""

import asyncio
import logging
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple

from kquorum.metadata.adapters.shares import Shares
from kquorum.network.connection import UNSECURED, KafkaConnection
from kquorum.network.errors import CannotConnect, ConnectionLost, RequestTimedOut
from kquorum.network.security.client_security import ClientSecurity
from kquorum.wire.errors import DecodeError
from kquorum.wire.message_schema import ByVersion, R, Request
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey

RETRY_PAUSE_MS: Final = 50
# Kafka's `retry.backoff.max.ms`.
RETRY_PAUSE_MAX_MS: Final = 1_000
# After so many lost connections a request is sent on one of its own, and after so many not again.
LOSSES_IN_COMPANY: Final = 2
LOSSES_MAX: Final = 8


class LostConnections:
    """Of one request; those to the controller that lost it last count."""

    def __init__(self) -> None:
        self._count = 0
        self._address: Hashable = None

    def add(self, address: Hashable) -> None:
        self._count = self._count + 1 if address == self._address else 1
        self._address = address

    @property
    def are_too_many(self) -> bool:
        return self._count >= LOSSES_MAX

    @property
    def pause_ms(self) -> int:
        """Before the next attempt."""
        return min(RETRY_PAUSE_MS << max(self._count - 1, 0), RETRY_PAUSE_MAX_MS)

    def demand_solitude(self, address: Hashable) -> bool:
        """Whether other requests are to be spared at this controller."""
        return self._count >= LOSSES_IN_COMPANY and address == self._address


log = logging.getLogger("metadata.controller_channel")

LOOK_AGAIN_MS = 100
# After so many controllers that may have lost their leadership over a request it is not offered to another one.
LEADERS_MAX = 3
# A controller that says so late that it does not lead had the request while it led.
_LATE_ANSWER_S = 0.5
# How many requests with a share are on their way at a time: of one name, and of all.
SHARE_OF_ONE, SHARE_OF_ALL = 16, 64
_NONE_KNOWN = "no active controller is known"
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


class AlreadyDone(Exception):
    """An attempt whose answer was lost has carried the request out, so it is not sent again."""


class ClientGone(Exception):
    """The client had closed its connection before its request was sent, so the request was dropped."""


@dataclass(frozen=True, slots=True)
class _Sending(Generic[R]):
    """What is sent in each attempt."""

    request: Request[R] | ByVersion[R]
    header_fields: tuple[tuple[int, bytes], ...]
    is_for_the_leader: Callable[[R], bool]


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
        self._alone: dict[KafkaConnection, ControllerAddress] = {}
        self._shares = Shares(SHARE_OF_ALL, SHARE_OF_ONE)

    async def call(
        self,
        request: Request[R] | ByVersion[R],
        on_doubt: Callable[[], object] = lambda: None,
        *,
        is_done: Callable[[], bool] = lambda: False,
        is_for_the_leader: Callable[[R], bool] = lambda _response: False,
        header_fields: tuple[tuple[int, bytes], ...] = (),
        is_long: bool = False,
        share: str | None = None,
        is_gone: Callable[[], bool] = lambda: False,
    ) -> R:
        """The response. Raises ControllerUnavailable, or NoCommonVersion when the controller is too old for the API or
        for a field that is set.

        `on_doubt` is called after each attempt that may have been carried out though its answer does not say so.
        Before each attempt `is_done` says whether one before it was, and AlreadyDone is raised. `is_for_the_leader`
        says of a response without NOT_CONTROLLER whether a node gave it that does not lead. `header_fields` are tagged
        fields for the request's header. `is_long`: a controller takes long to handle the request. `share` is the
        name under which the request waits for its turn; with None it does not wait. The wait is part of the request's
        time, and ClientGone is raised if `is_gone` after it.
        """
        began_at_s = asyncio.get_running_loop().time()
        sending = _Sending(request, header_fields, is_for_the_leader)
        if share is None:
            return await self._send_until(began_at_s, sending, on_doubt, is_done, is_long)
        try:
            async with asyncio.timeout_at(began_at_s + self._retry_timeout_ms / 1000):
                await self._shares.take(share)
        except TimeoutError:
            detail = f"other requests of {share}, or of all clients, were before it"
            raise ControllerUnavailable(ApiKey(request.api_key), self._retry_timeout_ms, detail) from None
        try:
            if is_gone():
                raise ClientGone
            return await self._send_until(began_at_s, sending, on_doubt, is_done, is_long)
        finally:
            self._shares.give_back(share)

    async def _send_until(
        self,
        began_at_s: float,
        sending: _Sending[R],
        on_doubt: Callable[[], object],
        is_done: Callable[[], bool],
        is_long: bool,
    ) -> R:
        """Until it is answered, or its time is up."""
        api_key = ApiKey(sending.request.api_key)
        most_leaders = 1 if is_long else LEADERS_MAX
        had_it: set[ControllerAddress] = set()
        loop = asyncio.get_running_loop()
        give_up_at_s = began_at_s + self._retry_timeout_ms / 1000
        losses, reason = LostConnections(), _NONE_KNOWN
        while (left_ms := int((give_up_at_s - loop.time()) * 1000)) > 0 and not losses.are_too_many:
            if is_done():
                raise AlreadyDone
            address = self._find_controller()
            if address is None:
                await self._pause(min(left_ms, LOOK_AGAIN_MS))
                continue
            if len(had_it) >= most_leaders and address not in had_it:
                detail = f"{len(had_it)} controllers may have lost the leadership over it; the last: {reason}"
                log.warning("%s is not sent again: %s", api_key.name, detail)
                raise ControllerUnavailable(api_key, int((loop.time() - began_at_s) * 1000), detail)
            timeout_ms, sent_at_s = min(left_ms, self._request_timeout_ms), loop.time()
            attempt = self._attempt_alone if losses.demand_solitude(address) else self._attempt
            try:
                return await attempt(address, sending, timeout_ms)
            except _LOST as error:
                if isinstance(error, ConnectionLost | DecodeError):
                    losses.add(address)
                if not isinstance(error, CannotConnect):
                    on_doubt()
                    had_it.add(address)
                # What the last moments were too short for says less than what came before.
                had_less_time = timeout_ms < self._request_timeout_ms and reason != _NONE_KNOWN
                used_it_up = (loop.time() - sent_at_s) * 1000 >= timeout_ms - 1
                reason = reason if had_less_time and used_it_up else str(error)
            except _NotControllerError:
                # It may have led when the request came, and another have committed what it wrote.
                on_doubt()
                if loop.time() - sent_at_s >= _LATE_ANSWER_S:
                    had_it.add(address)
                reason = f"node {address.node_id} is no longer the active controller"
            log.debug("%s will be sent again: %s", api_key.name, reason)
            await self._pause(min(left_ms, losses.pause_ms))
        if not losses.are_too_many:
            raise ControllerUnavailable(api_key, self._retry_timeout_ms, reason)
        log.warning(
            "%s is not sent again, %d connections were lost with it: %s", api_key.name, LOSSES_MAX, reason
        )
        raise ControllerUnavailable(api_key, int((loop.time() - began_at_s) * 1000), reason)

    @property
    def controller_versions(self) -> Mapping[int, tuple[int, int]] | None:
        """The versions of each API that the controller offers; None while none is connected, or it was not asked."""
        return None if self._connection is None else self._connection.peer_versions

    def handle_leader_change(self, _leader_id: int, _leader_epoch: int) -> None:
        """A new leader: requests still waiting at the old one, which may hang, go to the new one at once."""
        address = self._find_controller()
        if address is not None and address != self._address:
            self._forget(self._connection)
        for connection, connected_to in self._alone.items():
            if address not in (None, connected_to):
                connection.close()
        self._woken.set()
        self._woken = asyncio.Event()

    def close(self) -> None:
        self._forget(self._connection)
        for connection in self._alone:
            connection.close()

    async def _attempt(
        self,
        address: ControllerAddress,
        sending: _Sending[R],
        timeout_ms: int,
    ) -> R:
        connection = await self._connected(address, timeout_ms)
        try:
            return await _ask(connection, sending, timeout_ms)
        except (*_LOST, _NotControllerError):
            self._forget(connection)
            raise

    async def _attempt_alone(self, address: ControllerAddress, sending: _Sending[R], timeout_ms: int) -> R:
        """A connection that is lost before the request was sent on it counts as none."""
        connection = await self._connect(address, timeout_ms)
        self._alone[connection] = address
        try:
            try:
                async with asyncio.timeout(timeout_ms / 1000):
                    await connection.common_version(sending.request.api_key)
            except (TimeoutError, ConnectionLost) as error:
                reason = error.reason if isinstance(error, ConnectionLost) else f"silent for {timeout_ms} ms"
                raise CannotConnect(address.host, address.port, reason) from None
            return await _ask(connection, sending, timeout_ms)
        finally:
            del self._alone[connection]
            connection.close()

    async def _connected(self, address: ControllerAddress, timeout_ms: int) -> KafkaConnection:
        async with self._connecting:
            current = self._connection
            if current is not None and not current.is_lost and self._address == address:
                return current
            self._forget(current)
            self._connection = await self._connect(address, timeout_ms)
            self._address = address
            return self._connection

    async def _connect(self, address: ControllerAddress, timeout_ms: int) -> KafkaConnection:
        return await KafkaConnection.connect(
            address.host, address.port, self._client_id, timeout_ms, security=self._security
        )

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


async def _ask(connection: KafkaConnection, sending: _Sending[R], timeout_ms: int) -> R:
    response = await connection.call(sending.request, timeout_ms, sending.header_fields)
    if getattr(response, "error_code", None) is ErrorCode.not_controller or sending.is_for_the_leader(
        response
    ):
        raise _NotControllerError
    return response


class _NotControllerError(Exception):
    """The answering node does not lead any more."""
