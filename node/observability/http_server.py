"""A small HTTP server for metrics and health: GET and HEAD, one request a connection, and little that a peer can cost.

The server drops a client that sends more than a page of headers, or needs more than a few seconds to send or to read.
When all places are taken, the connection that has been silent longest makes room. A response is made on request.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from kquorum.network.errors import CannotListen, listen_error

log = logging.getLogger("node.http")

MAX_REQUEST_BYTES: Final = 8_192
MAX_CONNECTIONS: Final = 32
REQUEST_TIMEOUT_S: Final = 5.0
REPLY_TIMEOUT_S: Final = 10.0
TEXT: Final = "text/plain; charset=utf-8"
_END_OF_HEAD: Final = b"\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """`query` is what stands behind the question mark; the names of `headers` are in lower case."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    status: HTTPStatus = HTTPStatus.OK
    body: bytes = b""
    content_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)


Route = Callable[[HttpRequest], HttpReply | Awaitable[HttpReply]]


class MetricsCannotListen(CannotListen):
    """The address of the metrics listener could not be bound."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            host, port, reason, "set `kquorum.metrics.listener` to a free address of this machine"
        )


def metrics_listen_error(host: str, port: int, error: OSError) -> MetricsCannotListen:
    """The environment's refusal in our words."""
    return MetricsCannotListen(host, port, listen_error(host, port, error).reason)


class HttpServer:
    """Made and used on the loop, in which a route is called: it is to be quick, or to answer with an awaitable."""

    def __init__(
        self,
        host: str,
        port: int,
        routes: Mapping[str, Route],
        *,
        max_connections: int = MAX_CONNECTIONS,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        reply_timeout_s: float = REPLY_TIMEOUT_S,
    ) -> None:
        self._host = host
        self._port = port
        self._routes = routes
        self._max_connections = max_connections
        self._request_timeout_s = request_timeout_s
        self._reply_timeout_s = reply_timeout_s
        self._server: asyncio.Server | None = None
        # Each with what it runs in; in the order in which they came.
        self._connections: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}
        self._asking: dict[asyncio.StreamWriter, None] = {}

    @property
    def bound_port(self) -> int:
        """The real one also where port 0 was asked for."""
        assert self._server is not None, "the server does not listen"
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    async def start(self) -> None:
        """Raises MetricsCannotListen."""
        try:
            self._server = await asyncio.start_server(
                self._serve, self._host or None, self._port, limit=MAX_REQUEST_BYTES
            )
        except OSError as error:
            raise metrics_listen_error(self._host, self._port, error) from error

    async def stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        tasks = [task for task in self._connections.values() if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections[writer] = asyncio.current_task()
        self._asking[writer] = None
        if len(self._connections) > self._max_connections:
            self._make_room()
        try:
            await self._answer_one(reader, writer)
        except (OSError, TimeoutError, asyncio.CancelledError):
            writer.transport.abort()  # it is gone, or too slow, or this server ends
        finally:
            self._connections.pop(writer, None)
            self._asking.pop(writer, None)
            writer.close()

    def _make_room(self) -> None:
        """Drop the connection that has been open longest without a request; at last the new one itself."""
        slowest = next(iter(self._asking))
        self._asking.pop(slowest)
        slowest.transport.abort()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(self._request_timeout_s):
            request = await _read_request(reader)
        self._asking.pop(writer, None)
        if request is None:
            return
        reply = request if isinstance(request, HttpReply) else await self._reply_to(request)
        if writer.is_closing():
            return  # the connection made room for another one, or was reset: uvloop refuses to write to it
        is_head = isinstance(request, HttpRequest) and request.method == "HEAD"
        writer.write(_head_of(reply) + (b"" if is_head else reply.body))
        async with asyncio.timeout(self._reply_timeout_s):
            await writer.drain()
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _reply_to(self, request: HttpRequest) -> HttpReply:
        if request.method not in ("GET", "HEAD"):
            return _said(
                HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are served", {"Allow": "GET, HEAD"}
            )
        route = self._routes.get(request.path)
        if route is None:
            return _said(HTTPStatus.NOT_FOUND, f"there is {', '.join(self._routes)}")
        try:
            reply = route(request)
            return reply if isinstance(reply, HttpReply) else await reply
        except Exception:
            log.exception("%s could not be answered", request.path)
            return _said(HTTPStatus.INTERNAL_SERVER_ERROR, "the node's log says why")


async def _read_request(reader: asyncio.StreamReader) -> HttpRequest | HttpReply | None:
    """The refusal of what is none; None where nothing was asked."""
    try:
        head = await reader.readuntil(_END_OF_HEAD)
    except asyncio.LimitOverrunError:
        return _said(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"more than {MAX_REQUEST_BYTES} bytes of headers"
        )
    except asyncio.IncompleteReadError as error:
        return _said(HTTPStatus.BAD_REQUEST, "the request is cut short") if error.partial else None
    request = parse_request(head)
    return _said(HTTPStatus.BAD_REQUEST, "this is not HTTP") if request is None else request


def parse_request(head: bytes) -> HttpRequest | None:
    """None for what is not HTTP/1."""
    lines = head.decode("latin-1").split("\r\n")
    parts = lines[0].split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1.") or not parts[1].startswith("/"):
        return None
    path, _, query = parts[1].partition("?")
    headers = dict(line.split(":", 1) for line in lines[1:] if ":" in line)
    return HttpRequest(
        method=parts[0],
        path=path,
        query=query,
        headers={name.strip().lower(): value.strip() for name, value in headers.items()},
    )


def _said(status: HTTPStatus, words: str, headers: Mapping[str, str] | None = None) -> HttpReply:
    return HttpReply(status=status, body=f"{words}\n".encode(), headers=headers or {})


def _head_of(reply: HttpReply) -> bytes:
    lines = [
        f"HTTP/1.1 {reply.status.value} {reply.status.phrase}",
        f"Content-Type: {reply.content_type}",
        f"Content-Length: {len(reply.body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
        *(f"{name}: {value}" for name, value in reply.headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
