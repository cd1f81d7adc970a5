"""Every decoder of what this program reads from a disk or from a peer: its seeds, and the errors that it may raise."""

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kquorum.metadata.log_check.indexes import IndexWalk, OffsetIndexWalk, TimeIndexWalk
from kquorum.metadata.log_check.small_files import partition_metadata_fault
from kquorum.raft.adapters.election_log import _event as read_election
from kquorum.raft.adapters.quorum_checkpoint import decode_quorum_checkpoint
from kquorum.raft.adapters.quorum_state_file import decode_quorum_state
from kquorum.raft.adapters.snapshot_files import problem_of
from kquorum.snapshots.outline import outline_of
from kquorum.snapshots.reader import SnapshotReader
from kquorum.storage.leader_epoch_checkpoint import decode_epochs
from kquorum.storage.meta_properties import decode_meta_properties
from kquorum.storage.recovery_point import FILE_NAME as RECOVERY_POINT
from kquorum.storage.recovery_point import read_recovery_point
from kquorum.wire import message_codec
from kquorum.wire.audit_note import audit_note_to_json
from kquorum.wire.batch_walk import walk_batches
from kquorum.wire.compression import CompressionCodec, decompress
from kquorum.wire.control_records import decode_control_record, decode_control_record_lenient
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_batch import parse_batches
from kquorum.wire.log_scan import Damage, scan_batches
from kquorum.wire.record_batch import MAX_DECOMPRESSED_BYTES, check_batch, read_records, read_values
from kquorum.wire.record_frame import decode_record, decode_record_lenient
from tests.fuzz import seeds
from tests.support.fault_file_system import FaultFileSystem

FOLDER = Path("/disk")
Read = Callable[[bytes], object]


@dataclass(frozen=True)
class Decoder:
    """`read` may raise `errors` and nothing else; `seal` makes a checksum right again, or most bytes would be refused
    by it before anything else is looked at."""

    read: Read
    seeds: Callable[[], Sequence[bytes]]
    errors: tuple[type[Exception], ...] = (DecodeError,)
    seal: Callable[[bytes], bytes] | None = None


def read_batch(data: bytes) -> None:
    header = check_batch(data)
    values: list[bytes | None] | None = None
    try:
        records = read_records(data, 0, header)
        values = [record.value for record in records]
    finally:
        # Whatever one of them says of the bytes, the other one says too.
        try:
            assert read_values(data, 0, header) == values
        except DecodeError:
            assert values is None


def scan(data: bytes) -> None:
    """Neither raises, and both find the same sound batches up to the first damage."""
    found = list(scan_batches(data, base_offset=0))
    walked = list(walk_batches(memoryview(data)))
    assert len(walked) <= len(data)
    if not any(isinstance(each, Damage) for each in found):
        assert [each.position for each in walked] == [each.position for each in found]
    parse_batches(data)


def read_control(data: bytes) -> None:
    key, value = (data[1:5], data[5:]) if data[:1] != b"\x00" else (None, data)
    lenient = decode_control_record_lenient(key, value)
    try:
        record = decode_control_record(key, value)
    except DecodeError:
        assert lenient.record is None
        raise
    assert lenient.record == record


def read_record(data: bytes) -> None:
    lenient = decode_record_lenient(data)
    try:
        record = decode_record(data)
    except DecodeError:
        assert lenient.record is None
        raise
    assert repr(lenient.record) == repr(record), "by their texts, as a NaN is unlike itself"


def read_snapshot(data: bytes) -> None:
    outline_of(memoryview(data))
    for _value in SnapshotReader(data).values():
        pass


def on_disk(name: str, read: Callable[[FaultFileSystem, Path], object]) -> Read:
    def read_file(data: bytes) -> None:
        fs = FaultFileSystem(FOLDER)
        fs.put(FOLDER / name, data)
        read(fs, FOLDER / name)

    return read_file


def read_index(walk: type[IndexWalk]) -> Read:
    def read(data: bytes) -> None:
        faults: list[object] = []
        entries = walk(memoryview(data), 0, faults.append)
        position = 0
        for header in seeds.index_headers():
            entries.observe(position, header)
            position += header.size_in_bytes
        entries.finish()

    return read


def read_message(data: bytes) -> None:
    """The first two bytes choose the class and the version (`seeds.messages`). What was read can be written, and is
    read again as the same."""
    versions = seeds.message_versions()
    cls, version = versions[int.from_bytes(data[:2], "big") % len(versions)]
    body = data[2:]
    try:
        message, end = message_codec.decode_bounded(cls, version, body, 0, 10_000)
    except DecodeError:
        # Without the bound it is refused as well, or was too long.
        with contextlib.suppress(DecodeError):
            message_codec.decode(cls, version, body)
        raise
    assert end <= len(body)
    encoded = message_codec.encode(message, version)
    again, _ = message_codec.decode(cls, version, encoded)
    assert message_codec.encode(again, version) == encoded, "by their bytes, as a NaN is unlike itself"


def decompressing(codec: CompressionCodec) -> Read:
    return lambda data: decompress(codec, data, MAX_DECOMPRESSED_BYTES)


def read_note(data: bytes) -> None:
    note = audit_note_to_json(data)
    assert note is None or json.dumps(note)


DECODERS: dict[str, Decoder] = {
    "batch": Decoder(read_batch, seeds.batches, seal=seeds.sealed),
    "segment": Decoder(scan, seeds.segments, errors=(), seal=seeds.sealed),
    "gzip": Decoder(decompressing(CompressionCodec.GZIP), seeds.gzip_data),
    "snappy": Decoder(decompressing(CompressionCodec.SNAPPY), seeds.snappy_data),
    "lz4": Decoder(decompressing(CompressionCodec.LZ4), seeds.lz4_data),
    "zstd": Decoder(decompressing(CompressionCodec.ZSTD), seeds.zstd_data),
    "control-record": Decoder(read_control, seeds.control_records),
    "metadata-record": Decoder(read_record, seeds.metadata_records),
    "message": Decoder(read_message, seeds.messages),
    "audit-note": Decoder(read_note, seeds.audit_notes, errors=()),
    "snapshot": Decoder(read_snapshot, seeds.snapshots, seal=seeds.sealed),
    "snapshot-file": Decoder(
        on_disk("snapshot", lambda fs, path: problem_of(path, 3, fs)),
        seeds.snapshots,
        errors=(),
        seal=seeds.sealed,
    ),
    "quorum-checkpoint": Decoder(decode_quorum_checkpoint, seeds.quorum_checkpoints, seal=seeds.sealed),
    "quorum-state": Decoder(decode_quorum_state, seeds.quorum_states, errors=(ValueError,)),
    "election": Decoder(read_election, seeds.elections, errors=()),
    "leader-epoch-checkpoint": Decoder(decode_epochs, seeds.epoch_checkpoints, errors=(ValueError,)),
    "recovery-point": Decoder(
        on_disk(RECOVERY_POINT, lambda fs, path: read_recovery_point(path.parent, fs)),
        seeds.recovery_points,
        errors=(),
    ),
    "meta-properties": Decoder(decode_meta_properties, seeds.meta_properties, errors=(ValueError,)),
    "partition-metadata": Decoder(partition_metadata_fault, seeds.partition_metadata, errors=()),
    "offset-index": Decoder(read_index(OffsetIndexWalk), seeds.offset_indexes, errors=()),
    "time-index": Decoder(read_index(TimeIndexWalk), seeds.time_indexes, errors=()),
}
