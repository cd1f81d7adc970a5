"""Clients without a login that ask gRPC as fast as they can, on many connections.

Each keeps 200 calls open and makes another one for each that is ended or refused. gRPC's C core answers those in
threads of its own, so on a cluster with defaults they took the processors from the event loop, and the leader was
deposed.
"""

import asyncio
import re
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from kquorum.cli.processes import wait_until
from tests.attacks.few_descriptors import LimitedNode, limited_node
from tests.support.network import grpc_inputs as http2
from tests.support.single_node import HOST

OPEN_FILES = 1_024
CONNECTIONS, STREAMS = 30, 200
SECONDS = 3.0
# Of the node, as docs/network.md has them.
RATE, AT_ONCE = 1_000, 64
# gRPC's pool has some threads more or less at any time.
MORE_THREADS = 8
HEADERS = http2.headers(b"/grpc.health.v1.Health/Check")
HEADER_BYTES = 9


def call(stream: int) -> bytes:
    opened = http2.frame(http2.HEADERS, http2.END_HEADERS, stream, HEADERS)
    return opened + http2.frame(http2.DATA, http2.END_STREAM, stream, http2.message(b""))


@dataclass
class Flood:
    """What all connections together have got."""

    ended: int = 0
    lost: int = 0

    async def run(self, port: int) -> None:
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(http2.OPENING)
        stream = 1
        try:
            stream = await self._ask(writer, stream, STREAMS)
            while True:
                header = await reader.readexactly(HEADER_BYTES)
                payload = await reader.readexactly(int.from_bytes(header[:3], "big"))
                kind, flags = header[3], header[4]
                if kind == http2.RST_STREAM or (kind <= http2.HEADERS and flags & http2.END_STREAM):
                    self.ended += 1
                    stream = await self._ask(writer, stream, 1)
                elif kind in (http2.SETTINGS, http2.PING) and not flags & http2.ACK:
                    answer = b"" if kind == http2.SETTINGS else payload
                    writer.write(http2.frame(kind, http2.ACK, 0, answer))
        except (OSError, asyncio.IncompleteReadError):
            self.lost += 1
        finally:
            writer.transport.abort()

    async def _ask(self, writer: asyncio.StreamWriter, stream: int, count: int) -> int:
        writer.write(b"".join(call(stream + 2 * number) for number in range(count)))
        await writer.drain()
        return stream + 2 * count


def resident_mib(node: LimitedNode) -> int:
    status = Path(f"/proc/{node.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) // 1_024


def threads(node: LimitedNode) -> int:
    return len(list(Path(f"/proc/{node.process.pid}/task").iterdir()))


def epoch(node: LimitedNode) -> str:
    found = re.search(r"^kafka_server_raft_metrics_current_epoch (\S+)", node.metrics(), re.MULTILINE)
    assert found is not None
    return found[1]


async def is_serving(node: LimitedNode) -> bool:
    """Over a connection of its own."""
    options = (("grpc.use_local_subchannel_pool", 1),)
    async with grpc.aio.insecure_channel(f"{HOST}:{node.ports['grpc']}", options) as channel:
        check = health_pb2_grpc.HealthStub(channel).Check
        answer = await check(health_pb2.HealthCheckRequest(), timeout=60, wait_for_ready=True)
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


@pytest.mark.slow
def test_calls_above_the_rate_wait_and_take_neither_threads_nor_the_leader(tmp_path: Path) -> None:
    async def flooded(node: LimitedNode) -> tuple[Flood, float, int]:
        flood, most_threads = Flood(), 0
        async with asyncio.timeout(120), AsyncExitStack() as held:
            began_s = time.monotonic()
            tasks = [asyncio.create_task(flood.run(node.ports["grpc"])) for _ in range(CONNECTIONS)]
            for task in tasks:
                held.callback(task.cancel)
            while time.monotonic() - began_s < SECONDS:
                most_threads = max(most_threads, threads(node))
                assert await is_serving(node)
            return flood, time.monotonic() - began_s, most_threads

    with limited_node(tmp_path, OPEN_FILES) as node:
        assert wait_until(lambda: asyncio.run(is_serving(node)), 60)
        threads_before, epoch_before = threads(node), epoch(node)
        flood, seconds, most_threads = asyncio.run(flooded(node))
        # What was ended must have been admitted, and in that time no more is.
        assert 0 < flood.ended <= RATE * seconds + AT_ONCE
        assert flood.lost == 0
        assert most_threads <= threads_before + MORE_THREADS
        assert epoch(node) == epoch_before
        muted = re.search(
            r'^kquorum_network_mutings_total\{listener="grpc"\} (\S+)', node.metrics(), re.MULTILINE
        )
        assert muted is not None
        assert float(muted[1]) > 0


# `accept-encoding: gzip, deflate` of HPACK's static table (RFC 7541, appendix A).
HEADER_OF_A_BYTE = b"\x90"


@pytest.mark.slow
def test_headers_of_a_byte_each_are_refused_before_grpc_stores_them(tmp_path: Path) -> None:
    """Four connections with 12 MB of them took 1.7 GB, which the node kept."""
    block = HEADERS + HEADER_OF_A_BYTE * 15_000
    opened = b"".join(
        http2.frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, 1 + 2 * number, block)
        for number in range(STREAMS)
    )

    async def answered(port: int) -> bytes:
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(http2.OPENING + opened)
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.transport.abort()

    async def attack(port: int) -> None:
        async with asyncio.timeout(60):
            await asyncio.gather(*(answered(port) for _ in range(4)))

    with limited_node(tmp_path, OPEN_FILES) as node:
        assert wait_until(lambda: asyncio.run(is_serving(node)), 60)
        before = resident_mib(node)
        asyncio.run(attack(node.ports["grpc"]))
        assert asyncio.run(is_serving(node))
        assert resident_mib(node) - before < 60
        refused = re.search(
            r'^kquorum_network_bad_frames_total\{listener="grpc"\} (\S+)', node.metrics(), re.MULTILINE
        )
        assert refused is not None
        assert float(refused[1]) == 4
