"""`bootstrap.checkpoint`: the records that the first active controller of a new cluster writes into the empty log.

The format tool puts the file into every data folder; it has a snapshot's shape, epoch 0 and no log behind it.
"""

from collections.abc import Iterable, Mapping, Sequence

from kquorum.snapshots.naming import BOOTSTRAP_SNAPSHOT_ID
from kquorum.snapshots.reader import SnapshotReader
from kquorum.snapshots.writer import SnapshotWriter
from kquorum.wire.errors import DecodeError
from kquorum.wire.metadata_records.features import FeatureLevelRecord
from kquorum.wire.record_frame import decode_record, encode_record
from kquorum.wire.schema import MetadataRecord

METADATA_VERSION = "metadata.version"
MINIMUM_METADATA_VERSION = 4  # 3.3-IV0, the first with a record for itself

# What Kafka 4.0 formats a cluster with.
DEFAULT_METADATA_VERSION = 25  # 4.0-IV3
DEFAULT_FEATURES: Mapping[str, int] = {"group.version": 1, "transaction.version": 2}


def bootstrap_records(
    metadata_version: int = DEFAULT_METADATA_VERSION, features: Mapping[str, int] = DEFAULT_FEATURES
) -> tuple[MetadataRecord, ...]:
    """metadata.version first, then the other features that are on, by name."""
    others = sorted((name, level) for name, level in features.items() if level > 0)
    return tuple(
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in [(METADATA_VERSION, metadata_version), *others]
    )


def write_bootstrap_checkpoint(records: Iterable[MetadataRecord], timestamp_ms: int) -> bytes:
    """The file's content; all records in their version 0, as they come from below any metadata.version."""
    writer = SnapshotWriter(
        BOOTSTRAP_SNAPSHOT_ID, timestamp_ms=timestamp_ms, last_contained_log_timestamp_ms=0
    )
    return b"".join(writer.write(encode_record(record, 0) for record in records))


def read_bootstrap_checkpoint(data: bytes) -> tuple[MetadataRecord, ...]:
    """Raises DecodeError when the bytes are no such file, or name no usable metadata.version."""
    records = tuple(decode_record(value) for value in SnapshotReader(data).values())
    level = metadata_version_of(records)
    if level is None:
        raise DecodeError(f"the checkpoint has no record for {METADATA_VERSION}; format the folder again")
    if level < MINIMUM_METADATA_VERSION:
        raise DecodeError(f"{METADATA_VERSION} {level} is too old; the lowest is {MINIMUM_METADATA_VERSION}")
    return records


def metadata_version_of(records: Sequence[MetadataRecord]) -> int | None:
    """The level that the records finalise; None when they do not."""
    levels = [
        record.feature_level
        for record in records
        if isinstance(record, FeatureLevelRecord) and record.name == METADATA_VERSION
    ]
    return levels[-1] if levels else None
