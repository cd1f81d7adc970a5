"""The HTTP server for those who look on, at real sockets: what it answers, and what a bad peer cannot do to it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import pytest
import uvloop

from kquorum.node.observability.http_server import (
    MAX_REQUEST_BYTES,
    HttpReply,
    HttpRequest,
    HttpServer,
    MetricsCannotListen,
    Route,
    parse_request,
)

HOST = "127.0.0.1"
DEADLINE_S = 20.0


def broken(_: HttpRequest) -> HttpReply:
    raise ValueError("secret words")


async def later(request: HttpRequest) -> HttpReply:
    await asyncio.sleep(0)
    return HttpReply(body=b"later") if request.query != "never" else broken(request)


ROUTES: dict[str, Route] = {
    "/later": later,
    "/hello": lambda request: HttpReply(body=f"hello {request.query}".encode()),
    "/broken": broken,
    "/big": lambda _: HttpReply(body=b"x" * 50_000_000),
}


def run(work: Callable[[HttpServer], Awaitable[Any]], **limits: Any) -> Any:
    async def main() -> Any:
        async with serving(**limits) as server:
            return await work(server)

    return asyncio.run(asyncio.wait_for(main(), DEADLINE_S))


@asynccontextmanager
async def serving(**limits: Any) -> AsyncIterator[HttpServer]:
    server = HttpServer(HOST, 0, ROUTES, **limits)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def exchange(server: HttpServer, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(HOST, server.bound_port)
    writer.write(data)
    answer = await reader.read()
    writer.close()
    return answer


def ask(data: bytes, **limits: Any) -> bytes:
    answer: bytes = run(lambda server: exchange(server, data), **limits)
    return answer


def test_a_get_has_its_body_and_a_head_only_its_length() -> None:
    got = ask(b"GET /hello?you HTTP/1.1\r\nHost: x\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 200 OK\r\n")
    assert got.endswith(b"\r\n\r\nhello you")
    assert ask(b"GET /later HTTP/1.1\r\n\r\n").endswith(b"\r\n\r\nlater")
    head = ask(b"HEAD /hello?you HTTP/1.0\r\n\r\n")
    assert b"Content-Length: 9\r\n" in head
    assert head.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"POST /hello HTTP/1.1", HTTPStatus.METHOD_NOT_ALLOWED),
        (b"GET /elsewhere HTTP/1.1", HTTPStatus.NOT_FOUND),
        (b"GET /broken HTTP/1.1", HTTPStatus.INTERNAL_SERVER_ERROR),
        (b"GET /later?never HTTP/1.1", HTTPStatus.INTERNAL_SERVER_ERROR),
        (b"\x16\x03\x01\x02\x00\x01", HTTPStatus.BAD_REQUEST),
        (b"GET /hello", HTTPStatus.BAD_REQUEST),
        (b"GET http://other/ HTTP/1.1", HTTPStatus.BAD_REQUEST),
        (
            b"GET /hello HTTP/1.1\r\nX: " + b"a" * MAX_REQUEST_BYTES,
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        ),
    ],
)
def test_what_is_refused_and_how(request_line: bytes, status: HTTPStatus) -> None:
    answer = ask(request_line + b"\r\n\r\n")
    assert answer.startswith(f"HTTP/1.1 {status.value} ".encode())
    assert b"secret words" not in answer, "what went wrong inside is for the node's log"


def test_a_request_that_does_not_end_is_given_up() -> None:
    assert ask(b"GET /hello HTTP/1.1\r\n", request_timeout_s=0.05) == b""


def test_a_reader_that_does_not_read_is_given_up_and_others_are_served() -> None:
    async def work(server: HttpServer) -> None:
        reader, writer = await asyncio.open_connection(HOST, server.bound_port, limit=1)
        writer.write(b"GET /big HTTP/1.1\r\n\r\n")
        assert (await exchange(server, b"GET /hello HTTP/1.1\r\n\r\n")).endswith(b"hello ")
        while server.open_connections:  # noqa: ASYNC110 - the server signals nothing
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.IncompleteReadError):
            await reader.readexactly(50_000_000)
        writer.close()

    run(work, reply_timeout_s=0.2)


def test_an_idle_connection_is_closed_for_an_active_one() -> None:
    async def work(server: HttpServer) -> None:
        idle = [await asyncio.open_connection(HOST, server.bound_port) for _ in range(3)]
        for _ in range(5):
            assert (await exchange(server, b"GET /hello HTTP/1.1\r\n\r\n")).endswith(b"hello ")
        assert await idle[0][0].read() == b"", "who came first and asked nothing was put out"
        for _, writer in idle:
            writer.close()

    run(work, max_connections=3)


def test_half_requests_that_are_put_out_leave_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """Any process of the machine could fill the node's log with them. A node runs in uvloop, which is strict here."""

    async def main() -> None:
        async with serving(max_connections=3) as server:
            halves = [await asyncio.open_connection(HOST, server.bound_port) for _ in range(3)]
            for _, writer in halves:
                writer.write(b"GET /hello HTTP/1.1\r\n")
                await writer.drain()
            for _ in range(20):
                assert (await exchange(server, b"GET /hello HTTP/1.1\r\n\r\n")).endswith(b"hello ")
            for _, writer in halves:
                writer.transport.abort()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(main(), DEADLINE_S))
    assert [record.getMessage() for record in caplog.records] == []


def test_a_client_that_is_gone_before_its_answer_is_made_leaves_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        asked, is_gone = asyncio.Event(), asyncio.Event()

        async def slow(_: HttpRequest) -> HttpReply:
            asked.set()
            await is_gone.wait()
            return HttpReply(body=b"late")

        server = HttpServer(HOST, 0, {"/slow": slow})
        await server.start()
        reader, writer = await asyncio.open_connection(HOST, server.bound_port)
        writer.write(b"GET /slow HTTP/1.1\r\n\r\n")
        await asked.wait()
        for each in server._connections:
            each.transport.abort()  # as when the connection is reset
        assert await reader.read() == b""
        is_gone.set()
        while server.open_connections:  # noqa: ASYNC110 - the server signals nothing
            await asyncio.sleep(0.01)
        writer.close()
        await server.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(main(), DEADLINE_S))
    assert [record.getMessage() for record in caplog.records] == []


def test_stopping_does_not_wait_for_connections_that_are_open() -> None:
    async def main() -> bytes:
        async with serving() as server:
            reader, writer = await asyncio.open_connection(HOST, server.bound_port)
            while not server.open_connections:  # noqa: ASYNC110 - the server signals nothing
                await asyncio.sleep(0.01)
        left = await reader.read()
        writer.close()
        return left

    assert asyncio.run(asyncio.wait_for(main(), DEADLINE_S)) == b""


def test_a_port_that_is_taken_is_reported_with_the_key_that_names_it() -> None:
    async def work(server: HttpServer) -> None:
        with pytest.raises(MetricsCannotListen, match=r"already in use.*kquorum\.metrics\.listener"):
            await HttpServer(HOST, server.bound_port, ROUTES).start()

    run(work)


def test_headers_are_read_whatever_their_case() -> None:
    request = parse_request(b"GET / HTTP/1.1\r\nAccept:  text/plain \r\nnonsense\r\n\r\n")
    assert request == HttpRequest(method="GET", path="/", headers={"accept": "text/plain"})
