"""`records` and `batches` by a plain loop over the files; what cannot be read is left to tests of its own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kquorum.snapshots.naming import snapshot_id_of
from kquorum.wire.control_records import SnapshotHeaderRecord, decode_control_record
from kquorum.wire.log_scan import ScannedBatch, scan_batches
from kquorum.wire.record_batch import Record, read_records
from kquorum.wire.record_frame import decode_record
from kquorum.wire.record_json import record_to_json, type_name
from tests.support.spark.plain_tables import Row

_BROKER_RESOURCE, _TOPIC_RESOURCE = 4, 2


def files_of(folder: Path) -> list[Path]:
    log = folder / "__cluster_metadata-0"
    return sorted([*log.glob("*.log"), *log.glob("*.checkpoint")])


def batches(folder: Path) -> list[Row]:
    return [
        {
            **_file(path),
            "position": batch.position,
            "base_offset": batch.header.base_offset,
            "last_offset": batch.header.last_offset,
            "leader_epoch": batch.header.partition_leader_epoch,
            "timestamp_ms": batch.header.max_timestamp_ms,
            "record_count": batch.header.record_count,
            "size_in_bytes": batch.header.size_in_bytes,
            "is_control": batch.header.is_control,
            "codec": batch.header.codec.name.lower(),
            "crc": batch.header.crc,
        }
        for path in files_of(folder)
        for batch in _batches(path)
    ]


def records(folder: Path) -> list[Row]:
    """Every record that can be read, in files where all can be."""
    return [row for path in files_of(folder) for row in _records(path)]


def _batches(path: Path) -> Iterator[ScannedBatch]:
    return (item for item in scan_batches(path.read_bytes()) if isinstance(item, ScannedBatch))


def _file(path: Path) -> Row:
    is_log = path.suffix == ".log"
    return {
        "file": path.name,
        "file_kind": "log" if is_log else "snapshot",
        "segment_base_offset": int(path.stem) if is_log else None,
    }


def _records(path: Path) -> Iterator[Row]:
    snapshot, snapshot_ms = snapshot_id_of(path.name), None
    for batch in _batches(path):
        for record in read_records(batch.data, 0, batch.header):
            decoded: Any = _decoded(record, is_control=batch.header.is_control)
            if isinstance(decoded, SnapshotHeaderRecord):
                snapshot_ms = decoded.last_contained_log_timestamp
            yield {
                **_file(path),
                **_what(record, decoded, is_control=batch.header.is_control),
                "position": batch.position,
                "offset": record.offset,
                "batch_base_offset": batch.header.base_offset,
                "leader_epoch": batch.header.partition_leader_epoch,
                "timestamp_ms": record.timestamp_ms,
                "state_offset": record.offset if snapshot is None else snapshot.end_offset - 1,
                "state_timestamp_ms": record.timestamp_ms if snapshot is None else snapshot_ms,
                "is_control": batch.header.is_control,
            }


def _decoded(record: Record, *, is_control: bool) -> Any:
    return (
        decode_control_record(record.key, record.value) if is_control else decode_record(record.value or b"")
    )


def _what(record: Record, decoded: Any, *, is_control: bool) -> Row:
    fields = record_to_json(decoded)
    # The key of a control record is its version and type, a record's frame its version, type and version.
    place = record.key[2:4] if is_control and record.key else (record.value or b"")[1:2]
    return {
        "record_type": type_name(decoded),
        "api_key": int.from_bytes(place, "big"),
        "version": decoded.version if is_control else (record.value or b"")[2],
        "payload": json.dumps(fields, separators=(",", ":"), ensure_ascii=False),
        **_entity(type_name(decoded), fields),
        "raw": None,
        "problem": None,
    }


def _entity(kind: str, fields: Row) -> Row:
    entity: Row = {name: fields.get(name) for name in ("topic_id", "partition_id", "broker_id")}
    entity["topic_name"] = fields["name"] if kind == "TopicRecord" else fields.get("topic_name") or None
    if kind in ("FenceBrokerRecord", "UnfenceBrokerRecord"):
        entity["broker_id"] = fields["id"]
    if kind == "ConfigRecord" and fields["resource_type"] == _TOPIC_RESOURCE:
        entity["topic_name"] = fields["resource_name"]
    if kind == "ConfigRecord" and fields["resource_type"] == _BROKER_RESOURCE and fields["resource_name"]:
        entity["broker_id"] = int(fields["resource_name"])
    return entity
