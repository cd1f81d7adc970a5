"""Records read per second: batches found and checked, split into records, and each record decoded.

    python -m benchmarks.decode_records [LOG ...] [--records 1000000] [--fast] [--json]

This is what `log dump` and the audit do with a log, without what they make of it: `scan_batches`, `read_records`,
`decode_record`. Beside the given segments of real clusters there are generated ones: partition records of three
replicas with directories, in batches of a thousand and by lz4, and no-ops of one batch each. One process; best of
seven runs. The bare limit of the same run only finds the batches and checks their CRC-32C. `runs` reads as the audit
does, thousands of batches at once (`wire.batch_runs`), and decodes each record; what is unusual goes one by one.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from uuid import UUID

from benchmarks._report import hardware, print_result
from kquorum.wire.batch_runs import batch_of_run, plain_values, read_run
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.log_scan import ScannedBatch, scan_batches
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.metadata_records.topics import PartitionRecord
from kquorum.wire.record_batch import read_records, write_batch
from kquorum.wire.record_frame import decode_record, encode_record

RUNS = 7
BATCH_RECORDS = 1000
TIMESTAMP_MS = 1_700_000_000_000
DIRECTORIES = tuple(UUID(int=(9 << 100) + number) for number in range(30))


def partition_values(count: int) -> Iterator[bytes]:
    for number in range(count):
        first = number % 28
        replicas = (first, first + 1, first + 2)
        record = PartitionRecord(
            partition_id=number % 100,
            topic_id=UUID(int=(5 << 100) + number // 100),
            replicas=replicas,
            isr=replicas if number % 50 else replicas[:2],
            leader=first,
            leader_epoch=number % 7,
            partition_epoch=number % 11,
            directories=tuple(DIRECTORIES[broker] for broker in replicas),
        )
        yield encode_record(record, 1)


def log_of(values: Iterator[bytes], batch_records: int, codec: CompressionCodec) -> bytes:
    out = bytearray()
    offset = 0
    batch: list[tuple[bytes | None, bytes | None]] = []

    def write() -> None:
        nonlocal offset, batch
        out.extend(
            write_batch(
                base_offset=offset, leader_epoch=1, timestamp_ms=TIMESTAMP_MS, records=batch, codec=codec
            )
        )
        offset += len(batch)
        batch = []

    for value in values:
        batch.append((None, value))
        if len(batch) == batch_records:
            write()
    if batch:
        write()
    return bytes(out)


def read_all(data: bytes) -> tuple[int, int]:
    """Batches and records."""
    batches = records = 0
    for item in scan_batches(data):
        assert isinstance(item, ScannedBatch), item
        batches += 1
        is_control = item.header.is_control
        for record in read_records(item.data, 0, item.header):
            records += 1
            if not is_control and record.value is not None:
                decode_record(record.value)
    return batches, records


def read_by_runs(data: bytes) -> int:
    """Records."""
    view, position, expected, epoch, records = memoryview(data), 0, None, -1, 0
    while position < len(view):
        run = read_run(view, position, len(view), expected_offset=expected, epoch=epoch)
        assert run is not None, f"no sound batch at {position}"
        is_plain, values = plain_values(run)
        for value in values:
            decode_record(value)
        records += len(values)
        for place in (~is_plain).nonzero()[0].tolist():
            batch = batch_of_run(run, place)
            for record in read_records(batch.data, 0, batch.header):
                records += 1
                if not batch.header.is_control and record.value is not None:
                    decode_record(record.value)
        position, expected, epoch = run.end, run.next_offset, run.last_epoch
    return records


def find_only(data: bytes) -> int:
    return sum(1 for _ in scan_batches(data))


def best_s(action: Callable[[], object]) -> float:
    taken = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        action()
        taken.append(time.perf_counter() - begin)
    return min(taken)


def row(name: str, data: bytes) -> dict[str, object]:
    batches, records = read_all(data)
    assert read_by_runs(data) == records
    seconds = best_s(lambda: read_all(data))
    return {
        "log": name,
        "mb": len(data) / 1e6,
        "batches": batches,
        "records": records,
        "records_per_s": records / seconds,
        "runs_per_s": records / best_s(lambda: read_by_runs(data)),
        "us_per_record": seconds / records * 1e6,
        "bare_us": best_s(lambda: find_only(data)) / records * 1e6,
    }


def logs(paths: Sequence[Path], count: int) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        yield "/".join(path.parts[-3:-1]) or path.name, path.read_bytes()
    yield "partitions, batches of 1000", log_of(partition_values(count), BATCH_RECORDS, CompressionCodec.NONE)
    yield "the same, lz4", log_of(partition_values(count), BATCH_RECORDS, CompressionCodec.LZ4)
    no_op = encode_record(NoOpRecord(), 0)
    yield "no-ops, batches of 1", log_of(iter([no_op] * (count // 10)), 1, CompressionCodec.NONE)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("logs", nargs="*", type=Path, help="log segments or snapshots of real clusters")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument(
        "--fast", action="store_true", help="a hundredth of the records, to see that all works"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    count = options.records // 100 if options.fast else options.records
    machine = hardware()
    rows = [row(name, data) for name, data in logs(options.logs, count)]
    settings = {"generated records": count, "runs": RUNS}
    print_result("decode_records", machine, settings, {"decoding": rows}, as_json=options.json)


if __name__ == "__main__":
    main()
