"""Inspect.Image over real loopback gRPC."""

import pytest

from kquorum.metadata.grpc.inspect import messages
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.features import FeatureLevelRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.proto import inspect_pb2 as pb
from kquorum.wire.uuids import uuid_to_text
from tests.support.grpc_harness import run, serving, take_all
from tests.support.grpc_source import (
    EPOCH,
    TIMESTAMP_MS,
    FakeSource,
    partition,
    register_broker,
    topic,
    topic_id,
)


def filled_source() -> FakeSource:
    source = FakeSource()
    source.commit(FeatureLevelRecord(name="metadata.version", feature_level=25))
    source.commit(register_broker(2, fenced=True), register_broker(1))
    source.commit(topic("orders", 1), *(partition(1, number) for number in range(5)))
    source.commit(topic("audit", 2), partition(2, leader=-1, replicas=(2, 1)), topic("empty", 3))
    return source


def image(request: pb.ImageRequest, source: FakeSource | None = None) -> list[pb.ImageChunk]:
    async def main() -> list[pb.ImageChunk]:
        async with serving(source or filled_source()) as rig:
            return await take_all(rig.stub.Image(request))

    return run(main)


def partitions(chunks: list[pb.ImageChunk]) -> list[tuple[str, list[int]]]:
    return [
        (topic.name, [partition.partition_id for partition in topic.partitions])
        for chunk in chunks
        for topic in chunk.topics.topics
    ]


def test_the_header_says_where_the_image_stands_and_who_is_there() -> None:
    header = image(pb.ImageRequest())[0].header
    assert header.provenance == pb.Provenance(offset=11, epoch=EPOCH, timestamp_ms=TIMESTAMP_MS)
    assert (header.cluster_id, header.node_id) == ("kquorum-test-cluster-00", 7)
    assert list(header.features) == [pb.Feature(name="metadata.version", level=25)]
    assert [(broker.id, broker.fenced, broker.HasField("rack")) for broker in header.brokers] == [
        (1, False, False),
        (2, True, False),
    ]
    assert (header.topic_count, header.partition_count) == (3, 6)


def test_the_header_says_how_old_the_image_may_be() -> None:
    header = image(pb.ImageRequest())[0].header
    assert (header.ms_since_commit, header.is_cut_off) == (20, False)
    source = filled_source()
    source.silent_ms = 7_300
    old = image(pb.ImageRequest(), source)[0].header
    assert (old.ms_since_commit, old.is_cut_off) == (7_300, True)
    assert old.provenance == header.provenance, "it is served all the same"
    source.silent_ms = None
    assert not image(pb.ImageRequest(), source)[0].header.HasField("ms_since_commit")


def test_topics_come_by_name_with_their_partitions() -> None:
    chunks = image(pb.ImageRequest())
    assert partitions(chunks) == [("audit", [0]), ("empty", []), ("orders", [0, 1, 2, 3, 4])]
    assert chunks[1].topics.topics[0].partitions[0] == pb.Partition(
        topic="audit", topic_id=uuid_to_text(topic_id(2)), leader=-1, replicas=[2, 1], isr=[2, 1]
    )
    assert [chunk.is_last for chunk in chunks] == [False, True]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_many_partitions_come_in_chunks_and_none_is_lost(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "PARTITIONS_PER_CHUNK", size)
    chunks = image(pb.ImageRequest())
    gathered: dict[str, list[int]] = {}
    for name, ids in partitions(chunks):
        gathered.setdefault(name, []).extend(ids)
    assert gathered == {"audit": [0], "empty": [], "orders": [0, 1, 2, 3, 4]}
    assert all(sum(len(t.partitions) for t in chunk.topics.topics) <= size for chunk in chunks)
    assert [chunk.is_last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]


def test_only_the_topics_asked_for_come() -> None:
    assert partitions(image(pb.ImageRequest(topics=["empty", "nowhere"]))) == [("empty", [])]


def test_an_empty_image_is_a_header_alone() -> None:
    chunks = image(pb.ImageRequest(), FakeSource())
    assert len(chunks) == 1
    assert chunks[0].is_last
    assert chunks[0].header.provenance.offset == -1


def test_each_topic_has_its_effective_min_insync_replicas() -> None:
    """A topic's own config counts, else the greatest of the brokers', else the node's file (2 in these tests)."""
    source = filled_source()
    key = "min.insync.replicas"
    source.commit(ConfigRecord(resource_type=2, resource_name="orders", name=key, value="3"))

    def minima() -> dict[str, int]:
        chunks = image(pb.ImageRequest(), source)
        return {topic.name: topic.min_insync_replicas for chunk in chunks for topic in chunk.topics.topics}

    assert minima() == {"orders": 3, "audit": 2, "empty": 2}
    source.commit(ConfigRecord(resource_type=4, resource_name="", name=key, value="1"))
    assert minima() == {"orders": 3, "audit": 1, "empty": 1}
    source.commit(ConfigRecord(resource_type=4, resource_name="1", name=key, value="4"))
    assert minima() == {"orders": 3, "audit": 4, "empty": 4}


def test_partitions_come_with_the_lists_of_eligible_leaders() -> None:
    source = filled_source()
    change = PartitionChangeRecord(
        partition_id=0, topic_id=topic_id(1), eligible_leader_replicas=(2,), last_known_elr=(1,)
    )
    source.commit(change)
    chunks = image(pb.ImageRequest(topics=["orders"]), source)
    first = next(topic for chunk in chunks for topic in chunk.topics.topics).partitions[0]
    assert list(first.eligible_leader_replicas) == [2]
    assert list(first.last_known_leader_replicas) == [1]
