"""Writes to three controllers of ours, of Apache Kafka's, and to three members of etcd, side by side.

    python -m benchmarks.peers [--sides kquorum,etcd,kafka] [--clients 1,64,256] [--seconds 5] [--times 5]
                               [--against CHECKOUT] [--from-sources] [--python PROGRAM [--compiled DIR]]
                               [--folder DIR] [--json]

All clusters run at once as real processes on loopback, with logs on disk, and are asked one after the other, round by
round, so each round gives every side the same machine. One process is the client: it keeps N connections to the leader
busy with one request each. A request is an AlterClientQuotas that changes one quota of one of 997 clients (one record;
ours writes an audit note beside it); for etcd it is a Put of 100 bytes to one of 997 keys, by etcd's own client in Go,
which is built beside its server: N goroutines, sixteen to a connection.

The figures are medians over the rounds; the ratios are medians over the rounds of the ratio within a round. "processor"
(the columns in us) is user and system time for one write: of the leader, of the busier follower, and of the client. It
moves less with the load of the machine than times of a clock do.

etcd and Kafka are optional: without Go, Java or a network the benchmark says why, and prints the rest. `--against` adds
one more side: our controllers of another checkout (two commits in turns). `--from-sources` adds our controllers without
what `make compile` built. `--python` adds our controllers under another interpreter, which has what we depend on;
with `--compiled` on the modules that were built for it (`python -m tools.compile_modules --out DIR`).
"""

import argparse
import asyncio
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, cast

import uvloop

from benchmarks._peer_clusters import (
    LOOPBACK,
    EtcdSide,
    KafkaSide,
    OurSide,
    Side,
    Unavailable,
    processor_s,
)
from benchmarks._report import hardware, percentile, print_result
from kquorum.cli.failures import CliError
from kquorum.cli.processes import NodeFailed
from kquorum.wire.errors import DecodeError
from kquorum.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.frames import encode_frame
from kquorum.wire.protocol.headers import decode_response, encode_request

ROOT = Path(__file__).parent.parent
NAMES: Final = 997
VERSION: Final = 1
WARM_UP_S: Final = 3.0
LEADER_TIMEOUT_S: Final = 60.0
_LENGTH_BYTES: Final = 4
# Correlation id, tagged fields, throttle time, number of entries: then the error code of the first entry.
_ERROR_CODE: Final = slice(_LENGTH_BYTES + 10, _LENGTH_BYTES + 12)
_NO_ERROR: Final = bytes(2)


class FailedError(Exception):
    """A side did not take the writes."""


@dataclass(frozen=True, slots=True)
class Measured:
    latencies_ms: Sequence[float]
    ops_per_s: float
    leader_us: float
    follower_us: float
    client_us: float


# One write; raises FailedError unless it was acknowledged.
Write = Callable[[], Awaitable[object]]


class Writers:
    """Of one side: opens so many connections to the node that leads and answers what writes on each of them."""

    side: Side

    async def open(self, clients: int) -> tuple[int, Sequence[Write]]:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


class _Connection(asyncio.Protocol):
    """One request at a time. The answer is compared with its expected beginning and not decoded."""

    def __init__(self, numbers: "count[int]") -> None:
        self._numbers = numbers
        self._received = b""
        self._answered: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        if len(received) < _LENGTH_BYTES or len(received) < _LENGTH_BYTES + int.from_bytes(
            received[:4], "big"
        ):
            self._received = received
            return
        self._received = b""
        answered, self._answered = self._answered, None
        if answered is not None and not answered.done():
            answered.set_result(received)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(FailedError(f"the controller closed the connection ({exc})"))

    def ask(self) -> "asyncio.Future[bytes]":
        self._answered = self._loop.create_future()
        self._transport.write(quota_frame(next(self._numbers)))
        return self._answered

    async def write(self) -> None:
        answer = await self.ask()
        if answer[_ERROR_CODE] != _NO_ERROR:
            raise FailedError(f"the controller answered {error_of(answer).name.upper()}")

    def close(self) -> None:
        self._transport.close()


_FRAMES: dict[int, bytes] = {}


def quota_frame(number: int) -> bytes:
    """A frame that differs from the one before of the same client name, so that each makes a record. Frames are made
    once and used in turns of 16."""
    number %= NAMES * 16
    frame = _FRAMES.get(number)
    if frame is None:
        entry = RequestEntryData(
            entity=(RequestEntityData(entity_type="client-id", entity_name=f"client-{number % NAMES}"),),
            ops=(OpData(key="consumer_byte_rate", value=1000.0 + number),),
        )
        request = AlterClientQuotasRequest(entries=(entry,))
        frame = encode_frame(encode_request(ApiKey.ALTER_CLIENT_QUOTAS, VERSION, number, "bench", request))
        _FRAMES[number] = frame
    return frame


def error_of(answer: bytes) -> ErrorCode:
    try:
        response = decode_response(AlterClientQuotasRequest, VERSION, answer[_LENGTH_BYTES:])
    except DecodeError as error:
        raise FailedError(f"the controller's answer cannot be read: {error}") from None
    return response.entries[0].error_code


class QuotaWriters(Writers):
    def __init__(self, side: Side) -> None:
        self.side = side
        self._numbers = count()
        self._connections: list[_Connection] = []

    async def open(self, clients: int) -> tuple[int, Sequence[Write]]:
        leader_id = await self._leader_id()
        self._connections = [await self._connect(leader_id) for _ in range(clients)]
        return leader_id, [connection.write for connection in self._connections]

    async def close(self) -> None:
        for connection in self._connections:
            connection.close()

    async def _connect(self, node_id: int) -> _Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            partial(_Connection, self._numbers), LOOPBACK, self.side.ports[node_id]
        )
        return connection

    async def _leader_id(self) -> int:
        """The controller that takes a write."""
        ends_s = time.monotonic() + LEADER_TIMEOUT_S
        said = ""
        while time.monotonic() < ends_s:
            for node_id in self.side.ports:
                try:
                    connection = await self._connect(node_id)
                    try:
                        await connection.write()
                    finally:
                        connection.close()
                except (OSError, FailedError) as error:
                    said = str(error)
                else:
                    return node_id
            await asyncio.sleep(0.1)
        raise FailedError(
            f"no controller of {self.side.name} took a write in {LEADER_TIMEOUT_S:.0f} s: {said}"
        )


class PutWriters(Writers):
    """etcd's own client, in a process of Go's (`_peer_clusters.EtcdSide.client`)."""

    def __init__(self, side: EtcdSide) -> None:
        self.side = self.etcd = side

    async def measured(self, clients: int, seconds: float) -> Measured:
        leader_id = self.etcd.leader_id()
        if leader_id is None:
            raise FailedError("etcd has no leader")
        client = await asyncio.create_subprocess_exec(
            str(self.etcd.client),
            f"{LOOPBACK}:{self.side.ports[leader_id]}",
            str(clients),
            f"{min(WARM_UP_S, seconds)}s",
            f"{seconds}s",
            stdout=asyncio.subprocess.PIPE,
        )
        out = client.stdout
        assert out is not None
        pids = [*_leader_first(self.side, leader_id), client.pid]
        begin = await out.readline()
        before, began_s = processor_s(pids), time.perf_counter()
        end = await out.readline()
        elapsed_s, after = time.perf_counter() - began_s, processor_s(pids)
        latencies_ms = [int(line) / 1e3 for line in (await out.read()).split()]
        if await client.wait() or (begin, end) != (b"begin\n", b"end\n") or not latencies_ms:
            raise FailedError("etcd's client failed: see above")
        used = [then - now for now, then in zip(before, after, strict=True)]
        return _result(latencies_ms, elapsed_s, used[:-1], used[-1])


def _leader_first(side: Side, leader_id: int) -> list[int]:
    return [side.pids[leader_id], *(pid for node_id, pid in side.pids.items() if node_id != leader_id)]


def _result(
    latencies_ms: Sequence[float], elapsed_s: float, used_s: Sequence[float], client_s: float
) -> Measured:
    """`used_s` is that of the leader, then of the followers."""
    done = len(latencies_ms)
    return Measured(
        latencies_ms=latencies_ms,
        ops_per_s=done / elapsed_s,
        leader_us=used_s[0] / done * 1e6,
        follower_us=max(used_s[1:]) / done * 1e6,
        client_us=client_s / done * 1e6,
    )


async def measured(writers: Writers, clients: int, seconds: float) -> Measured:
    if isinstance(writers, PutWriters):
        return await writers.measured(clients, seconds)
    leader_id, writes = await writers.open(clients)
    try:
        await _drive(writes, min(WARM_UP_S, seconds), [])
        latencies_s: list[float] = []
        pids = _leader_first(writers.side, leader_id)
        before, own_before, began_s = processor_s(pids), _own_s(), time.perf_counter()
        await _drive(writes, seconds, latencies_s)
        elapsed_s = time.perf_counter() - began_s
        own_s = _own_s() - own_before
        used = [after - then for after, then in zip(processor_s(pids), before, strict=True)]
    finally:
        await writers.close()
    if not latencies_s:
        raise FailedError(f"{writers.side.name} acknowledged nothing in {seconds} s")
    return _result([each * 1e3 for each in latencies_s], elapsed_s, used, own_s)


async def _drive(writes: Sequence[Write], seconds: float, latencies_s: list[float]) -> None:
    ends_s = time.perf_counter() + seconds

    async def one(write: Write) -> None:
        now_s = time.perf_counter()
        while now_s < ends_s:
            await write()
            done_s = time.perf_counter()
            latencies_s.append(done_s - now_s)
            now_s = done_s

    await asyncio.gather(*map(one, writes))


def _own_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def rows(results: Mapping[str, Sequence[Measured]]) -> list[dict[str, object]]:
    """A row for each side; `results` are of one number of clients, in rounds."""
    found = []
    for name, rounds in results.items():
        row: dict[str, object] = {
            "side": name,
            "p50_ms": _median(_p50(each) for each in rounds),
            "p99_ms": _median(_p99(each) for each in rounds),
            "op_per_s": _median(each.ops_per_s for each in rounds),
            "leader_us": _median(each.leader_us for each in rounds),
            "follower_us": _median(each.follower_us for each in rounds),
            "client_us": _median(each.client_us for each in rounds),
        }
        found.append(row)
    return found


def ratios(results: Mapping[str, Sequence[Measured]]) -> list[dict[str, object]]:
    """Of the first side to each of the others: medians over the rounds of the ratio within a round."""
    ours, *others = results.items()
    return [
        {
            "to": name,
            "p50": _median(_p50(mine) / _p50(theirs) for mine, theirs in zip(ours[1], rounds, strict=True)),
            "p99": _median(_p99(mine) / _p99(theirs) for mine, theirs in zip(ours[1], rounds, strict=True)),
            "op_per_s": _median(
                mine.ops_per_s / theirs.ops_per_s for mine, theirs in zip(ours[1], rounds, strict=True)
            ),
        }
        for name, rounds in others
    ]


def _p99(each: Measured) -> float:
    return percentile(each.latencies_ms, 99)


def _p50(each: Measured) -> float:
    return percentile(each.latencies_ms, 50)


def _median(values: Any) -> float:
    return statistics.median(values)


def opened(
    names: Sequence[str], folder: Path, options: argparse.Namespace, stack: ExitStack
) -> list[Writers]:
    """Start the sides that can be had; says on standard error why another one cannot."""
    found: list[Writers] = []
    for name in names:
        try:
            side, writers = _opened(name, folder / name)
        except (Unavailable, NodeFailed, CliError) as error:
            if name == "kquorum":
                raise
            print(f"without {name}: {error}", file=sys.stderr)
            continue
        stack.callback(side.close)
        found.append(writers)
    if options.python is not None:
        is_compiled = options.compiled is not None
        newer = OurSide(
            "python",
            folder / "python",
            ROOT,
            is_compiled=is_compiled,
            python=options.python,
            compiled=options.compiled,
        )
        stack.callback(newer.close)
        found.insert(1, QuotaWriters(newer))
    if options.against is not None:
        other = OurSide("against", folder / "against", options.against)
        stack.callback(other.close)
        found.insert(1, QuotaWriters(other))
    if options.from_sources:
        plain = OurSide("sources", folder / "sources", ROOT, is_compiled=False)
        stack.callback(plain.close)
        found.insert(1, QuotaWriters(plain))
    return found


def _opened(name: str, folder: Path) -> tuple[Side, Writers]:
    if name == "kquorum":
        ours = OurSide(name, folder, ROOT)
        return ours, QuotaWriters(ours)
    if name == "etcd":
        etcd = EtcdSide(folder)
        return etcd, PutWriters(etcd)
    kafka = KafkaSide(folder)
    return kafka, QuotaWriters(kafka)


async def run(
    sides: Sequence[Writers], clients: Sequence[int], times: int, seconds: float
) -> dict[int, dict[str, list[Measured]]]:
    found: dict[int, dict[str, list[Measured]]] = {
        each: {writers.side.name: [] for writers in sides} for each in clients
    }
    for number in range(times):
        for each in clients:
            for writers in sides[::-1] if number % 2 else sides:
                got = await measured(writers, each, seconds)
                found[each][writers.side.name].append(got)
                print(
                    f"round {number + 1}, {each} clients, {writers.side.name}: {got.ops_per_s:,.0f} op/s, p50 "
                    f"{_p50(got):.2f} ms, leader {got.leader_us:.0f} us",
                    file=sys.stderr,
                    flush=True,
                )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sides", default="kquorum,etcd,kafka")
    parser.add_argument("--clients", default="1,64,256")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement, after the warm-up")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--against", type=Path, help="another checkout of this project, as one more side")
    parser.add_argument(
        "--from-sources", action="store_true", help="our sources, not compiled, as one more side"
    )
    parser.add_argument("--python", help="another interpreter for our sources, as one more side")
    parser.add_argument("--compiled", type=Path, help="where the modules that were built for --python are")
    parser.add_argument("--folder", type=Path, help="for the logs; a temporary one by default")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    names = [name for name in options.sides.split(",") if name]
    if unknown := set(names) - {"kquorum", "etcd", "kafka"}:
        parser.error(f"--sides: {', '.join(sorted(unknown))} is none of kquorum, etcd, kafka")
    if names[:1] != ["kquorum"]:
        parser.error("--sides: kquorum comes first, as the others are compared with it")
    machine = hardware()
    with ExitStack() as stack:
        temporary = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="kquorum-peers-", dir=options.folder)
        )
        sides = opened(names, Path(temporary), options, stack)
        clients = [int(each) for each in options.clients.split(",")]
        try:
            found = uvloop.run(run(sides, clients, options.times, options.seconds))
        except FailedError as error:
            raise SystemExit(f"benchmarks.peers: {error}") from None
    settings = {"rounds": options.times, "seconds": options.seconds, "pid": os.getpid()}
    tables: dict[str, Sequence[Mapping[str, object]]] = {}
    for each, results in found.items():
        tables[f"{each} clients"] = rows(results)
        tables[f"{each} clients, {names[0]} as a ratio"] = ratios(results)
    print_result("peers", machine, settings, tables, as_json=options.json)


if __name__ == "__main__":
    main()
