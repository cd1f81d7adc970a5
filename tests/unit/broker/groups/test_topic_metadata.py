"""The hash of a group's topics is the one that Kafka computes (KIP-1101)."""

from typing import Any

import pytest

from kquorum.broker.groups.topic_metadata import TopicMetadata, topic_hash
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.topics import TopicImage
from kquorum.wire.metadata_records.topics import PartitionRecord, RemoveTopicRecord, TopicRecord
from kquorum.wire.uuids import uuid_from_text
from tests.support.images import after, image_of, partition_record, topic_id, topic_records

CODECS, TX = uuid_from_text("c_O-8nwPRCKaVS2pqATzOA"), uuid_from_text("v32gCULvR3quNNO_ormlYg")


def topic(name: str, id_: Any, partitions: int) -> list[Any]:
    made = [
        PartitionRecord(partition_id=index, topic_id=id_, replicas=(1,), isr=(1,), leader=1)
        for index in range(partitions)
    ]
    return [TopicRecord(name=name, topic_id=id_), *made]


def metadata_of(image: MetadataImage) -> TopicMetadata:
    made = TopicMetadata()
    made.begin(image)
    return made


def image_topic(image: MetadataImage, name: str) -> TopicImage:
    return image.topics.by_name[name]


def test_two_topics_have_the_hash_that_a_broker_of_kafka_wrote() -> None:
    """Kafka 4.3.1, a group that reads the topics codecs and tx."""
    image = image_of(*topic("codecs", CODECS, 2), *topic("tx", TX, 3))
    assert metadata_of(image).hash_of({"tx", "codecs"}) == 7959642384569661555


def test_no_topic_is_zero_and_absent_topics_do_not_count() -> None:
    image = image_of(*topic("codecs", CODECS, 2))
    metadata = metadata_of(image)
    assert metadata.hash_of(()) == 0
    assert metadata.hash_of({"absent"}) == 0
    assert metadata.hash_of({"absent", "codecs"}) == metadata.hash_of({"codecs"}) != 0


ONE = image_of(*topic("codecs", CODECS, 2))
RACKS = {1: "b", 2: "a"}


@pytest.mark.parametrize(
    "other",
    [
        image_of(*topic("other", CODECS, 2)),
        image_of(*topic("codecs", TX, 2)),
        image_of(*topic("codecs", CODECS, 3)),
    ],
    ids=["name", "id", "partitions"],
)
def test_each_part_of_a_topic_counts(other: MetadataImage) -> None:
    [changed] = other.topics.by_name.values()
    assert topic_hash(changed, {}) != topic_hash(image_topic(ONE, "codecs"), {})


def test_racks_count_and_their_order_does_not() -> None:
    image = image_of(*topic_records(1, "t", partition_record(1, 0, (1, 2))))
    turned = image_of(*topic_records(1, "t", partition_record(1, 0, (2, 1))))
    assert topic_hash(image_topic(image, "t"), RACKS) == topic_hash(image_topic(turned, "t"), RACKS)
    assert topic_hash(image_topic(image, "t"), RACKS) != topic_hash(image_topic(image, "t"), {})
    # "ab" is not "a" and "b".
    assert topic_hash(image_topic(image, "t"), {1: "ab"}) != topic_hash(image_topic(image, "t"), RACKS)


def test_a_changed_topic_is_named_and_hashed_again() -> None:
    image = image_of(*topic_records(1, "t", partition_record(1, 0, (1,))))
    metadata = metadata_of(image)
    before = metadata.hash_of({"t"})
    delta, image = after(image, partition_record(1, 1, (1,)))
    assert metadata.change(delta, image) == {"t"}
    assert metadata.hash_of({"t"}) != before
    delta, image = after(image, RemoveTopicRecord(topic_id=topic_id(1)))
    assert metadata.change(delta, image) == {"t"}
    assert metadata.hash_of({"t"}) == 0


def test_new_topics_are_told_from_changed_ones() -> None:
    image = image_of(*topic_records(1, "t", partition_record(1, 0, (1,))))
    metadata = metadata_of(image)
    first = metadata.newest_topics_version
    delta, image = after(image, partition_record(1, 1, (1,)))
    metadata.change(delta, image)
    assert metadata.newest_topics_version == first
    delta, image = after(image, *topic_records(2, "u", partition_record(2, 0, (1,))))
    metadata.change(delta, image)
    assert metadata.newest_topics_version == metadata.version > first
