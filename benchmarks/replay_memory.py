"""The memory of replaying a long log, which must not grow with it.

    python -m benchmarks.replay_memory [--records 5000000] [--fast] [--json]

Makes a log of that many records in a temporary folder (a topic of a thousand partitions; then, by turns, a no-op and
a partition change, a thousand records a batch), and replays it in fresh processes: by `MetadataLoader`, batch after
batch as they would be committed, and by `kquorum log verify`. The most anonymous memory of each is set beside that of
a tenth of the records: a replay that streams needs the same for both.
"""

import argparse
import mmap
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import UUID

from benchmarks._report import hardware, print_result
from benchmarks.big_image import POLL_S, anonymous_bytes
from kquorum.metadata.loader import MetadataLoader
from kquorum.wire.log_batch import log_batch
from kquorum.wire.log_scan import ScannedBatch, scan_batches
from kquorum.wire.metadata_records.features import FeatureLevelRecord, NoOpRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from kquorum.wire.record_batch import write_batch
from kquorum.wire.record_frame import encode_record

PARTITIONS = 1000
BATCH_RECORDS = 1000
TOPIC_ID = UUID(int=5 << 100)
DIRECTORIES = (UUID(int=9 << 100), UUID(int=10 << 100))
LOADER = ("-m", "benchmarks.replay_memory", "--replay")
VERIFY = ("-m", "kquorum.cli.entry", "log", "verify")


def values() -> Iterator[bytes]:
    """Without end."""
    yield encode_record(FeatureLevelRecord(name="metadata.version", feature_level=25), 0)
    yield encode_record(TopicRecord(name="t", topic_id=TOPIC_ID))
    for number in range(PARTITIONS):
        made = PartitionRecord(
            partition_id=number,
            topic_id=TOPIC_ID,
            replicas=(1, 2),
            isr=(1, 2),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=DIRECTORIES,
        )
        yield encode_record(made, 1)
    no_op = encode_record(NoOpRecord(), 0)
    changes = [
        encode_record(PartitionChangeRecord(partition_id=number, topic_id=TOPIC_ID, leader=leader), 1)
        for leader in (2, 1)
        for number in range(PARTITIONS)
    ]
    while True:
        for change in changes:
            yield no_op
            yield change


def make_log(folder: Path, records: int) -> None:
    folder.mkdir()
    source = values()
    with (folder / f"{0:020}.log").open("wb") as file:
        for offset in range(0, records, BATCH_RECORDS):
            count = min(BATCH_RECORDS, records - offset)
            some: list[tuple[bytes | None, bytes | None]] = [(None, next(source)) for _ in range(count)]
            file.write(
                write_batch(base_offset=offset, leader_epoch=1, timestamp_ms=1_700_000_000_000, records=some)
            )


def replay_in_this_process(folder: Path) -> None:
    loader = MetadataLoader()
    path = folder / f"{0:020}.log"
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        for found in scan_batches(memoryview(mapped)):
            assert isinstance(found, ScannedBatch), found
            loader.handle_commit([log_batch(bytes(found.data))])
            found.data.release()
    print(loader.last_applied_offset)


def measure(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """Seconds and the most anonymous memory in MB."""
    begin = time.perf_counter()
    peak = 0
    with subprocess.Popen([sys.executable, *command, str(folder)], stdout=subprocess.DEVNULL) as child:
        while True:
            peak = max(peak, anonymous_bytes(child.pid))
            try:
                child.wait(POLL_S)
            except subprocess.TimeoutExpired:
                continue
            break
    assert child.returncode == 0, command
    return time.perf_counter() - begin, peak / 1e6


def rows(records: int) -> Iterator[dict[str, object]]:
    with tempfile.TemporaryDirectory() as parent:
        whole, tenth = Path(parent) / "whole", Path(parent) / "tenth"
        make_log(whole, records)
        make_log(tenth, records // 10)
        for name, command in (("MetadataLoader", LOADER), ("kquorum log verify", VERIFY)):
            _, small_mb = measure(command, tenth)
            seconds, peak_mb = measure(command, whole)
            yield {
                "replay": name,
                "records": records,
                "seconds": seconds,
                "records_per_s": records / seconds,
                "peak_mb": peak_mb,
                "peak_mb_of_a_tenth": small_mb,
            }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument(
        "--fast", action="store_true", help="a hundredth of the records, to see that all works"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--replay", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.replay is not None:
        replay_in_this_process(options.replay)
        return
    machine = hardware()
    count = options.records // 100 if options.fast else options.records
    settings = {"records": count, "partitions": PARTITIONS, "records a batch": BATCH_RECORDS}
    print_result("replay_memory", machine, settings, {"replay": list(rows(count))}, as_json=options.json)


if __name__ == "__main__":
    main()
