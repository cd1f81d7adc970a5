"""What durable appends cost above the disk itself: FileLog against a bare write and fdatasync, in the same run.

    python -m benchmarks.append_log [--rounds 15] [--mib 4] [--sizes 512 4096 65536] [--folder DIR] [--fast] [--json]
                                    [--profile]

Each batch is made durable before the next one, unless said otherwise. The ways take turns, a round each in a random
order, and each way keeps one file of its own from round to round:

- `bare`: `os.write` and `os.fdatasync`, which is what the disk asks for;
- `log`: `FileLog.append` and `FileLog.flush` in one thread: with indexes, epochs, recovery point and cache;
- `bare, thread` and `log, thread`: written in the loop, flushed through `DiskThread`, awaited: as a node does it;
- `log, thread, 16 at once`: batches are appended while the flush before runs, at most 16 not yet durable; the next
  flush takes them all. This is group commit.

The ratio is the median over the rounds of a way's MB/s to that of its bare way in the same round: a disk that is slow
for a while is slow for both.
"""

import argparse
import asyncio
import cProfile
import os
import pstats
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

import uvloop

from benchmarks._report import hardware, percentile, print_result
from kquorum.raft.adapters.disk_thread import DiskThread
from kquorum.raft.adapters.file_log import FOLDER_NAME, FileLog
from kquorum.wire.log_batch import LogBatch, build_batch

MIB = 1024 * 1024
DEFAULT_SIZES = (512, 4096, 65536)
DEFAULT_ROUNDS, DEFAULT_MIB = 15, 4.0
FAST_ROUNDS, FAST_MIB = 3, 0.25
# A small batch waits for the disk as long as a large one, so it is seconds, not bytes, that must be bounded.
MAX_BATCHES, MIN_BATCHES = 1000, 16
AT_ONCE = 16
SIZE_MIN = 100
LEADER_EPOCH, TIMESTAMP_MS = 1, 1_790_000_000_000


def batch_of(size: int, offset: int) -> LogBatch:
    """A batch of one record and exactly `size` bytes."""
    value_bytes = size - len(_batch(offset, 0).data)
    while len((batch := _batch(offset, value_bytes)).data) > size:
        value_bytes -= 1
    assert len(batch.data) == size, f"{size} bytes cannot be had: lengths of a record take whole bytes"
    return batch


def _batch(offset: int, value_bytes: int) -> LogBatch:
    return build_batch(offset, LEADER_EPOCH, TIMESTAMP_MS + offset, [(None, bytes(value_bytes))])


class BareFile:
    """The limit: nothing but the bytes and the disk."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def append(self, batches: Sequence[LogBatch]) -> None:
        for batch in batches:
            os.write(self._descriptor, batch.data)

    def flush(self) -> None:
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


class Appendable(Protocol):
    def append(self, batches: Sequence[LogBatch]) -> None: ...
    def flush(self) -> object: ...
    def close(self) -> None: ...


# Appends the batches and answers how long each took to be durable, in seconds.
Way = Callable[[Appendable, Sequence[LogBatch], DiskThread], Awaitable[list[float]]]


async def in_turn(log: Appendable, batches: Sequence[LogBatch], _disk: DiskThread) -> list[float]:
    """In the loop's own thread."""
    took_s = []
    for batch in batches:
        start_s = time.perf_counter()
        log.append((batch,))
        log.flush()
        took_s.append(time.perf_counter() - start_s)
    return took_s


async def through_thread(log: Appendable, batches: Sequence[LogBatch], disk: DiskThread) -> list[float]:
    took_s = []
    for batch in batches:
        start_s = time.perf_counter()
        log.append((batch,))
        await flushed(log, disk)
        took_s.append(time.perf_counter() - start_s)
    return took_s


async def grouped(log: Appendable, batches: Sequence[LogBatch], disk: DiskThread) -> list[float]:
    """Half of the batches under way are being flushed while the other half is appended."""
    started_s: list[float] = []
    took_s: list[float] = []
    rest = iter(batches)

    def append_more() -> None:
        for batch in islice(rest, AT_ONCE // 2):
            started_s.append(time.perf_counter())
            log.append((batch,))

    append_more()
    while (covered := len(started_s)) > len(took_s):
        flush = flushed(log, disk)
        append_more()
        await flush
        now_s = time.perf_counter()
        took_s.extend(now_s - start_s for start_s in started_s[len(took_s) : covered])
    return took_s


def flushed(log: Appendable, disk: DiskThread) -> asyncio.Future[object]:
    """Begins at once, awaited or not."""
    done = asyncio.get_running_loop().create_future()
    disk.submit(log.flush, done.set_result, done.set_exception)
    return done


GROUPED = f"log, thread, {AT_ONCE} at once"
# The way, and the one that is its limit.
WAYS: dict[str, tuple[Way, str]] = {
    "bare": (in_turn, "bare"),
    "log": (in_turn, "bare"),
    "bare, thread": (through_thread, "bare, thread"),
    "log, thread": (through_thread, "bare, thread"),
    GROUPED: (grouped, "bare"),
}


class Measurement:
    """One batch size: each way with a file of its own, and what its rounds took."""

    def __init__(self, folder: Path, size: int, options: argparse.Namespace) -> None:
        self._size = size
        self._count = min(max(round(options.mib * MIB / size), MIN_BATCHES), MAX_BATCHES)
        self._logs = {name: self._open(folder / f"{size}-{index}", name) for index, name in enumerate(WAYS)}
        self._round_s: dict[str, list[float]] = {name: [] for name in WAYS}
        self._batch_s: dict[str, list[float]] = {name: [] for name in WAYS}
        self._next_offset = 0

    @staticmethod
    def _open(folder: Path, name: str) -> Appendable:
        folder.mkdir()
        return BareFile(folder / "bare") if name.startswith("bare") else FileLog(folder / FOLDER_NAME)

    async def round(self, disk: DiskThread, order: Iterable[str]) -> None:
        batches = [batch_of(self._size, self._next_offset + index) for index in range(self._count)]
        self._next_offset += self._count
        for name in order:
            start_s = time.perf_counter()
            took_s = await WAYS[name][0](self._logs[name], batches, disk)
            self._round_s[name].append(time.perf_counter() - start_s)
            self._batch_s[name].extend(took_s)

    def close(self) -> None:
        for log in self._logs.values():
            log.close()

    def rows(self) -> Iterator[dict[str, object]]:
        for name, (_, limit) in WAYS.items():
            rounds = self._round_s[name]
            ratios = [bare / own for own, bare in zip(rounds, self._round_s[limit], strict=True)]
            batches_per_s = self._count / percentile(rounds, 50)
            yield {
                "batch_bytes": self._size,
                "way": name,
                "mb_per_s": batches_per_s * self._size / 1e6,
                "batches_per_s": batches_per_s,
                "p50_us": percentile(self._batch_s[name], 50) * 1e6,
                "p99_us": percentile(self._batch_s[name], 99) * 1e6,
                "of_bare": percentile(ratios, 50),
                "of_bare_min": min(ratios),
                "of_bare_max": max(ratios),
            }


async def measure(folder: Path, options: argparse.Namespace) -> list[dict[str, object]]:
    random_source = random.Random(options.rounds)
    disk = DiskThread(asyncio.get_running_loop())
    rows: list[dict[str, object]] = []
    for size in options.sizes:
        measurement = Measurement(folder, size, options)
        for _ in range(options.rounds):
            await measurement.round(disk, random_source.sample(list(WAYS), len(WAYS)))
        measurement.close()
        rows.extend(measurement.rows())
    assert await disk.close(10_000), "the disk thread ends when its jobs are done"
    return rows


def profile(folder: Path, size: int, count: int) -> None:
    """What append and flush spend their time in, in one thread."""
    log = FileLog(folder / "profile" / FOLDER_NAME)
    batches = [batch_of(size, offset) for offset in range(count)]
    profiler = cProfile.Profile()
    with profiler:
        for batch in batches:
            log.append((batch,))
            log.flush()
    log.close()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(20)


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=DEFAULT_ROUNDS, help="of each way and size")
    parser.add_argument(
        "--mib", type=float, default=DEFAULT_MIB, help=f"a round, at most {MAX_BATCHES} batches"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=list(DEFAULT_SIZES), help="bytes of a batch")
    parser.add_argument("--folder", type=Path, help="on the disk to measure; a temporary one without it")
    parser.add_argument("--fast", action="store_true", help="seconds, to see that all works")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--profile", action="store_true", help="the functions that take most, and no table")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or options.mib <= 0 or min(options.sizes) < SIZE_MIN:
        parser.error(f"--rounds must be at least 1, --mib above 0, --sizes at least {SIZE_MIN}")
    if options.fast:
        options.rounds, options.mib = FAST_ROUNDS, FAST_MIB
    return options


def main() -> None:
    options, machine = options_of(), hardware()
    with tempfile.TemporaryDirectory(prefix="kquorum-bench-", dir=options.folder) as folder:
        if options.profile:
            for size in options.sizes:
                profile(Path(folder) / str(size), size, MAX_BATCHES)
            return
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            rows = runner.run(measure(Path(folder), options))
    settings = {"rounds": options.rounds, "MiB a round": options.mib, "batches a round at most": MAX_BATCHES}
    print_result("append_log", machine, settings, {"durable appends": rows}, as_json=options.json)


if __name__ == "__main__":
    main()
