"""Valid bytes for each decoder, from which the mutations begin; made in each run, so that no file has to be kept."""

import gzip
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import cramjam
import lz4.frame
from crc32c import crc32c

from kquorum.raft.adapters.quorum_checkpoint import encode_quorum_checkpoint
from kquorum.raft.adapters.quorum_state_file import CHECKSUM_KEY, encode_quorum_state
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import Endpoint, ReplicaKey, VersionRange, Voter, VoterSet
from kquorum.storage.indexes import SegmentIndexes
from kquorum.storage.leader_epoch_checkpoint import encode_epochs
from kquorum.storage.meta_properties import MetaProperties, encode_meta_properties
from kquorum.storage.recovery_point import FILE_NAME as RECOVERY_POINT
from kquorum.storage.recovery_point import RecoveryPoint
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    encode_control_record,
)
from kquorum.wire.message_codec import encode
from kquorum.wire.message_schema import Message
from kquorum.wire.message_schema import plan_of as message_plan_of
from kquorum.wire.messages.index import MESSAGES
from kquorum.wire.metadata_records.registry import ALL
from kquorum.wire.proto.audit_pb2 import AuditNote
from kquorum.wire.protocol.apis import message_types
from kquorum.wire.record_batch import HEADER_BYTES, BatchHeader, read_batch_header, write_batch
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import plan_of
from tests.support.fault_file_system import FaultFileSystem
from tests.support.wire_values import fullest, least

CONTROLS: tuple[type[Any], ...] = (
    LeaderChangeMessage,
    SnapshotHeaderRecord,
    SnapshotFooterRecord,
    KRaftVersionRecord,
    VotersRecord,
)


@cache
def message_versions() -> tuple[tuple[type[Message], int], ...]:
    """All messages in their lowest, first flexible and highest version."""
    found = []
    for api_key in MESSAGES:
        for cls in message_types(api_key):
            lowest, highest = cls.versions
            flexible = highest if cls.flexible_since is None else max(cls.flexible_since, lowest)
            found += [(cls, version) for version in sorted({lowest, flexible, highest})]
    return tuple(found)


@cache
def messages() -> tuple[bytes, ...]:
    return tuple(
        number.to_bytes(2, "big") + encode(make(message_plan_of(cls, version)), version)
        for number, (cls, version) in enumerate(message_versions())
        for make in (least, fullest)
    )


def sealed(data: bytes) -> bytes:
    """Every batch with the right checksum, as far as the lengths lead."""
    out = bytearray(data)
    position = 0
    while position + HEADER_BYTES <= len(out):
        end = position + 12 + int.from_bytes(out[position + 8 : position + 12], "big", signed=True)
        if end < position + HEADER_BYTES:
            break
        end = min(end, len(out))
        if len(out) - end < HEADER_BYTES:
            # Most changes make the last batch longer or shorter: its length goes with it.
            end = len(out)
            out[position + 8 : position + 12] = (end - position - 12).to_bytes(4, "big")
        out[position + 17 : position + 21] = crc32c(bytes(out[position + 21 : end])).to_bytes(4, "big")
        position = end
    return bytes(out)


@cache
def metadata_records() -> tuple[bytes, ...]:
    """Every type in every version, once with as little in it as can be and once with everything."""
    versions = [(cls, version) for cls in ALL for version in range(cls.versions[0], cls.versions[1] + 1)]
    return tuple(
        encode_record(make(plan_of(cls, version)), version)
        for cls, version in versions
        for make in (least, fullest)
    )


@cache
def _controls() -> tuple[tuple[bytes, bytes], ...]:
    plans = [plan_of(cls, 0) for cls in CONTROLS]
    return tuple(encode_control_record(make(plan)) for plan in plans for make in (least, fullest))


def control_records() -> tuple[bytes, ...]:
    """A first byte that says whether there is a key, then key and value."""
    return tuple(b"\x01" + key + value for key, value in _controls())


def _batch(
    offset: int, records: list[tuple[bytes | None, bytes | None]], epoch: int = 3, **options: Any
) -> bytes:
    return write_batch(base_offset=offset, leader_epoch=epoch, timestamp_ms=1_000, records=records, **options)


@cache
def batches() -> tuple[bytes, ...]:
    values: list[tuple[bytes | None, bytes | None]] = [(None, value) for value in metadata_records()]
    keyed: list[tuple[bytes | None, bytes | None]] = [(b"key", None), (None, b""), (b"", b"v" * 300)]
    plain = [_batch(7, values[start : start + 9]) for start in range(0, len(values), 9)]
    special = [_batch(0, keyed), _batch(0, list(_controls()), control=True)]
    packed = [_batch(3, values, codec=CompressionCodec.LZ4)]
    for codec, data in (
        (1, gzip_data()[0]),
        (2, snappy_data()[0]),
        (2, snappy_data()[1]),
        (4, zstd_data()[0]),
    ):
        header = bytearray(_batch(3, [(None, value) for value in metadata_records()])[:61])
        header[22] |= codec
        packed.append(sealed(bytes(header) + data))
    return (*plain, *special, *packed)


@cache
def segments() -> tuple[bytes, ...]:
    first = _batch(0, list(_controls())[:2], control=True)
    rest = [_batch(2 + 3 * each, [(None, bytes([each]) * 40 * each)] * 3, 3 + each) for each in range(9)]
    return (b"".join((first, *rest)), b"".join(rest), first + bytes(700))


def _records_body() -> bytes:
    return _batch(0, [(None, value) for value in metadata_records()])[61:]


@cache
def gzip_data() -> tuple[bytes, ...]:
    body = _records_body()
    return (
        gzip.compress(body, mtime=0),
        gzip.compress(body[:500], mtime=0) + gzip.compress(body[500:], mtime=0),
    )


@cache
def snappy_data() -> tuple[bytes, ...]:
    body = _records_body()
    block = bytes(cramjam.snappy.compress_raw(body))
    framed = b"\x82SNAPPY\x00" + (1).to_bytes(4, "big") * 2 + len(block).to_bytes(4, "big") + block
    return (block, framed)


@cache
def lz4_data() -> tuple[bytes, ...]:
    body = _records_body()
    sized: bytes = lz4.frame.compress(body, store_size=True, content_checksum=True, block_checksum=True)
    linked: bytes = lz4.frame.compress(body, block_linked=True, store_size=False)
    return (sized, linked, lz4.frame.compress(b""))


@cache
def zstd_data() -> tuple[bytes, ...]:
    body = _records_body()
    return (bytes(cramjam.zstd.compress(body)), bytes(cramjam.zstd.compress(b"a" * 100_000)))


@cache
def audit_notes() -> tuple[bytes, ...]:
    note = AuditNote(
        principal="User:admin",
        client_id="adminclient-1",
        client_address="/127.0.0.1",
        api_key=19,
        correlation_id=7,
        reason="a new topic",
        previous_note_hash=bytes(range(32)),
        covered_records=3,
    )
    return (note.SerializeToString(), AuditNote(principal="\u00e9" * 40).SerializeToString())


@cache
def snapshots() -> tuple[bytes, ...]:
    controls = dict(zip([cls.__name__ for cls in CONTROLS], _controls()[1::2], strict=True))
    head = [controls["SnapshotHeaderRecord"], controls["KRaftVersionRecord"], controls["VotersRecord"]]
    footer = [controls["SnapshotFooterRecord"]]
    values: list[tuple[bytes | None, bytes | None]] = [(None, value) for value in metadata_records()]
    first = _batch(0, [*head], control=True)
    middle = [_batch(3, values), _batch(3 + len(values), values, codec=CompressionCodec.LZ4)]
    end = _batch(3 + 2 * len(values), [*footer], control=True)
    return (
        first + b"".join(middle) + end,
        _batch(0, head[:1], control=True) + _batch(1, footer, control=True),
    )


def _voters() -> VoterSet:
    ids = range(1, 4)
    return VoterSet.of(
        *(
            Voter(
                ReplicaKey(each, UUID(int=each)),
                (Endpoint("CONTROLLER", f"c{each}", 9093),),
                VersionRange(0, 1),
            )
            for each in ids
        )
    )


@cache
def quorum_checkpoints() -> tuple[bytes, ...]:
    return (encode_quorum_checkpoint(_voters(), 1_000),)


@cache
def quorum_states() -> tuple[bytes, ...]:
    """As we write them, and as Kafka does: without a checksum that would stop most of what is done to them."""
    voted = QuorumState(leader_epoch=9, leader_id=-1, voted=ReplicaKey(2, UUID(int=7)))
    ours = tuple(encode_quorum_state(voted, (1, 2, 3), version) for version in (0, 1))
    return ours + tuple(each.split(f',"{CHECKSUM_KEY}"'.encode())[0] + b"}" for each in ours)


def elections() -> tuple[bytes, ...]:
    text = b'{"timestamp_ms":1,"node_id":2,"epoch":3,"role":"leader","cause":"majority","leader_id":2}'
    return (text, text.replace(b"{", b'{"more":[[{"a":[]}]],'))


@cache
def epoch_checkpoints() -> tuple[bytes, ...]:
    return (encode_epochs([(1, 0), (4, 100), (5, 2**40)]), encode_epochs([]))


@cache
def recovery_points() -> tuple[bytes, ...]:
    folder = Path("/disk")
    fs = FaultFileSystem(folder)
    point = RecoveryPoint(folder, fs)
    point.put(1234)
    point.put(99)
    return (fs.read(folder / RECOVERY_POINT),)


@cache
def meta_properties() -> tuple[bytes, ...]:
    properties = MetaProperties(
        cluster_id="abc=d e", node_id=3, directory_id=UUID(int=99), others=(("unstable.feature", "on"),)
    )
    return (encode_meta_properties(properties, 1_000), b"version=0\nbroker.id=4\ncluster.id=c\n")


def partition_metadata() -> tuple[bytes, ...]:
    return (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",)


@cache
def index_headers() -> tuple[BatchHeader, ...]:
    value = Random(1).randbytes(3000)
    return tuple(read_batch_header(_batch(offset, [(None, value)])) for offset in range(40))


@cache
def _indexes() -> tuple[bytes, bytes]:
    indexes, position = SegmentIndexes(0), 0
    for number, header in enumerate(index_headers()):
        indexes.observe(position, header.size_in_bytes, header.last_offset, 1_000 + number)
        position += header.size_in_bytes
    return indexes.encoded()


def offset_indexes() -> tuple[bytes, ...]:
    return (_indexes()[0], _indexes()[0] + bytes(80))


def time_indexes() -> tuple[bytes, ...]:
    return (_indexes()[1], _indexes()[1] + bytes(120))
