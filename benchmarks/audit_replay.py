"""How fast the audit goes through a log: records per second of a whole build and of its first pass, beside its peers.

    python -m benchmarks.audit_replay [--records 1000000 10000000] [--cores 1 2] [--dump] [--fast] [--json]

The log is generated (see `_cluster_history`): a busy cluster of 4,000 partitions, six NoOps in ten records, in segments
of 64 MiB with their offset indexes. Each row is one process, Spark's start not counted but Java's warm-up included:
`files` has the executors write what the files hold; `build` is a whole audit. Beside them, on one core: `replay` is
what one writes without Spark, each record decoded and replayed into the image of the cluster; `decode` makes the
columns of the audit, and nothing of them; `DumpLogSegments` (with `--dump`, where the jars of Kafka are at hand) is
Kafka's own reader with its decoder of metadata. `cpu_s` is processor time, which other work on the machine hardly
changes. Memory is the most at once of Java (driver and executors are one process here) and of all of Python (the
driver and its workers). `shuffled_mb` is the most that Spark had on disk.
"""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks._cluster_history import START_MS, ClusterHistory
from benchmarks._memory import PeakMemory, cpu_seconds
from benchmarks._report import hardware, print_result
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.spark_replay.audit import build
from kquorum.spark_replay.decode.sources import find_log_files
from kquorum.spark_replay.decode.splits import DEFAULT_SPLIT_BYTES
from kquorum.spark_replay.session import start_session
from kquorum.spark_replay.source import ROW_KINDS, KraftLogReader
from kquorum.spark_replay.table_files import SCHEMAS, Destination, write_tables
from kquorum.spark_replay.tables.building.source_rows import SOURCE_ROWS
from kquorum.wire.log_scan import ScannedBatch, scan_batches
from kquorum.wire.record_batch import read_records
from kquorum.wire.record_frame import decode_record

PARTITIONS: Final = 4000
SEGMENT_BYTES = 64 * 1024 * 1024
INDEX_BYTES: Final = 4096
BATCHES_AN_IMAGE: Final = 10_000
DUMP_CLASS: Final = "org.apache.kafka.tools.DumpLogSegments"
_INDEX_ENTRY: Final = struct.Struct(">ii")


def log_batches(records: int, seed: int = 1, partitions: int = PARTITIONS) -> Iterator[tuple[int, bytes]]:
    """The batches of a log of at least `records` records, each with its base offset."""
    for offset, batch in ClusterHistory(seed, partitions).batches():
        if offset >= records:
            return
        yield offset, batch


class Segment:
    """A segment that is being filled, and its offset index: an entry for every 4 KiB."""

    def __init__(self, folder: Path, base_offset: int) -> None:
        self._path = folder / f"{base_offset:020d}.log"
        self._base_offset = base_offset
        self._data, self._index, self._indexed = bytearray(), bytearray(), 0

    def __len__(self) -> int:
        return len(self._data)

    def add(self, offset: int, batch: bytes) -> None:
        if len(self._data) - self._indexed > INDEX_BYTES:
            self._index += _INDEX_ENTRY.pack(offset - self._base_offset, len(self._data))
            self._indexed = len(self._data)
        self._data += batch

    def write(self) -> int:
        self._path.with_suffix(".index").write_bytes(self._index)
        return self._path.write_bytes(self._data)


def generate(folder: Path, records: int, seed: int = 1, partitions: int = PARTITIONS) -> tuple[int, int]:
    """Write a log of about `records` records below `folder`; how many they are, and its size in bytes."""
    log_folder = folder / "__cluster_metadata-0"
    log_folder.mkdir(parents=True)
    segment, size, count = Segment(log_folder, 0), 0, 0
    for offset, batch in log_batches(records, seed, partitions):
        if len(segment) >= SEGMENT_BYTES:
            size += segment.write()
            segment = Segment(log_folder, offset)
        segment.add(offset, batch)
        count = offset + _COUNT.unpack_from(batch, _COUNT_AT)[0]
    return count, size + segment.write()


_COUNT: Final = struct.Struct(">i")
_COUNT_AT: Final = 57


def decode(folder: Path) -> None:
    """Make the Arrow batches of records, batches and damage in this process."""
    reader = KraftLogReader(
        SOURCE_ROWS,
        find_log_files(folder),
        ROW_KINDS["all"],
        split_bytes=DEFAULT_SPLIT_BYTES,
        show_secrets=False,
    )
    for split in reader.partitions():
        for _ in reader.read(split):
            pass


def replay(folder: Path) -> None:
    """Decode each record and replay it, in this process."""
    image, batches = MetadataImage.empty(), 0
    delta = MetadataDelta(image)
    for file in find_log_files(folder):
        for batch in scan_batches(Path(file.path).read_bytes()):
            assert isinstance(batch, ScannedBatch), batch
            if not batch.header.is_control:
                for record in read_records(batch.data, 0, batch.header):
                    delta.replay(decode_record(record.value or b""), record.offset)
            batches += 1
            if batches % BATCHES_AN_IMAGE == 0:
                image = delta.apply(_PROVENANCE)
                delta = MetadataDelta(image)
    delta.apply(_PROVENANCE)


_PROVENANCE: Final = Provenance(last_contained_offset=0, last_contained_epoch=1, timestamp_ms=START_MS)
_WITHOUT_SPARK: Final[dict[str, Callable[[Path], None]]] = {"decode": decode, "replay": replay}


def run_step(step: str, folder: Path, cores: int) -> dict[str, float]:
    """Seconds of one step in this process, Spark's start not counted."""
    if step in _WITHOUT_SPARK:
        start, begun = time.perf_counter(), time.process_time()
        _WITHOUT_SPARK[step](folder)
        return {"seconds": time.perf_counter() - start, "cpu_s": time.process_time() - begun}
    with tempfile.TemporaryDirectory(prefix="kquorum-bench-") as work:
        spark = start_session(Path(work), master=f"local[{cores}]")
        shuffled = 0
        start, begun = time.perf_counter(), cpu_seconds(os.getpid())

        def say(step: str) -> None:
            nonlocal shuffled
            shuffled = max(shuffled, _blocks_bytes(Path(work)))
            used = cpu_seconds(os.getpid()) - begun
            print(f"{time.perf_counter() - start:8.1f} s, cpu {used:8.1f} s  {step}", file=sys.stderr)

        if step == "files":
            folders = {kind: Path(work) / "tables" / kind for kind in SCHEMAS}
            write_tables(spark, find_log_files(folder), Destination(folders=folders))
        else:
            build(spark, folder, Path(work) / "tables", progress=say)
        seconds, used = time.perf_counter() - start, cpu_seconds(os.getpid()) - begun
        say("done")
        spark.stop()
    return {"seconds": seconds, "cpu_s": used, "shuffled_mb": shuffled / 1e6}


def _blocks_bytes(work: Path) -> int:
    """What Spark keeps on disk: shuffled rows, and what did not fit into memory."""
    return sum(path.stat().st_size for path in work.glob("blockmgr-*/*/*") if path.is_file())


def measured(step: str, folder: Path, cores: int, records: int) -> dict[str, object]:
    """One step in a process of its own."""
    arguments = ["--step", step, "--folder", str(folder), "--cores", str(cores)]
    command = [sys.executable, "-m", "benchmarks.audit_replay", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process, PeakMemory(process.pid) as memory:
        out, _ = process.communicate()
    assert process.returncode == 0, f"{step} failed"
    peak = memory.peak_mb
    java_mb = sum(size for name, size in peak.items() if name == "java")
    return _row(step, cores, records, json.loads(out), java_mb, sum(peak.values()) - java_mb)


def _row(
    step: str, cores: int, records: int, facts: dict[str, Any], java_mb: float, python_mb: float
) -> dict[str, object]:
    seconds = facts["seconds"]
    return {
        "step": step,
        "records": records,
        "cores": cores,
        "seconds": seconds,
        "cpu_s": facts["cpu_s"],
        "records_per_s": records / seconds,
        "a_core": records / seconds / cores,
        "java_mb": java_mb,
        "python_mb": python_mb,
        "shuffled_mb": facts.get("shuffled_mb", 0.0),
    }


def dump_log_segments(folder: Path, records: int) -> dict[str, object]:
    """Kafka's own reader, its lines thrown away; from the start of its process."""
    from tests.interop.kafka_release import find_release

    release = find_release()
    files = ",".join(file.path for file in find_log_files(folder))
    options = ["--cluster-metadata-decoder", "--files", files]
    start = time.perf_counter()
    with (
        subprocess.Popen(
            [release.java, "-cp", release.classpath, DUMP_CLASS, *options], stdout=subprocess.DEVNULL
        ) as process,
        PeakMemory(process.pid) as memory,
    ):
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, "DumpLogSegments failed"
    facts = {"seconds": time.perf_counter() - start, "cpu_s": usage.ru_utime + usage.ru_stime}
    return _row("DumpLogSegments", 1, records, facts, sum(memory.peak_mb.values()), 0.0)


def rows_of(records: int, options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Every step on one log."""
    with tempfile.TemporaryDirectory(prefix="kquorum-bench-", dir=options.work) as work:
        folder = Path(work)
        count, size = generate(folder, records, partitions=options.partitions)
        print(f"{count:,} records, {size / 1e6:,.1f} MB", file=sys.stderr)
        for step in options.steps:
            if step in _WITHOUT_SPARK:
                yield measured(step, folder, 1, count)
                continue
            for cores in dict.fromkeys(options.cores):
                yield measured(step, folder, cores, count)
        if options.dump:
            yield dump_log_segments(folder, count)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, os.cpu_count() or 1])
    parser.add_argument("--steps", nargs="*", choices=STEPS, default=STEPS)
    parser.add_argument("--dump", action="store_true", help="also Kafka's DumpLogSegments")
    parser.add_argument("--work", type=Path, help="folder for the generated log; default is the system's")
    parser.add_argument(
        "--fast", action="store_true", help="20,000 records, without Spark, to see that all works"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--step", choices=STEPS, help="this one alone, of --folder")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args(arguments)
    if options.step:
        print(json.dumps(run_step(options.step, options.folder, options.cores[0])))
        return
    if options.fast:
        options.records, options.partitions, options.steps = [20_000], 160, tuple(_WITHOUT_SPARK)
    machine = hardware()
    rows = [row for records in options.records for row in rows_of(records, options)]
    settings = {"partitions": options.partitions}
    print_result("audit_replay", machine, settings, {"replay": rows}, as_json=options.json)


STEPS: Final = ("replay", "decode", "files", "build")


if __name__ == "__main__":
    main()
