"""An image as the batches of a snapshot file (KIP-630), with what else must survive the log below it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from metadata.image.image import MetadataImage
from metadata.image.metadata_version import NO_OP_RECORD, record_version
from metadata.image.records import image_values
from raft.ports import QuorumAt
from raft.voters import voters_record
from snapshots.naming import SnapshotId
from snapshots.writer import SnapshotWriter
from wire.audit_note import AUDIT_NOTE_TAG
from wire.metadata_records.features import NoOpRecord
from wire.record_batch import CompressionCodec
from wire.record_frame import encode_record

# Kafka allows 8 MiB; with less, the pieces of work are short, and compression gains nothing from more.
BATCH_BYTES = 64 * 1024
_VALUES_BETWEEN_RESTS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotContent:
    """`last_audit_note` is the newest note at or below the image's offset: the next one holds its hash, so the chain
    must not end where the log was cut. `quorum` is what the log says of the voters up to there."""

    image: MetadataImage
    quorum: QuorumAt
    last_audit_note: bytes | None = None

    @property
    def snapshot_id(self) -> SnapshotId:
        return SnapshotId(self.image.end_offset, self.image.provenance.last_contained_epoch)


def snapshot_batches(
    content: SnapshotContent, *, timestamp_ms: int, codec: CompressionCodec, rest: Callable[[], None]
) -> Iterator[bytes]:
    """The file batch by batch; `rest` is called after every few records. Raises UnsupportedVersion when the image's
    metadata.version has no room for something in it."""
    is_dynamic = content.quorum.kraft_version > 0
    writer = SnapshotWriter(
        content.snapshot_id,
        timestamp_ms=timestamp_ms,
        last_contained_log_timestamp_ms=content.image.provenance.timestamp_ms,
        voters=voters_record(content.quorum.voters) if is_dynamic else None,
        kraft_version=content.quorum.kraft_version,
        codec=codec,
        max_batch_bytes=BATCH_BYTES,
    )
    return writer.write(_resting(snapshot_values(content.image, content.last_audit_note), rest))


def snapshot_values(image: MetadataImage, last_audit_note: bytes | None) -> Iterator[bytes]:
    """The records of the image, and after them the note, which Kafka's readers skip. Raises UnsupportedVersion."""
    yield from image_values(image)
    if last_audit_note is not None and image.metadata_version >= NO_OP_RECORD:
        record = NoOpRecord(unknown_tagged_fields=((AUDIT_NOTE_TAG, last_audit_note),))
        yield encode_record(record, record_version(record, image.metadata_version))


def _resting(values: Iterable[bytes], rest: Callable[[], None]) -> Iterator[bytes]:
    for number, value in enumerate(values):
        if number % _VALUES_BETWEEN_RESTS == 0:
            rest()
        yield value
