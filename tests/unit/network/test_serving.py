"""What a handler is told of the time that a request lay here, and what goes out together."""

import threading
from functools import cache
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

import network.serving
from network import server_connection
from network.api_versions import NO_FEATURES
from network.authentication import Authentication
from network.limits import ServerLimits
from network.replies import ReplyQueue
from network.requests import admit_all
from network.security.listener_security import UNSECURED
from network.server_connection import ServerConnection
from network.server_state import Peer
from network.serving import RequestServing
from tests.unit.network.conftest import RunTest
from tests.unit.network.support import (
    ECHO,
    OLD,
    SUPPORTED,
    Held,
    echo_request,
    holding_handler,
    raw_client,
    serving,
)
from wire.protocol import apis, headers, warm_up

REQUESTS = 40


def test_the_handler_is_told_how_long_a_request_waited() -> None:
    held: Held = []
    state: Any = SimpleNamespace(
        handler=holding_handler(held),
        supported=SUPPORTED,
        limits=ServerLimits(),
        admission=admit_all,
        security=UNSECURED,
        listener_name="TEST",
        features=lambda: NO_FEATURES,
    )
    times = count(10)
    now_s = lambda: next(times) + 0.5  # noqa: E731
    nobody: Any = None
    served = RequestServing(
        state,
        ReplyQueue(on_answer=lambda: None, on_failure=nobody),
        Peer(1, "h", 2),
        Authentication(UNSECURED, None),
        now_s,
        nobody,
    )
    served.serve(echo_request("a", 1)[4:], 10.25)
    served.serve(echo_request("b", 2)[4:], 10.25)
    assert [context.waited_ms for context, _, _ in held] == [250, 1_250]


@pytest.mark.parametrize(("burst_bytes", "most_writes"), [(1 << 20, 4), (0, REQUESTS)])
def test_replies_to_requests_that_came_together_go_out_together(
    run: RunTest, monkeypatch: pytest.MonkeyPatch, burst_bytes: int, most_writes: int
) -> None:
    monkeypatch.setattr(server_connection, "_TURN_S", 60.0)
    monkeypatch.setattr(server_connection, "_BURST_BYTES", burst_bytes)
    sent, send = list[int](), ServerConnection._send_ready

    def counted(connection: ServerConnection) -> None:
        before = connection._state.counters.sent_bytes
        send(connection)
        if connection._state.counters.sent_bytes > before:
            sent.append(1)

    monkeypatch.setattr(ServerConnection, "_send_ready", counted)

    async def test() -> None:
        async with serving() as server, raw_client(server) as client:
            client.writer.write(b"".join(echo_request("a", number) for number in range(REQUESTS)))
            for number in range(REQUESTS):
                assert await client.next_echo() == (number, "a")

    run(test())
    assert len(sent) <= most_writes
    assert burst_bytes or len(sent) == REQUESTS


def test_an_old_version_is_imported_beside_the_loop(run: RunTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its classes and codecs take up to 60 ms, for the first client that asks: whoever that is."""
    loaded: list[int] = []
    load = apis._load_class

    def noted(*arguments: Any) -> Any:
        loaded.append(threading.get_ident())
        return load(*arguments)

    request = echo_request("a", 7, version=OLD)
    monkeypatch.setattr(apis, "_load_class", noted)
    not_loaded = cache(apis.api_version.__wrapped__)
    for module in (apis, headers, network.serving, warm_up):
        monkeypatch.setattr(module, "api_version", not_loaded)
    monkeypatch.setattr(warm_up, "_WARM", set())

    async def check() -> None:
        async with serving() as server, raw_client(server) as client:
            client.writer.write(request + request)
            assert [await client.next_echo(OLD) for _ in range(2)] == [(7, "a"), (7, "a")]

    serving_thread = threading.get_ident()
    run(check())
    assert loaded
    assert serving_thread not in loaded


def test_a_version_that_cannot_be_imported_ends_its_connection(
    run: RunTest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The next one is served: another import may have the descriptor that this one lacked."""

    def fail(*_: int) -> None:
        raise OSError(24, "Too many open files")

    request = echo_request("a", 7, version=OLD)

    async def check() -> None:
        async with serving() as server:
            with monkeypatch.context() as patched:
                patched.setattr(server_connection, "warm_version", fail)
                patched.setattr(server_connection, "cold_version", lambda _: (ECHO, OLD))
                async with raw_client(server) as client:
                    client.writer.write(request)
                    assert await client.is_closed_by_server()
            async with raw_client(server) as client:
                client.writer.write(request)
                assert await client.next_echo(OLD) == (7, "a")

    run(check())
    assert "FindCoordinator version 0 could not be answered" in caplog.text
