"""Records per second of the replay: decoding alone, the Spark source alone, and a whole audit, in one run.

    python -m benchmarks.audit_replay [--records 500000] [--cores 2]

The log is generated: seven NoOps in ten records, the rest partition changes of a few hundred partitions, a batch of
one to eight records each, in segments of 64 MiB. Every figure is one run, Java's warm-up included where Spark is part
of it; decoding alone is one process on one core, so the source's gain over it is what the other cores are worth.
"""

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from uuid import UUID

from spark_replay.audit import build
from spark_replay.schemas import SOURCE_ROWS
from spark_replay.session import start_session
from spark_replay.source import ROW_KINDS, KraftLogReader
from spark_replay.sources import find_log_files
from spark_replay.splits import DEFAULT_SPLIT_BYTES
from wire.metadata_records.features import NoOpRecord
from wire.metadata_records.topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from wire.record_batch import write_batch
from wire.record_frame import encode_record

TOPICS, PARTITIONS, BROKERS = 20, 16, (1, 2, 3, 4, 5)
SEGMENT_BYTES = 64 * 1024 * 1024
START_MS = 1_700_000_000_000


def generate(folder: Path, records: int, seed: int = 1) -> int:
    """Write a log of `records` records below `folder`; its size in bytes."""
    log_folder = folder / "__cluster_metadata-0"
    log_folder.mkdir(parents=True)
    random, values = Random(seed), _values(Random(seed))
    offset, start, segment, size = 0, 0, bytearray(), 0
    while offset < records:
        batch = [(None, next(values)) for _ in range(min(random.choice((1, 1, 1, 2, 8)), records - offset))]
        segment += write_batch(
            base_offset=offset, leader_epoch=1, timestamp_ms=START_MS + offset, records=batch
        )
        offset += len(batch)
        if len(segment) >= SEGMENT_BYTES or offset == records:
            (log_folder / f"{start:020d}.log").write_bytes(segment)
            size += len(segment)
            start, segment = offset, bytearray()
    return size


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


def decode_alone(folder: Path) -> float:
    """Seconds to make the Arrow batches of records, batches and damage in this process."""
    reader = KraftLogReader(
        SOURCE_ROWS,
        find_log_files(folder),
        ROW_KINDS["all"],
        split_bytes=DEFAULT_SPLIT_BYTES,
        show_secrets=False,
    )
    start = time.perf_counter()
    for split in reader.partitions():
        for _ in reader.read(split):
            pass
    return time.perf_counter() - start


def through_spark(folder: Path, work: Path, cores: int) -> tuple[float, float, float]:
    """Seconds to start Spark, to pull every row through the source once, and for a whole audit after that."""
    start = time.perf_counter()
    spark = start_session(work, master=f"local[{cores}]")
    started = time.perf_counter()
    spark.read.format("kraft_log").option("rows", "all").load(str(folder)).write.format("noop").mode(
        "overwrite"
    ).save()
    read = time.perf_counter()
    build(spark, folder, work / "tables")
    done = time.perf_counter()
    spark.stop()
    return started - start, read - started, done - read


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kquorum-bench-") as folder:
        work = Path(folder)
        size = generate(work / "log", options.records)
        print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
        print(f"{options.records:,} records, {size / 1e6:.1f} MB, load {os.getloadavg()[0]:.1f} at the start")
        alone = decode_alone(work / "log")
        startup, source, audit = through_spark(work / "log", work, options.cores)
    for name, seconds in (
        ("decoding alone, 1 process", alone),
        (f"the Spark source, local[{options.cores}]", source),
        (f"the whole audit, local[{options.cores}]", audit),
    ):
        print(f"{name:<32} {seconds:8.1f} s {options.records / seconds:12,.0f} records/s")
    print(f"{'starting Spark':<32} {startup:8.1f} s")


if __name__ == "__main__":
    main()
