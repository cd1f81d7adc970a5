"""How many calls of the gRPC services are open at once, of all clients and of each.

gRPC bounds the calls of a connection and the number of connections: together that allows half a million calls. A call
that waits costs little, but a commit wakes every stream that waits for it.
"""

import asyncio
import contextlib
import inspect
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import grpc

from kquorum.metadata.grpc.access import MemberGate, client_of
from kquorum.metadata.grpc.interceptor import Behaviour, WrappingInterceptor, rebuilt_handler


class TooManyCalls(Exception):
    """The text says whose, and which key bounds them."""


class OpenCalls:
    """`clients` are the clients with open calls, by name. Of clients without a principal that share an address,
    `connections` has each connection's calls, by the address and the connection."""

    def __init__(self, most: int, most_of_client: int) -> None:
        self._most = most
        self._most_of_client = most_of_client
        self.open = 0
        self.clients: Counter[str] = Counter()
        self.connections: dict[str, Counter[str]] = {}
        self._none_is_open: asyncio.Future[None] | None = None

    async def wait_until_none(self) -> None:
        """Return when no call is open. One caller at a time."""
        if self.open:
            self._none_is_open = asyncio.get_running_loop().create_future()
            await self._none_is_open

    def take(self, client: str, connection: str | None = None) -> Callable[[], None]:
        """Count a call in; answers how to count it out, once. `connection` is for a client that is only an address.
        Raises TooManyCalls."""
        if self.clients[client] >= self._most_of_client and not self._has_a_part(client, connection):
            raise TooManyCalls(
                f"{client} has {self.clients[client]} calls open at this node, and no more are allowed to one client: "
                "end some, or raise kquorum.grpc.max.open.calls.per.client"
            )
        if self.open >= self._most:
            raise TooManyCalls(
                f"{self._most} calls are open at this node, and no more are allowed to all clients together: ask "
                "another node, or raise kquorum.grpc.max.open.calls"
            )
        self._count(client, connection, 1)
        return lambda: self._count(client, connection, -1)

    def _has_a_part(self, client: str, connection: str | None) -> bool:
        """Whether the connection has less than its part of the calls of its address. It is let in then, so that other
        connections of the address do not shut it out; all of them together have twice as many at the very most."""
        if connection is None or self.clients[client] >= 2 * self._most_of_client:
            return False
        of_address = self.connections.get(client, Counter())
        connections = len(of_address) + (connection not in of_address)
        return of_address[connection] < max(1, self._most_of_client // connections)

    def _count(self, client: str, connection: str | None, change: int) -> None:
        self.open += change
        _add(self.clients, client, change)
        if connection is not None:
            of_address = self.connections.setdefault(client, Counter())
            _add(of_address, connection, change)
            if not of_address:
                del self.connections[client]
        if not self.open and self._none_is_open is not None and not self._none_is_open.done():
            self._none_is_open.set_result(None)

    @contextlib.contextmanager
    def held(self, client: str) -> Iterator[None]:
        """Raises TooManyCalls."""
        give_back = self.take(client)
        try:
            yield
        finally:
            give_back()


def _add(counts: Counter[str], key: str, change: int) -> None:
    counts[key] += change
    if not counts[key]:
        del counts[key]


class BoundedCalls(WrappingInterceptor):
    """For the interceptors of a server: each call is counted for its principal, or for the address and the connection
    of an anonymous client; one above a limit ends with RESOURCE_EXHAUSTED. It comes before the parsing of requests."""

    def __init__(self, calls: OpenCalls, gate: MemberGate | None) -> None:
        super().__init__(lambda handler, _method: rebuilt_handler(handler, self._bounded))
        self._calls = calls
        self._gate = gate

    def _bounded(self, behaviour: Behaviour) -> Behaviour:
        is_stream = inspect.isasyncgenfunction(behaviour)
        return self._generator(behaviour) if is_stream else self._coroutine(behaviour)

    def _coroutine(self, behaviour: Behaviour) -> Behaviour:
        async def bounded(request: Any, context: Any) -> Any:
            give_back = await self._admit(context)
            try:
                return await behaviour(request, context)
            finally:
                give_back()

        return bounded

    def _generator(self, behaviour: Behaviour) -> Behaviour:
        async def bounded(request: Any, context: Any) -> AsyncIterator[Any]:
            give_back = await self._admit(context)
            try:
                async for response in behaviour(request, context):
                    yield response
            finally:
                give_back()

        return bounded

    async def _admit(self, context: Any) -> Callable[[], None]:
        try:
            principal = None if self._gate is None else self._gate.principal_of(context)
            if principal is not None:
                return self._calls.take(principal)
            return self._calls.take(client_of(context), context.peer())
        except TooManyCalls as refusal:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(refusal))
            raise
