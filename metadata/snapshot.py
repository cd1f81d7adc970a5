"""A snapshot's bytes to what a state machine starts over from."""

from dataclasses import dataclass

from metadata.image.image import MetadataImage, Provenance
from metadata.image.records import delta_from_values
from metadata.state_hash.image_hash import hash_of_image
from snapshots.reader import SnapshotReader
from wire.log_batch import OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class LoadedSnapshot:
    """`last_audit_note` is the newest before the snapshot's end, so that the chain of their hashes goes on; None if the
    snapshot holds none (no change was ever noted, or Apache Kafka wrote it). `state_hash` is the image's; None leaves
    it to be made by whoever takes the state over."""

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
