"""Records per second from a log's bytes to the Arrow batches of the audit's tables, without Spark.

    python -m benchmarks.audit_decode [LOG ...] [--records 500000] [--fast] [--json]

One process. `columns` is what the audit's source does with a segment: find the batches, check them, and make the rows
of `records`, `batches` and `damage`; `parquet` writes them too. Beside them, of the same run: `rows`, the same made row
by row, as it once was, and `bare`, which decodes each record and makes nothing of it. Of the processor's time, which
other work on the machine hardly changes; best of three runs.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks._report import hardware, print_result
from benchmarks._row_by_row import arrow_batches
from benchmarks.audit_replay import log_batches
from benchmarks.decode_records import log_of, partition_values, read_all
from kquorum.spark_replay.arrow_types import arrow_schema
from kquorum.spark_replay.decode.columns import LogColumns
from kquorum.spark_replay.decode.records import origin_of
from kquorum.spark_replay.decode.sources import FileKind, LogFile
from kquorum.spark_replay.decode.splits import scan_runs
from kquorum.spark_replay.source import ROW_KINDS
from kquorum.spark_replay.tables.building.source_rows import SOURCE_ROWS
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.record_frame import encode_record

RUNS = 3
SCHEMA = arrow_schema(SOURCE_ROWS)
SCHEMAS = dict.fromkeys(ROW_KINDS["all"], SCHEMA)


def columns(data: bytes, file: LogFile) -> Iterator[Any]:
    """The Arrow batches as the audit's source makes them."""
    fixed = {"source": file.source, "file_kind": str(file.kind)}
    origin = origin_of(file)
    collected = LogColumns(SCHEMAS, origin, fixed=fixed, show_secrets=False)
    for item in scan_runs(memoryview(data), origin, 0, len(data)):
        collected.add(item)
        if collected.is_full:
            yield from (batch for _, batch in collected.take())
    yield from (batch for _, batch in collected.take())


def write_parquet(data: bytes, file: LogFile, folder: Path) -> None:
    with pq.ParquetWriter(folder / "rows.parquet", SCHEMA, compression="zstd") as writer:
        for batch in columns(data, file):
            writer.write_table(pa.Table.from_batches([batch]))


def seconds_of(action: Callable[[], object]) -> float:
    begin = time.process_time()
    action()
    return time.process_time() - begin


def count_rows(batches: Iterator[Any]) -> int:
    return sum(batch.num_rows for batch in batches)


def measured(name: str, data: bytes, folder: Path) -> dict[str, object]:
    file = LogFile(
        path=name, name=name, source="log", kind=FileKind.LOG, size_in_bytes=len(data), base_offset=0
    )
    _, records = read_all(data)
    assert count_rows(columns(data, file)) == count_rows(arrow_batches(SCHEMA, memoryview(data), file))
    sides: dict[str, Callable[[], object]] = {
        "bare": lambda: read_all(data),
        "rows": lambda: count_rows(arrow_batches(SCHEMA, memoryview(data), file)),
        "columns": lambda: count_rows(columns(data, file)),
        "parquet": lambda: write_parquet(data, file, folder),
    }
    best = {side: float("inf") for side in sides}
    for _ in range(RUNS):
        for side, action in sides.items():
            best[side] = min(best[side], seconds_of(action))
    return {
        "log": name,
        "mb": len(data) / 1e6,
        "records": records,
        **{f"{side}_per_s": records / seconds for side, seconds in best.items()},
        "columns_to_rows": best["rows"] / best["columns"],
        "columns_to_bare": best["bare"] / best["columns"],
    }


def logs(paths: Sequence[Path], count: int) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        yield "/".join(path.parts[-3:-1]) or path.name, path.read_bytes()
    yield "mixed", b"".join(batch for _, batch in log_batches(count))
    yield "partitions, batches of 1000", log_of(partition_values(count), 1000, CompressionCodec.NONE)
    yield (
        "no-ops, batches of 1",
        log_of(iter([encode_record(NoOpRecord())] * count), 1, CompressionCodec.NONE),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("logs", nargs="*", type=Path, help="log segments of real clusters")
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument(
        "--fast", action="store_true", help="a hundredth of the records, to see that all works"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    count = options.records // 100 if options.fast else options.records
    machine = hardware()
    with tempfile.TemporaryDirectory(prefix="kquorum-bench-") as folder:
        rows = [measured(name, data, Path(folder)) for name, data in logs(options.logs, count)]
    settings = {"generated records": count, "runs": RUNS}
    print_result("audit_decode", machine, settings, {"bytes to columns": rows}, as_json=options.json)


if __name__ == "__main__":
    main()
