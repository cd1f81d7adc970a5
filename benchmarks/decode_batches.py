"""How fast logs are read and written, and the codec against kio's own in the same run.

    python -m benchmarks.decode_batches [LOG ...]

Without arguments it reads a generated log; with them, the given segments of a real cluster. Each figure is the best
of several runs on one core, which is what the code costs when nothing else disturbs it.
"""

import argparse
import datetime as dt
import io
import os
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from kio.schema.fetch.v17.request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kio.schema.fetch.v17.response import FetchableTopicResponse, FetchResponse, PartitionData
from kio.serial import entity_reader, entity_writer

from kquorum.wire.log_scan import ScannedBatch, scan_batches
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, PartitionRecord
from kquorum.wire.record_batch import check_batch, read_batch_header, read_records, write_batch
from kquorum.wire.record_frame import decode_record, encode_record
from tests.support.kio.codec import decode, encode

TOPIC_ID = UUID("00112233-4455-6677-8899-aabbccddeeff")
DIRECTORIES = tuple(UUID(int=1000 + number) for number in range(3))
NO_OP = NoOpRecord()
CHANGE = PartitionChangeRecord(partition_id=7, topic_id=TOPIC_ID, isr=(1, 2), leader=1)
PARTITION = PartitionRecord(
    partition_id=7, topic_id=TOPIC_ID, replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_epoch=4, partition_epoch=9,
    directories=DIRECTORIES,
)  # fmt: skip
REPEATS = 7


def best_us(action: Callable[[], object], calls: int = 5000) -> float:
    """Microseconds of one call in the best of several runs."""
    fastest = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(calls):
            action()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest / calls * 1e6


def generated_log(batches: int = 20_000) -> bytes:
    """Mostly no-ops of one batch each, one partition change in eight, as in a cluster at work."""
    values = [[NO_OP]] * 7 + [[CHANGE, CHANGE]]
    out, offset = bytearray(), 0
    for number in range(batches):
        records = [(None, encode_record(record)) for record in values[number % len(values)]]
        out += write_batch(
            base_offset=offset, leader_epoch=1, timestamp_ms=1_700_000_000_000, records=records
        )
        offset += len(records)
    return bytes(out)


def read_log(data: bytes) -> tuple[int, int]:
    """Batches and records: scanned, checksums checked, every data record decoded."""
    batches = records = 0
    for item in scan_batches(data):
        if isinstance(item, ScannedBatch):
            batches += 1
            for record in read_records(item.data, 0, item.header):
                records += 1
                if not item.header.is_control and record.value is not None:
                    decode_record(record.value)
    return batches, records


def report_log(name: str, data: bytes) -> None:
    fastest = float("inf")
    batches = records = 0
    for _ in range(3):
        start = time.perf_counter()
        batches, records = read_log(data)
        fastest = min(fastest, time.perf_counter() - start)
    rate = records / fastest
    print(
        f"  {name}: {records} records in {batches} batches, {len(data) / 1e6:.1f} MB: {rate:,.0f} records/s"
    )


def report_hot_paths() -> None:
    write_one = partial(write_batch, base_offset=1, leader_epoch=1, timestamp_ms=1)
    for label, record in (("NoOp", NO_OP), ("PartitionChange", CHANGE), ("Partition", PARTITION)):
        value = encode_record(record)
        batch = write_one(records=[(None, value)])
        figures = {
            "encode record": best_us(partial(encode_record, record)),
            "decode record": best_us(partial(decode_record, value)),
            "write batch of 1": best_us(partial(write_one, records=[(None, value)])),
            "read header": best_us(partial(read_batch_header, batch)),
            "check batch": best_us(partial(check_batch, batch)),
            "read records": best_us(partial(read_records, batch, 0, read_batch_header(batch))),
        }
        print(f"  {label}: " + ", ".join(f"{name} {figure:.2f} us" for name, figure in figures.items()))


def fetch_request() -> FetchRequest:
    partition: Any = {
        "partition": 0,
        "current_leader_epoch": 3,
        "fetch_offset": 30637,
        "last_fetched_epoch": 3,
    }
    partition |= {"log_start_offset": 0, "partition_max_bytes": 0, "replica_directory_id": UUID(int=77)}
    topic = FetchTopic(topic_id=UUID(int=1), partitions=(FetchPartition(**partition),))
    request: Any = {"max_wait": dt.timedelta(milliseconds=500), "min_bytes": 0, "max_bytes": 8 << 20}
    request |= {"cluster_id": "AAAAAAAAAAAAAAAAAAAAAQ", "topics": (topic,), "forgotten_topics_data": ()}
    return FetchRequest(replica_state=ReplicaState(replica_id=2, replica_epoch=-1), **request)  # type: ignore[arg-type]


def fetch_response() -> FetchResponse:
    records = write_batch(
        base_offset=1, leader_epoch=1, timestamp_ms=1, records=[(None, encode_record(CHANGE))]
    )
    partition: Any = {
        "partition_index": 0,
        "error_code": ErrorCode.none,
        "high_watermark": 5,
        "log_start_offset": 0,
    }
    partition |= {"last_stable_offset": 5, "aborted_transactions": None, "records": records}
    topic = FetchableTopicResponse(topic_id=UUID(int=1), partitions=(PartitionData(**partition),))
    response: Any = {"throttle_time": dt.timedelta(0), "error_code": ErrorCode.none, "session_id": 0}
    return FetchResponse(responses=(topic,), **response)


def kio_encode(write: Any, entity: Any) -> bytes:
    out = io.BytesIO()
    write(out, entity)
    return out.getvalue()


def report_against_kio() -> None:
    for label, entity in (("Fetch v17 request", fetch_request()), ("Fetch v17 response", fetch_response())):
        cls: Any = type(entity)
        kio_write, kio_read = entity_writer(cls), entity_reader(cls)
        encoded = encode(entity)
        assert encoded == kio_encode(kio_write, entity)
        assert decode(cls, encoded) == kio_read(encoded, 0)
        ours = best_us(partial(encode, entity)), best_us(partial(decode, cls, encoded))
        theirs = best_us(partial(kio_encode, kio_write, entity)), best_us(partial(kio_read, encoded, 0))
        for action, mine, other in zip(("encode", "decode"), ours, theirs, strict=True):
            print(f"  {label}, {action}: {mine:.2f} us, kio {other:.2f} us, ratio {mine / other:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "logs", nargs="*", type=Path, help="log segments or snapshots (default: a generated log)"
    )
    arguments = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {sys.platform} {platform.machine()}")
    print("reading logs (scan, checksum, decode):")
    for path in arguments.logs:
        report_log(str(path), path.read_bytes())
    if not arguments.logs:
        report_log("generated", generated_log())
    print("hot paths:")
    report_hot_paths()
    print("against kio:")
    report_against_kio()


if __name__ == "__main__":
    main()
