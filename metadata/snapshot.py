"""Snapshots of the metadata (KIP-630): when one is due, its batches, and what a state machine starts over from.

No I/O here. `SnapshotPolicy` decides when a snapshot is due: so many bytes of committed records after the last one, or
so long after it (rule C16). `metadata/adapters/snapshot_manager.py` asks it and writes the snapshot.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.metadata_version import NO_OP_RECORD, record_version
from kquorum.metadata.image.records import delta_from_values, image_values
from kquorum.metadata.state_hash.image_hash import hash_of_image
from kquorum.raft.ports import QuorumAt
from kquorum.raft.voters import voters_record
from kquorum.snapshots.naming import SnapshotId
from kquorum.snapshots.reader import SnapshotReader
from kquorum.snapshots.writer import SnapshotWriter
from kquorum.wire.audit_note import AUDIT_NOTE_TAG
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.record_batch import CompressionCodec
from kquorum.wire.record_frame import encode_record


@dataclass(frozen=True, slots=True)
class LoadedSnapshot:
    """`last_audit_note` is the newest before the snapshot's end, so that the chain of their hashes goes on; None if the
    snapshot holds none (no change was ever noted, or Apache Kafka wrote it). `state_hash` is the image's; with None
    the receiver of the state computes it."""

    image: MetadataImage
    last_audit_note: bytes | None
    state_hash: int | None = None


def load_snapshot(data: bytes | memoryview, snapshot_id: OffsetAndEpoch) -> LoadedSnapshot:
    """The state at the end of the snapshot. Raises DecodeError or ReplayError when the bytes are no whole snapshot."""
    reader = SnapshotReader(data)
    provenance = Provenance(
        last_contained_offset=snapshot_id.offset - 1,
        last_contained_epoch=snapshot_id.epoch,
        timestamp_ms=reader.last_contained_log_timestamp_ms,
    )
    delta = delta_from_values(reader.values())
    image = delta.apply(provenance)
    last_audit_note = delta.audit_notes[-1] if delta.audit_notes else None
    return LoadedSnapshot(image, last_audit_note, hash_of_image(image))


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


MAX_BYTES_EXCEEDED = "max bytes were exceeded"
MAX_TIME_EXCEEDED = "max time was exceeded"
LAST_ONE_LOST = "the last one cannot be served any more"

FIRST_RETRY_MS = 10_000
LONGEST_RETRY_MS = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTriggers:
    """`metadata.log.max.record.bytes.between.snapshots` (at least 1) and `metadata.log.max.snapshot.interval.ms`, of
    which 0 means never."""

    max_bytes: int
    max_interval_ms: int


class SnapshotPolicy:
    """Decides when a snapshot is due; one attempt at a time.

    An attempt resets both counters, bytes and time, as with Kafka. A failed attempt restores them, and is repeated
    after a delay that doubles with each failure.
    """

    def __init__(self, triggers: SnapshotTriggers, now_ms: int) -> None:
        self._triggers = triggers
        # Of committed records since the last snapshot, control records included.
        self._bytes = 0
        self._since_ms = now_ms
        self._newest_end_offset = 0
        self._is_writing = False
        self._bytes_before_attempt = 0
        self._since_ms_before_attempt = now_ms
        self._failures = 0
        self._not_before_ms = now_ms
        self._is_last_lost = False
        self._was_last_lost = False

    def handle_commit(self, size_in_bytes: int) -> None:
        self._bytes += size_in_bytes

    def handle_loaded(self, now_ms: int, end_offset: int) -> None:
        """The state came from a snapshot that ends there: a newer one is due when as much has come since."""
        self._bytes = 0
        self._since_ms = now_ms
        self._newest_end_offset = max(self._newest_end_offset, end_offset)

    def handle_lost(self) -> None:
        """A snapshot that others may ask for turned out to be damaged: a newer one is due at once."""
        self._is_last_lost = True

    def reason_to_begin(self, now_ms: int, provenance: Provenance) -> str | None:
        """Why to begin a snapshot now, of the image at `provenance`; None if none is due.

        An image never holds part of a transaction, so it may end inside a batch, before a transaction that begins
        there. No snapshot is made of such an image: a snapshot must end where a log can begin.
        """
        if self._is_writing or now_ms < self._not_before_ms:
            return None
        if not provenance.is_batch_aligned or provenance.last_contained_offset < self._newest_end_offset:
            return None
        return self._reason(now_ms)

    def _reason(self, now_ms: int) -> str | None:
        if self._is_last_lost:
            return LAST_ONE_LOST
        if self._bytes >= self._triggers.max_bytes:
            return MAX_BYTES_EXCEEDED
        interval_ms = self._triggers.max_interval_ms
        if self._bytes and interval_ms and now_ms - self._since_ms >= interval_ms:
            return MAX_TIME_EXCEEDED
        return None

    def begun(self, now_ms: int) -> None:
        assert not self._is_writing, "one snapshot at a time"
        self._is_writing = True
        self._bytes_before_attempt, self._since_ms_before_attempt = self._bytes, self._since_ms
        self._bytes, self._since_ms = 0, now_ms
        self._was_last_lost, self._is_last_lost = self._is_last_lost, False

    def succeeded(self, end_offset: int) -> None:
        self._is_writing = False
        self._failures = 0
        self._newest_end_offset = max(self._newest_end_offset, end_offset)

    def failed(self, now_ms: int) -> int:
        """Returns after how many milliseconds the attempt may be repeated."""
        self._is_writing = False
        self._bytes += self._bytes_before_attempt
        self._since_ms = min(self._since_ms, self._since_ms_before_attempt)
        self._is_last_lost = self._is_last_lost or self._was_last_lost
        delay_ms = min(FIRST_RETRY_MS << min(self._failures, 16), LONGEST_RETRY_MS)
        self._failures += 1
        self._not_before_ms = now_ms + delay_ms
        return delay_ms
