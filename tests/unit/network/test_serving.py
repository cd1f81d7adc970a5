"""The waiting time that a handler sees for a request, and responses that are sent together."""

import asyncio
import gc
import math
import struct
import threading
import time
from functools import cache
from itertools import count
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

import kquorum.network.serving
from kquorum.network import server_connection, turns
from kquorum.network.api_versions import NO_FEATURES
from kquorum.network.aside import ELEMENTS_READ_IN_LOOP, LONG_BODY_BYTES, Aside
from kquorum.network.authentication import Authentication
from kquorum.network.limits import ServerLimits
from kquorum.network.replies import ReplyQueue
from kquorum.network.requests import admit_all
from kquorum.network.security.listener_security import UNSECURED, ListenerSecurity
from kquorum.network.server import KafkaServer
from kquorum.network.server_connection import ServerConnection
from kquorum.network.server_state import Peer, SharedLimits
from kquorum.network.serving import RequestServing
from kquorum.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kquorum.wire.protocol import apis, bodies, headers, warm_up
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from kquorum.wire.protocol.frames import encode_frame
from tests.support.api_calls import request_of
from tests.support.kio.frames import encode_request
from tests.support.network.peers import (
    ECHO,
    FLEXIBLE,
    OLD,
    SUPPORTED,
    Held,
    RunTest,
    echo_request,
    holding_handler,
    raw_client,
    serving,
    until,
)
from tests.support.network.sasl_peers import sasl

REQUESTS = 40


def test_the_handler_gets_the_time_that_a_request_waited() -> None:
    held: Held = []
    state: Any = SimpleNamespace(
        handler=holding_handler(held),
        supported=SUPPORTED,
        limits=ServerLimits(),
        admission=admit_all,
        security=UNSECURED,
        listener_name="TEST",
        features=lambda: NO_FEATURES,
        shared=SharedLimits(),
    )
    times = count(10)
    now_s = lambda: next(times) + 0.5  # noqa: E731
    unused: Any = None
    served = RequestServing(
        state,
        ReplyQueue(on_answer=lambda: None, on_failure=unused),
        Peer(1, "h", 2),
        Authentication(UNSECURED, None),
        now_s,
        unused,
        unused,
    )
    served.serve(echo_request("a", 1)[4:], 10.25)
    served.serve(echo_request("b", 2)[4:], 10.25)
    assert [context.waited_ms for context, _, _ in held] == [250, 1_250]


@pytest.mark.parametrize(
    ("partitions", "records", "is_read_in_loop"),
    [
        (1, 4 * LONG_BODY_BYTES, True),
        (ELEMENTS_READ_IN_LOOP + 1, LONG_BODY_BYTES // ELEMENTS_READ_IN_LOOP, False),
    ],
)
def test_a_long_produce_request_is_read_in_the_loop_unless_it_has_many_elements(
    partitions: int, records: int, *, is_read_in_loop: bool
) -> None:
    """Of records, however many bytes, nothing is read: a thread would cost more than it takes off the loop."""
    held: Held = []
    version = supported_versions(ApiKey.PRODUCE)[1]
    state: Any = SimpleNamespace(
        handler=holding_handler(held),
        supported={ApiKey.PRODUCE: (version, version)},
        limits=ServerLimits(),
        admission=admit_all,
        security=UNSECURED,
        listener_name="TEST",
        features=lambda: NO_FEATURES,
        shared=SharedLimits(),
    )
    unused: Any = None
    served = RequestServing(
        state,
        ReplyQueue(on_answer=lambda: None, on_failure=unused),
        Peer(1, "h", 2),
        Authentication(UNSECURED, None),
        lambda: 0.0,
        unused,
        unused,
    )
    data = TopicProduceData(
        topic_id=UUID(int=1),
        partition_data=tuple(
            PartitionProduceData(index=index, records=bytes(records)) for index in range(partitions)
        ),
    )
    request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1, topic_data=(data,))
    reading = served.serve(headers.encode_request(ApiKey.PRODUCE, version, 1, "test", request), 0.0)
    assert (reading is None) == is_read_in_loop
    if reading is not None:
        reading.go_on(*reading.read())
    [(context, read, _)] = held
    assert len(read.topic_data[0].partition_data) == partitions
    assert context.elements == partitions + 1


@pytest.mark.parametrize(("burst_bytes", "most_writes"), [(1 << 20, 4), (0, REQUESTS)])
def test_replies_to_requests_that_came_together_go_out_together(
    run: RunTest, monkeypatch: pytest.MonkeyPatch, burst_bytes: int, most_writes: int
) -> None:
    monkeypatch.setattr(turns, "TURN_S", 60.0)
    monkeypatch.setattr(turns, "_PART_S", 60.0)
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


class HeldTurns:
    """A line in which connections wait until the test gives each its turn."""

    now_s = staticmethod(time.monotonic)

    def __init__(self) -> None:
        self.asked: list[turns.Served] = []

    def ask(self, connection: turns.Served) -> bool:
        self.asked.append(connection)
        return True

    def give_turn(self) -> bool:
        return self.asked.pop(0).take_turn(math.inf)


def held_turns(server: KafkaServer, *asked: tuple[int, int]) -> HeldTurns:
    """Of the server's only connection, which asks in these versions of APIs: their import takes no turn."""
    for api_key, version in asked:
        warm_up.warm_version(api_key, version)
    (connection,) = cast("set[ServerConnection]", server._state.connections)
    line = HeldTurns()
    connection._turns = cast("turns.Turns", line)
    return line


def test_what_is_behind_a_request_that_goes_first_waits_for_a_turn_of_its_own(run: RunTest) -> None:
    """Else a short ApiVersions would take everything behind it along."""
    versions = supported_versions(ApiKey.API_VERSIONS)[1]
    first = request_of(
        ApiKey.API_VERSIONS,
        versions,
        {"client_software_name": "a", "client_software_version": "1"},
    )
    begin = encode_frame(encode_request(ApiKey.API_VERSIONS, versions, 1, None, first))

    async def check() -> None:
        async with serving() as server, raw_client(server) as client:
            await until(lambda: bool(server._state.connections))
            line = held_turns(server, (ApiKey.API_VERSIONS, versions), (ECHO, FLEXIBLE))
            client.writer.write(begin + begin + echo_request("a", 2) + echo_request("b", 3))
            await until(lambda: bool(line.asked))
            assert line.asked[0].goes_first()
            waiting, line.asked = line.asked[0], []
            assert waiting.take_turn(math.inf), "it waits for the next turn"
            assert server.counters.requests == 2
            assert not waiting.goes_first()
            assert not waiting.take_turn(math.inf)
            assert server.counters.requests == 4

    run(check())


def test_a_request_that_was_read_aside_is_handled_when_its_turn_comes(run: RunTest) -> None:
    """Several may have been read meanwhile, and each may take long."""
    held: Held = []
    version = supported_versions(ApiKey.DELETE_TOPICS)[1]
    topics = [{"name": "t", "topic_id": None} for _ in range(10_000)]
    body = request_of(ApiKey.DELETE_TOPICS, version, {"topics": topics, "timeout": 1, "timeout_ms": 1})
    request = encode_frame(encode_request(ApiKey.DELETE_TOPICS, version, 1, None, body))

    async def check() -> None:
        supported = {ApiKey.DELETE_TOPICS: (version, version)}
        async with (
            serving(holding_handler(held), supported=supported) as server,
            raw_client(server) as client,
        ):
            await until(lambda: bool(server._state.connections))
            line = held_turns(server, (ApiKey.DELETE_TOPICS, version))
            client.writer.write(request)
            await until(lambda: bool(line.asked))
            line.give_turn()
            await until(lambda: bool(line.asked))
            assert held == []
            line.give_turn()
            assert len(held) == 1

    run(check())


@pytest.mark.parametrize("is_our_fault", [False, True])
def test_of_a_lost_client_s_long_request_only_our_own_faults_are_logged(
    run: RunTest, *, is_our_fault: bool
) -> None:
    """asyncio writes a traceback into the log for an error that is never looked at: a client could fill a disk."""
    version = supported_versions(ApiKey.DELETE_TOPICS)[1]
    body = request_of(ApiKey.DELETE_TOPICS, version, {"topics": (), "timeout": 1, "timeout_ms": 1})
    header = encode_request(ApiKey.DELETE_TOPICS, version, 1, None, body)[:12]
    request = encode_frame(header + b"\xff" * 2 * LONG_BODY_BYTES)
    reported: list[dict[str, Any]] = []

    async def check() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context))
        supported = {ApiKey.DELETE_TOPICS: (version, version)}
        may_read = threading.Event()
        async with serving(supported=supported) as server:
            async with raw_client(server) as client:
                await until(lambda: bool(server._state.connections))
                line = held_turns(server, (ApiKey.DELETE_TOPICS, version))
                reader = server._state.reader
                reader.begin(may_read.wait)
                if is_our_fault:
                    server._state.reader = cast(
                        "Aside", SimpleNamespace(begin=lambda _: reader.begin(lambda: 1 / 0))
                    )
                client.writer.write(request)
                await until(lambda: bool(line.asked))
                line.give_turn()
            await until(lambda: not server._state.connections)
            may_read.set()
            # The reader has one thread, so that this work begins when the request has been read.
            await reader.make(lambda: None)
            await asyncio.sleep(0)
            gc.collect()
            assert server.counters.failed_requests == is_our_fault
            server._state.reader = reader
        gc.collect()

    run(check())
    assert reported == []


def test_a_handler_can_ask_whether_the_client_is_gone(run: RunTest) -> None:
    held: Held = []

    async def check() -> None:
        async with serving(holding_handler(held)) as server, raw_client(server) as client:
            client.writer.write(echo_request("a", 1))
            await until(lambda: len(held) == 1)
            context = held[0][0]
            assert not context.is_gone()
            client.writer.close()
            await until(context.is_gone)

    run(check())


def loads_from_now_on(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Records the thread in which each API's classes are loaded, with none loaded before."""
    loaded: list[tuple[int, int]] = []

    def noted(load: Any) -> Any:
        def first(api_key: int, *arguments: Any) -> Any:
            loaded.append((threading.get_ident(), api_key))
            return load(api_key, *arguments)

        known = cache(first)
        # A cache keeps an ApiKey and its number apart, though what is loaded for them is the same.
        return lambda api_key, *arguments: known(int(api_key), *arguments)

    message_types = noted(apis.message_types)
    for module in (apis, bodies):
        monkeypatch.setattr(module, "message_types", message_types)
    not_loaded = cache(apis.api_version.__wrapped__)
    for module in (apis, headers, kquorum.network.serving):
        monkeypatch.setattr(module, "api_version", not_loaded)
    monkeypatch.setattr(warm_up, "_WARM", set())
    return loaded


def test_an_old_version_is_imported_beside_the_loop(run: RunTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its classes and codecs take up to 60 ms, for the first client that asks."""
    request = echo_request("a", 7, version=OLD)
    loaded = loads_from_now_on(monkeypatch)

    async def check() -> None:
        async with serving() as server, raw_client(server) as client:
            client.writer.write(request + request)
            assert [await client.next_echo(OLD) for _ in range(2)] == [(7, "a"), (7, "a")]

    serving_thread = threading.get_ident()
    run(check())
    assert loaded
    assert serving_thread not in {thread for thread, _ in loaded}


@pytest.mark.parametrize("security", [UNSECURED, sasl()])
def test_what_is_refused_is_not_imported(
    run: RunTest, monkeypatch: pytest.MonkeyPatch, security: ListenerSecurity
) -> None:
    """An API that the listener does not offer, and before authentication one that it offers."""
    api_key = ECHO if security.new_session else ApiKey.VOTE
    request = encode_frame(struct.pack(">hhihB", api_key, 0, 7, -1, 0))
    loaded = loads_from_now_on(monkeypatch)

    async def check() -> None:
        async with serving(security=security) as server, raw_client(server) as client:
            client.writer.write(request)
            assert await client.is_closed_by_server()
            counters = server.counters
            told = counters.unsupported_requests, counters.unauthenticated_connections_closed
            assert told == ((0, 1) if security.new_session else (1, 0))

    run(check())
    assert loaded == []


def test_an_old_version_does_not_wait_for_long_requests(
    run: RunTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer's first Vote in an old version does not wait for the long requests of others."""
    request = echo_request("a", 7, version=OLD)
    loads_from_now_on(monkeypatch)

    async def check() -> None:
        is_over = threading.Event()
        async with serving() as server, raw_client(server) as client:
            long = server._state.reader.begin(is_over.wait)
            try:
                client.writer.write(request)
                assert await client.next_echo(OLD) == (7, "a")
            finally:
                is_over.set()
            assert await long

    run(check())


def test_a_version_that_is_warm_is_not_frozen_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """gc.freeze keeps for good what is garbage then: once for each version, and after the young garbage is gone."""
    done: list[str] = []
    monkeypatch.setattr(warm_up, "_WARM", set())
    monkeypatch.setattr(gc, "collect", lambda generation: done.append(f"collect {generation}"))
    monkeypatch.setattr(gc, "freeze", lambda: done.append("freeze"))
    for _ in range(2):
        warm_up.warm_version(ECHO, OLD)
    assert done == ["collect 1", "freeze"]


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
