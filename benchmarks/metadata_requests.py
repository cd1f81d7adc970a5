"""Metadata requests over loopback connections: how many a second, and how long one takes.

    python -m benchmarks.metadata_requests [--topics 1000] [--partitions 10] [--brokers 10] [--connections 8]
                                           [--changes-per-second 20] [--version 12] [--seconds 4] [--fast] [--json]

Three peers in turn, in the same run, each in a process of its own on uvloop: a bare framed echo, gRPC's echo
(grpc.aio), and the client listener of a broker; the echoes give back as many bytes as the broker's answer has. All are
asked by one process that counts the bytes of the answers and reads no more of them. First one connection after its
answer asks again; then several do so at once. "image changes" is the broker while, so many times a second, ten topics
get another partition state, and each has to be encoded again.

Answers are about all topics, and about one topic by name. The ratios to the echoes are the figures to watch: what
the broker does beside moving bytes. Who asks has one core, so an echo's rate is as much this process's.
"""

import argparse
import asyncio
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvloop

from benchmarks import _metadata_peers as peers
from benchmarks._report import hardware, percentile, print_result
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.frames import encode_frame
from kquorum.wire.protocol.headers import encode_request
from tests.support.api_calls import request_of

START_S = 60.0
ASKED_TOPIC = "topic-00000"


@dataclass(frozen=True, slots=True)
class Measured:
    """Milliseconds of each round trip."""

    times_ms: list[float]
    seconds: float

    @property
    def per_second(self) -> float:
        return len(self.times_ms) / self.seconds


def request_frame(version: int, topic: str | None) -> bytes:
    """For all topics, or one."""
    names = None if topic is None else [{"topic_id": None, "name": topic}]
    values: dict[str, object] = {
        "topics": names,
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": False,
    }
    entity = request_of(ApiKey.METADATA, version, values)
    return encode_frame(encode_request(ApiKey.METADATA, version, 1, "benchmark", entity))


@contextmanager
def served(target: Callable[..., None], *arguments: object) -> Iterator[int]:
    """The port of a peer in a process of its own."""
    pipe, childs_end = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=target, args=(childs_end, *arguments), daemon=True
    )
    process.start()
    childs_end.close()
    try:
        assert pipe.poll(START_S), "the peer does not start"
        yield pipe.recv()
    finally:
        if process.is_alive():
            pipe.send("stop")
        process.join()


async def ask(round_trips: Sequence[peers.RoundTrip], seconds: float) -> Measured:
    """Each asks again as soon as it is answered; a tenth of the time goes first unmeasured."""
    for round_trip in round_trips:
        await round_trip()
    await _ask_until(round_trips, time.perf_counter() + seconds / 10)
    begin = time.perf_counter()
    times = await _ask_until(round_trips, begin + seconds)
    return Measured(times, time.perf_counter() - begin)


async def _ask_until(round_trips: Sequence[peers.RoundTrip], deadline: float) -> list[float]:
    times: list[float] = []

    async def go_on(round_trip: peers.RoundTrip) -> None:
        begin = time.perf_counter()
        while begin < deadline:
            await round_trip()
            end = time.perf_counter()
            times.append((end - begin) * 1e3)
            begin = end

    await asyncio.gather(*(go_on(each) for each in round_trips))
    return times


async def ask_framed(
    port: int, request: bytes, seconds: float, counts: Sequence[int]
) -> tuple[list[Measured], int]:
    """For each number of connections; and how long an answer was."""
    found, answer_bytes = [], 0
    for count in counts:
        clients = await peers.framed_clients(port, request, count)
        found.append(await ask([client.round_trip for client in clients], seconds))
        answer_bytes = clients[0].answer_bytes
        for client in clients:
            client.close()
    return found, answer_bytes


async def ask_grpc(port: int, request: bytes, seconds: float, counts: Sequence[int]) -> list[Measured]:
    found = []
    for count in counts:
        channels, round_trips = peers.grpc_clients(port, request, count)
        found.append(await ask(round_trips, seconds))
        for channel in channels:
            await channel.close()
    return found


def measured(arguments: argparse.Namespace, topic: str | None) -> tuple[int, list[dict[str, object]]]:
    """How many bytes an answer has, and a row for each peer."""
    request = request_frame(arguments.version, topic)
    counts, seconds = (1, arguments.connections), arguments.seconds
    size = (arguments.topics, arguments.partitions, arguments.brokers)

    def of_framed(port: int) -> tuple[list[Measured], int]:
        return uvloop.run(ask_framed(port, request, seconds, counts))

    found: dict[str, list[Measured]] = {}
    with served(peers.serve_broker, size, 0.0) as port:
        stays, answer_bytes = of_framed(port)
    with served(peers.serve_bare, answer_bytes) as port:
        found["bare framed echo"] = of_framed(port)[0]
    with served(peers.serve_grpc, answer_bytes) as port:
        found["grpc.aio echo"] = uvloop.run(ask_grpc(port, request, seconds, counts))
    found["broker, image stays"] = stays
    with served(peers.serve_broker, size, arguments.changes_per_second) as port:
        found["broker, image changes"] = of_framed(port)[0]
    bare, by_grpc = found["bare framed echo"], found["grpc.aio echo"]
    rows = [row_of(peer, each, bare[-1], by_grpc[-1], arguments.connections) for peer, each in found.items()]
    return answer_bytes, rows


def row_of(
    peer: str, found: Sequence[Measured], bare: Measured, by_grpc: Measured, connections: int
) -> dict[str, object]:
    single, several = found
    return {
        "peer": peer,
        "one_p50_ms": percentile(single.times_ms, 50),
        "one_p99_ms": percentile(single.times_ms, 99),
        f"with_{connections}_per_second": several.per_second,
        "p50_ms": percentile(several.times_ms, 50),
        "p99_ms": percentile(several.times_ms, 99),
        "rate_to_bare": several.per_second / bare.per_second,
        "rate_to_grpc": several.per_second / by_grpc.per_second,
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--topics", type=int, default=1_000)
    parser.add_argument("--partitions", type=int, default=10, help="of each topic")
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--connections", type=int, default=8, help="that ask at the same time")
    parser.add_argument("--changes-per-second", type=float, default=20.0, help="of ten topics each")
    parser.add_argument("--version", type=int, default=12, help="of the requests (10 to 12)")
    parser.add_argument("--seconds", type=float, default=4.0, help="for each peer and kind of asking")
    parser.add_argument("--fast", action="store_true", help="a tenth of the time")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.fast:
        arguments.seconds /= 10
    machine = hardware()
    tables: dict[str, Any] = {}
    for what, topic in (("all topics", None), ("one topic", ASKED_TOPIC)):
        answer_bytes, rows = measured(arguments, topic)
        tables[f"{what}, answers of {answer_bytes:,} bytes"] = rows
    names = ("topics", "partitions", "brokers", "connections", "changes_per_second", "version", "seconds")
    settings = {name: getattr(arguments, name) for name in names}
    print_result("metadata_requests", machine, settings, tables, as_json=arguments.json)


if __name__ == "__main__":
    main()
