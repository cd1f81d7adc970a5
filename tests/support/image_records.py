"""An image as records, made one after the other, and an image from a snapshot's values: what the product's columns are
compared with."""

from collections.abc import Iterator

from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.loading import delta_from_values
from kquorum.metadata.image.records import partition_record, records_after_topics, records_before_topics
from kquorum.metadata.image.topics import TopicImage, TopicsImage
from kquorum.wire.metadata_records.topics import PartitionRecord, TopicRecord
from kquorum.wire.schema import MetadataRecord


def image_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Replayed into an empty image, these make an equal one (but for the provenance)."""
    yield from records_before_topics(image)
    yield from _topic_records(image.topics, image.metadata_version)
    yield from records_after_topics(image)


def image_from_values(values: Iterator[bytes], provenance: Provenance) -> MetadataImage:
    """Load a snapshot's record values; raises DecodeError and ReplayError (its offset is the record's ordinal)."""
    return delta_from_values(values).apply(provenance)


def _topic_records(image: TopicsImage, metadata_version: int) -> Iterator[MetadataRecord]:
    for _, topic in sorted(image.by_name.items()):
        yield TopicRecord(name=topic.name, topic_id=topic.id)
        yield from _partitions(topic, metadata_version)


def _partitions(topic: TopicImage, metadata_version: int) -> Iterator[PartitionRecord]:
    for partition_id, state in topic.partitions.items():
        yield partition_record(topic, partition_id, state, metadata_version)
