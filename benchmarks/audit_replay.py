"""Records per second of the replay: decoding alone, the Spark source alone, and a whole audit, in one run.

    python -m benchmarks.audit_replay [--records 500000] [--cores 1 2] [--dump] [--json]

The log is generated: seven NoOps in ten records, the rest partition changes of a few hundred partitions, a batch of
one to eight records each, in segments of 64 MiB. Each row is one process, Spark's start not counted but Java's warm-up
included: `decode` is without Spark, on one core; `source` pulls every row through Spark's source; `files` has the
executors write the tables of what the files hold; `build` is a whole audit. Memory is the most at once of Java (driver
and executors are one process here) and of all of Python (the driver and its workers). `--dump` adds Kafka's
DumpLogSegments with its decoder of metadata, where the jars of Kafka are at hand.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from uuid import UUID

from benchmarks._memory import PeakMemory
from benchmarks._report import hardware, print_result
from spark_replay.audit import build
from spark_replay.schemas import SOURCE_ROWS
from spark_replay.session import start_session
from spark_replay.source import ROW_KINDS, KraftLogReader
from spark_replay.sources import find_log_files
from spark_replay.splits import DEFAULT_SPLIT_BYTES
from spark_replay.table_files import SCHEMAS, write_tables
from wire.metadata_records.features import NoOpRecord
from wire.metadata_records.topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from wire.record_batch import write_batch
from wire.record_frame import encode_record

TOPICS, PARTITIONS, BROKERS = 20, 16, (1, 2, 3, 4, 5)
SEGMENT_BYTES = 64 * 1024 * 1024
START_MS = 1_700_000_000_000
DUMP_CLASS = "org.apache.kafka.tools.DumpLogSegments"


def log_batches(records: int, seed: int = 1) -> Iterator[tuple[int, bytes]]:
    """The batches of a log of `records` records, each with its base offset."""
    random, values, offset = Random(seed), _values(Random(seed)), 0
    while offset < records:
        batch = [(None, next(values)) for _ in range(min(random.choice((1, 1, 1, 2, 8)), records - offset))]
        yield (
            offset,
            write_batch(base_offset=offset, leader_epoch=1, timestamp_ms=START_MS + offset, records=batch),
        )
        offset += len(batch)


def generate(folder: Path, records: int, seed: int = 1) -> int:
    """Write a log of `records` records below `folder`; its size in bytes."""
    log_folder = folder / "__cluster_metadata-0"
    log_folder.mkdir(parents=True)
    start, segment, size = 0, bytearray(), 0
    for offset, batch in log_batches(records, seed):
        if len(segment) >= SEGMENT_BYTES:
            size += (log_folder / f"{start:020d}.log").write_bytes(segment)
            start, segment = offset, bytearray()
        segment += batch
    return size + (log_folder / f"{start:020d}.log").write_bytes(segment)


def _values(random: Random) -> Iterator[bytes]:
    topics = [UUID(int=1000 + number) for number in range(TOPICS)]
    for number, topic_id in enumerate(topics):
        yield encode_record(TopicRecord(name=f"topic-{number}", topic_id=topic_id))
        for partition_id in range(PARTITIONS):
            replicas = tuple(random.sample(BROKERS, 3))
            yield encode_record(
                PartitionRecord(
                    partition_id=partition_id,
                    topic_id=topic_id,
                    replicas=replicas,
                    isr=replicas,
                    leader=replicas[0],
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=tuple(UUID(int=5000 + replica) for replica in replicas),
                )
            )
    no_op = encode_record(NoOpRecord())
    while True:
        if random.random() < 0.7:
            yield no_op
        else:
            yield encode_record(
                PartitionChangeRecord(
                    partition_id=random.randrange(PARTITIONS),
                    topic_id=random.choice(topics),
                    isr=tuple(random.sample(BROKERS, 2)),
                    leader=random.choice(BROKERS),
                )
            )


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


def run_step(step: str, folder: Path, cores: int) -> float:
    """Seconds of one step in this process, Spark's start not counted."""
    if step == "decode":
        start = time.perf_counter()
        decode(folder)
        return time.perf_counter() - start
    with tempfile.TemporaryDirectory(prefix="kquorum-bench-") as work:
        spark = start_session(Path(work), master=f"local[{cores}]")
        start = time.perf_counter()
        if step == "source":
            rows = spark.read.format("kraft_log").option("rows", "all").load(str(folder))
            rows.write.format("noop").mode("overwrite").save()
        elif step == "files":
            folders = {kind: Path(work) / kind for kind in SCHEMAS}
            write_tables(spark, find_log_files(folder), folders)
        else:
            build(spark, folder, Path(work) / "tables", progress=lambda name: _say(name, start))
        seconds = time.perf_counter() - start
        spark.stop()
    return seconds


def _say(name: str, start: float) -> None:
    print(f"{time.perf_counter() - start:8.1f} s  {name}", file=sys.stderr)


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
    step: str, cores: int, records: int, seconds: float, java_mb: float, python_mb: float
) -> dict[str, object]:
    return {
        "step": step,
        "cores": cores,
        "seconds": seconds,
        "records_per_s": records / seconds,
        "a_core": records / seconds / cores,
        "java_mb": java_mb,
        "python_mb": python_mb,
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
        assert process.wait() == 0, "DumpLogSegments failed"
    seconds = time.perf_counter() - start
    return _row("DumpLogSegments", 1, records, seconds, sum(memory.peak_mb.values()), 0.0)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, os.cpu_count() or 1])
    parser.add_argument("--dump", action="store_true", help="also Kafka's DumpLogSegments")
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--step", choices=("decode", "source", "files", "build"), help="this one alone, of --folder"
    )
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args(arguments)
    if options.step:
        print(run_step(options.step, options.folder, options.cores[0]))
        return
    machine = hardware()
    with tempfile.TemporaryDirectory(prefix="kquorum-bench-") as work:
        folder = Path(work)
        size = generate(folder, options.records)
        rows = [measured("decode", folder, 1, options.records)]
        for cores in dict.fromkeys(options.cores):
            rows += [measured(step, folder, cores, options.records) for step in ("source", "files", "build")]
        if options.dump:
            rows.append(dump_log_segments(folder, options.records))
    settings = {"records": options.records, "MB": round(size / 1e6, 1)}
    print_result("audit_replay", machine, settings, {"replay": rows}, as_json=options.json)


if __name__ == "__main__":
    main()
