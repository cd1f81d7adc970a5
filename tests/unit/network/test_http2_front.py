"""The front before an HTTP/2 server: connections accepted, bytes passed on, and the identity of each."""

import asyncio
import gc
import logging
import ssl
import stat
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from weakref import ref

import pytest

from kquorum.network.call_rate import SharedBucket
from kquorum.network.http2 import PREFACE, STREAM_COST, ErrorCode, Flag, FrameType, goaway
from kquorum.network.http2_front import Http2Front, Identity, _FrontConnection, _ServerSide
from kquorum.network.limits import ConnectionLimits, GrpcLimits
from kquorum.network.security.listener_security import ListenerSecurity
from kquorum.network.security.reloading import reloading_context
from kquorum.network.security.tls import http2_context
from kquorum.network.server_state import Lease, Peer, SharedLimits
from tests.support.certificates import authority, issued, write
from tests.support.network.http2_frames import OPENING, SETTINGS, SETTINGS_ACK, call, frame
from tests.support.network.peers import RunTest

HOST = "127.0.0.1"
CALL_BYTES = len(call(1))
# Of 16 kB: more than sockets and the front hold together.
MANY = 5_000


@dataclass
class Behind:
    """A server that keeps what it gets, of each connection by the name that it has."""

    got: dict[str, bytearray] = field(default_factory=dict)
    writers: dict[str, asyncio.StreamWriter] = field(default_factory=dict)
    reads: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = str(writer.get_extra_info("peername"))
        self.got[name], self.writers[name] = bytearray(), writer
        try:
            while True:
                await self.reads.wait()
                data = await reader.read(65_536)
                if not data:
                    break
                self.got[name] += data
        except OSError:  # the front was closed first
            pass
        finally:
            del self.writers[name]
            writer.close()

    @property
    def all(self) -> int:
        return sum(map(len, self.got.values()))


@dataclass
class Rig:
    front: Http2Front
    behind: Behind

    async def connect(self, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(HOST, self.front.bound_port, **options)


@asynccontextmanager
async def fronting(
    limits: GrpcLimits | None = None,
    security: ListenerSecurity | None = None,
    shared: SharedLimits | None = None,
) -> AsyncIterator[Rig]:
    front = Http2Front(
        host=HOST,
        port=0,
        listener_name="grpc",
        limits=limits or GrpcLimits(),
        security=security,
        shared=shared,
    )
    behind = Behind()
    behind.reads.set()
    server = await asyncio.start_unix_server(behind.serve, front.server_path)
    await front.start()
    try:
        yield Rig(front, behind)
    finally:
        front.stop_accepting()
        server.close()
        for writer in tuple(behind.writers.values()):
            writer.close()
        behind.reads.set()
        await front.close()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - the run's deadline bounds it
        await asyncio.sleep(0.002)


async def fill(writer: asyncio.StreamWriter, data: bytes) -> int:
    """How often the bytes were written until the other side took no more."""
    for number in range(1, MANY):
        writer.write(data)
        try:
            await asyncio.wait_for(writer.drain(), 0.1)
        except TimeoutError:
            return number
    return MANY


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    data = b""
    try:
        while more := await reader.read(65_536):
            data += more
    except ConnectionResetError:
        pass
    return data


def test_bytes_go_both_ways_and_the_server_learns_who_the_client_is(run: RunTest) -> None:
    async def test() -> None:
        async with fronting() as rig:
            reader, writer = await rig.connect()
            writer.write(OPENING + call(1))
            await until(lambda: rig.behind.all == len(OPENING + call(1)))
            ((name, got),) = rig.behind.got.items()
            assert bytes(got) == OPENING + call(1)
            port = writer.get_extra_info("sockname")[1]
            assert rig.front.identity_of(name) == Identity(None, HOST, port)
            assert rig.front.identity_of(rig.front.server_path) is None
            rig.behind.writers[name].write(SETTINGS + call(1))
            assert await reader.readexactly(len(SETTINGS + call(1))) == SETTINGS + call(1)
            assert rig.front.counters.requests == 1
            writer.close()
            await until(lambda: rig.front.identity_of(name) is None)
            await until(lambda: not rig.behind.writers)
            assert rig.front.counters.open_connections == 0

    run(test())


def test_a_closed_connection_is_freed_without_the_garbage_collector(run: RunTest) -> None:
    async def test() -> None:
        async with fronting() as rig:
            gc.disable()
            try:
                _, writer = await rig.connect()
                writer.write(OPENING + call(1))
                await until(lambda: rig.behind.all == len(OPENING + call(1)))
                (connection,) = map(ref, rig.front._state.connections)
                writer.close()
                await until(lambda: connection() is None)
            finally:
                gc.enable()

    run(test())


def test_the_servers_socket_is_in_a_folder_of_this_user_alone_that_goes_at_the_end(
    run: RunTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()

    async def test() -> None:
        async with fronting() as rig:
            _, writer = await rig.connect()
            writer.write(OPENING)
            await until(lambda: rig.behind.all == len(OPENING))
            folder = Path(rig.front.server_path).parent
            assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IRWXU
            assert [each.name for each in folder.iterdir()] == ["server"]
            writer.close()
        assert not folder.exists()

    run(test())
    # Longer than a socket's path may be.
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    run(test())


@pytest.mark.parametrize("first", [b"", b"PRI", PREFACE, PREFACE + SETTINGS[:8]])
def test_a_connection_that_does_not_begin_is_closed_and_the_server_behind_never_sees_it(
    run: RunTest, first: bytes
) -> None:
    async def test() -> None:
        async with fronting(GrpcLimits(handshake_timeout_ms=100)) as rig:
            reader, writer = await rig.connect()
            writer.write(first)
            assert await rest_of(reader) == b""
            assert rig.front.counters.unfinished_frames_closed == 1
            assert rig.behind.got == {}
            writer.close()

    run(test())


@pytest.mark.parametrize("first", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01"])
def test_what_is_no_http2_is_closed_at_once(
    run: RunTest, first: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with fronting() as rig:
            reader, writer = await rig.connect()
            writer.write(first)
            assert await rest_of(reader) == b""
            assert rig.behind.got == {}
            writer.close()

    with caplog.at_level(logging.WARNING):
        run(test())
    words = "begins with TLS" if first.startswith(b"\x16") else "does not speak HTTP/2"
    assert any(words in record.getMessage() and HOST in record.getMessage() for record in caplog.records)


def test_connections_are_refused_by_the_limits_and_counted(run: RunTest) -> None:
    async def test() -> None:
        shared = SharedLimits(ConnectionLimits(max_connections_per_address=2))
        async with fronting(shared=shared) as rig, AsyncExitStack() as held:
            for _ in range(2):
                _, writer = await rig.connect()
                held.callback(writer.close)
                writer.write(OPENING)
            await until(lambda: len(rig.behind.got) == 2)
            reader, writer = await rig.connect()
            assert await rest_of(reader) == b""
            writer.close()
            assert rig.front.counters.refused_over_address_limit == 1
        limits = GrpcLimits(max_connections=1)
        async with fronting(limits) as rig, AsyncExitStack() as held:
            _, writer = await rig.connect()
            held.callback(writer.close)
            writer.write(OPENING + call(1))
            await until(lambda: rig.behind.all == len(OPENING + call(1)))
            reader, other = await rig.connect()
            assert await rest_of(reader) == b""
            other.close()
            assert rig.front.counters.refused_over_listener_limit == 1
        async with fronting(GrpcLimits(max_connection_creation_rate=0)) as rig:
            reader, writer = await rig.connect()
            assert await rest_of(reader) == b""
            writer.close()
            assert rig.front.counters.refused_over_creation_rate == 1
            assert rig.front.counters.refused_connections == 1

    run(test())


def test_calls_above_the_rate_wait_and_those_of_others_do_not_wait_for_them(run: RunTest) -> None:
    """The flood is 40 calls at 50 a second, with one at once."""
    flood = b"".join(call(1 + 2 * number) for number in range(40))
    limits = GrpcLimits(max_calls_per_second_of_connection=50, max_calls_at_once=1)

    async def test() -> None:
        async with fronting(limits) as rig:
            _, flooding = await rig.connect()
            flooding.write(OPENING + flood)
            await until(lambda: rig.front.counters.mutings == 1)
            assert rig.front.counters.muted_connections == 1
            _, writer = await rig.connect()
            writer.write(OPENING + call(1))
            await until(lambda: len(OPENING + call(1)) in map(len, rig.behind.got.values()))
            assert rig.behind.all < 2 * len(OPENING) + len(flood)
            await until(lambda: rig.behind.all == 2 * len(OPENING) + CALL_BYTES + len(flood))
            assert bytes(next(iter(rig.behind.got.values()))) == OPENING + flood
            await until(lambda: rig.front.counters.muted_connections == 0)
            flooding.close()
            writer.close()

    run(test())


def test_a_connection_that_waits_holds_little_of_what_its_client_sends(run: RunTest) -> None:
    flood = b"".join(call(1 + 2 * number) for number in range(100)) * 200

    async def test() -> None:
        async with fronting(GrpcLimits(max_calls_per_second=1, max_calls_at_once=2)) as rig:
            _, writer = await rig.connect()
            writer.write(OPENING + flood)
            await until(lambda: rig.front.counters.mutings == 1)
            for _ in range(50):
                await asyncio.sleep(0)
            assert rig.front.counters.received_bytes <= 2 * 16_384 < len(flood)
            writer.transport.abort()

    run(test())


def test_what_all_share_is_given_in_turns(run: RunTest) -> None:
    """Of many connections above the node's rate none is without its part."""
    calls = b"".join(call(1 + 2 * number) for number in range(12))
    limits = GrpcLimits(max_calls_per_second=100, max_calls_at_once=1)

    async def test() -> None:
        async with fronting(limits) as rig, AsyncExitStack() as held:
            for _ in range(5):
                _, writer = await rig.connect()
                held.callback(writer.close)
                writer.write(OPENING + calls)
            await until(lambda: rig.behind.all > 5 * len(OPENING) + 30 * CALL_BYTES)
            passed = [(len(got) - len(OPENING)) // CALL_BYTES for got in rig.behind.got.values()]
            assert len(passed) == 5
            assert max(passed) - min(passed) <= 3
            await until(lambda: rig.behind.all == 5 * len(OPENING + calls))

    run(test())


def test_a_connection_that_goes_while_it_waits_leaves_its_place(run: RunTest) -> None:
    limits = GrpcLimits(max_calls_per_second=1, max_calls_at_once=2)

    async def test() -> None:
        async with fronting(limits) as rig:
            _, writer = await rig.connect()
            writer.write(OPENING + call(1) + call(3) + call(5))
            await until(lambda: rig.front.counters.muted_connections == 1)
            writer.transport.abort()
            # It is not read from, so its end is seen when its output cannot be sent, or with the front's own end.
            for server_side in tuple(rig.behind.writers.values()):
                server_side.close()
            await until(lambda: rig.front.counters.open_connections == 0)
            assert rig.front.counters.muted_connections == 0

    run(test())


def test_more_streams_at_a_time_than_announced_end_with_enhance_your_calm(run: RunTest) -> None:
    async def test() -> None:
        async with fronting(GrpcLimits(max_concurrent_calls=2)) as rig:
            reader, writer = await rig.connect()
            writer.write(OPENING)
            await until(lambda: rig.behind.all == len(OPENING))
            next(iter(rig.behind.writers.values())).write(SETTINGS)
            await reader.readexactly(len(SETTINGS))
            writer.write(SETTINGS_ACK + call(1) + call(3) + call(5))
            assert await rest_of(reader) == goaway(3, ErrorCode.ENHANCE_YOUR_CALM)
            writer.close()
            assert rig.front.counters.bad_frames == 1

    run(test())


def test_when_all_have_too_many_calls_open_the_client_with_more_than_its_part_goes(
    run: RunTest,
) -> None:
    """Clients are distinguished by certificate or address; here by two addresses of this machine."""

    async def test() -> None:
        limits = GrpcLimits(max_open_streams=4)
        async with fronting(limits) as rig, AsyncExitStack() as held:
            _, greedy = await rig.connect(local_addr=("127.0.0.2", 0))
            held.callback(greedy.close)
            greedy.write(OPENING + call(1) + call(3) + call(5) + call(7))
            await until(lambda: rig.front.counters.requests == 4)
            modest_reader, modest = await rig.connect(local_addr=("127.0.0.3", 0))
            held.callback(modest.close)
            modest.write(OPENING + call(1))
            await until(lambda: rig.front.counters.requests == 5)
            reader, another = await rig.connect(local_addr=("127.0.0.2", 0))
            held.callback(another.close)
            another.write(OPENING + call(1))
            await rest_of(reader)
            assert rig.front.counters.bad_frames == 1
            # Calls that end make room, those of a connection that is lost too.
            greedy.close()
            await until(lambda: rig.front.counters.open_connections == 1)
            modest.write(call(3))
            await until(lambda: rig.front.counters.requests == 6)
            assert not modest_reader.at_eof()

    run(test())


def test_a_client_that_does_not_read_stops_the_front_from_reading_and_is_closed(run: RunTest) -> None:
    data = frame(FrameType.DATA, 0, 1, bytes(16_000))

    async def test() -> None:
        async with fronting(GrpcLimits(write_timeout_ms=400)) as rig:
            reader, writer = await rig.connect(limit=1)
            cast(asyncio.Transport, writer.transport).pause_reading()
            writer.write(OPENING + call(1))
            await until(lambda: rig.behind.all == len(OPENING + call(1)))
            server_side = next(iter(rig.behind.writers.values()))
            assert await fill(server_side, data) < MANY
            await until(lambda: rig.front.counters.slow_readers_closed == 1)
            writer.transport.abort()
            del reader

    run(test())


@pytest.mark.parametrize("with_tls", [False, True], ids=["plain", "TLS"])
def test_a_server_that_does_not_read_stops_the_front_from_reading(
    run: RunTest, tmp_path: Path, with_tls: bool
) -> None:
    data = frame(FrameType.DATA, 0, 1, bytes(16_000))

    async def test() -> None:
        security, options = tls_of(tmp_path) if with_tls else (None, {})
        async with fronting(security=security) as rig:
            rig.behind.reads.clear()
            _, writer = await rig.connect(**options)
            writer.write(OPENING + frame(FrameType.HEADERS, Flag.END_HEADERS, 1, b"\x83"))
            sent = await fill(writer, data)
            assert sent < MANY
            rig.behind.reads.set()
            await until(lambda: rig.behind.all == len(OPENING) + 10 + sent * len(data))
            writer.close()

    run(test())


def test_what_the_server_said_last_gets_to_the_client(run: RunTest) -> None:
    last = frame(FrameType.DATA, Flag.END_STREAM, 1, bytes(16_000)) * 40

    async def test() -> None:
        async with fronting() as rig:
            reader, writer = await rig.connect()
            writer.write(OPENING + call(1))
            await until(lambda: rig.behind.all == len(OPENING + call(1)))
            server_side = next(iter(rig.behind.writers.values()))
            server_side.write(last)
            server_side.close()
            assert await rest_of(reader) == last
            writer.close()

    run(test())


def test_what_the_server_says_while_the_front_closes_gets_to_the_client(run: RunTest) -> None:
    async def test() -> None:
        async with fronting() as rig:
            reader, writer = await rig.connect()
            writer.write(OPENING)
            await until(lambda: rig.behind.all == len(OPENING))
            rig.front.stop_accepting()
            closing = asyncio.ensure_future(rig.front.close())
            await asyncio.sleep(0)
            (behind,) = rig.behind.writers.values()
            behind.write(SETTINGS)
            behind.close()
            assert await rest_of(reader) == SETTINGS
            await closing
            writer.close()

    run(test())


def test_a_client_for_whom_the_server_behind_has_no_place_is_closed_with_the_reason(
    run: RunTest, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with fronting() as rig:
            await asyncio.to_thread(Path(rig.front.server_path).unlink)
            reader, writer = await rig.connect()
            writer.write(OPENING)
            assert await rest_of(reader) == b""
            writer.close()
            assert rig.front.counters.open_connections == 0

    with caplog.at_level(logging.WARNING):
        run(test())
    assert "takes no connection: No such file or directory" in caplog.text


def tls_of(folder: Path) -> tuple[ListenerSecurity, dict[str, Any]]:
    """Of a front that asks for certificates, and what a client of it gives to asyncio."""
    server, client = folder / "server.pem", folder / "client.pem"
    write(server, issued("server", "localhost"))
    write(client, issued("member"))
    write(folder / "ca.pem", authority().pem.decode())
    keys = {
        "ssl.keystore.location": str(server),
        "ssl.truststore.location": str(folder / "ca.pem"),
        "ssl.client.auth": "required",
    }
    context = ssl.create_default_context(cadata=authority().pem.decode())
    context.load_cert_chain(client)
    context.set_alpn_protocols(["h2", "http/1.1"])
    security = ListenerSecurity(ssl_context=reloading_context("grpc", keys, http2_context))
    return security, {"ssl": context, "server_hostname": "localhost"}


def test_with_tls_the_client_is_named_by_its_certificate(run: RunTest, tmp_path: Path) -> None:
    async def test() -> None:
        security, options = tls_of(tmp_path)
        async with fronting(security=security) as rig:
            reader, writer = await rig.connect(**options)
            tls = writer.get_extra_info("ssl_object")
            assert tls.selected_alpn_protocol() == "h2"
            writer.write(OPENING + call(1))
            await until(lambda: rig.behind.all == len(OPENING + call(1)))
            ((name, server_side),) = rig.behind.writers.items()
            identity = rig.front.identity_of(name)
            assert identity is not None
            pem = (tmp_path / "client.pem").read_text()
            assert identity.certificate == ssl.PEM_cert_to_DER_cert(pem[pem.index("-----BEGIN CERT") :])
            server_side.write(call(1))
            assert await reader.readexactly(CALL_BYTES) == call(1)
            # In a record each, which come at once.
            calls = [call(stream) for stream in (3, 5, 7)]
            for each in calls:
                writer.write(each)
            sent = OPENING + call(1) + b"".join(calls)
            await until(lambda: rig.behind.all == len(sent))
            assert rig.behind.got[name] == sent
            writer.transport.abort()
            # Without TLS, and without a certificate.
            plain, other = await rig.connect()
            other.write(PREFACE + SETTINGS)
            await rest_of(plain)
            other.close()
            await until(lambda: rig.front.counters.failed_tls_handshakes == 1)
            assert len(rig.behind.got) == 1

    run(test())


class FakeLoop:
    """Time and timers of a test, for a connection that is given its bytes by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now_s

    def call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        self.timers.append((self.now_s + delay_s, call))

    def create_future(self) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    def run_until(self, ends_s: float) -> None:
        while due := [timer for timer in self.timers if timer[0] <= ends_s]:
            timer = min(due, key=lambda each: each[0])
            self.timers.remove(timer)
            self.now_s = timer[0]
            timer[1]()
        self.now_s = ends_s


class OpenTransport(asyncio.Transport):
    """Takes everything."""

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        """The test gives the connection nothing then."""

    def resume_reading(self) -> None:
        """As above."""

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is no buffer."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """To no peer."""


class OpenServer(_ServerSide):
    """The server behind, which takes everything."""

    def __init__(self) -> None:
        self.is_full = False

    def write(self, data: bytes) -> None:
        """To no server."""

    def set_paused(self, *, is_paused: bool) -> None:
        """It sends nothing."""


def test_a_long_frame_that_had_its_turn_is_paid_for_afterwards(run: RunTest) -> None:
    """Who waits for what all share gets a step. Headers that cost more than a step go on with it, and what they cost
    beyond it is charged: all wait longer afterwards. Without that, long headers would cost no more than short ones."""
    payload = bytes(12_000)
    beyond = len(payload) // 256
    headers = frame(FrameType.HEADERS, 0, 1, payload)  # others would follow, so that nothing reads them yet

    async def test() -> None:
        loop = FakeLoop()
        state = Http2Front(host=HOST, port=0, listener_name="grpc")._state
        state.rate_of_all = SharedBucket(STREAM_COST, STREAM_COST, STREAM_COST, loop.call_later, loop.time)
        connection = _FrontConnection(
            state,
            cast(asyncio.AbstractEventLoop, loop),
            Lease(state, Peer(1, HOST, 1)),
            OpenTransport(),
            None,
        )
        connection._server = OpenServer()
        for data in (OPENING, headers):
            connection.get_buffer(-1)[: len(data)] = data
            connection.buffer_updated(len(data))
        assert connection._streams.highest == 0
        loop.run_until(0.2)
        assert connection._streams.highest == 1
        # A step comes back each second.
        is_paid_at_s = 0.1 + (STREAM_COST + beyond) / STREAM_COST
        assert not state.rate_of_all.take(STREAM_COST, is_paid_at_s - 0.1)
        assert state.rate_of_all.take(STREAM_COST, is_paid_at_s + 0.1)
        state.folder.remove()

    run(test())
