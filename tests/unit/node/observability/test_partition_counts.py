"""Partitions counted by columns, against the same counts made one by one."""

from uuid import UUID

from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.topics import TopicsImage
from kquorum.node.observability.partition_counts import PartitionCounter, count_partitions, count_replicas
from kquorum.wire.metadata_records.topics import PartitionRecord, TopicRecord

# Replicas, ISR and leader of each partition; two topics, whose lists differ in width. A reassignment adds 9 to all
# partitions 1.
PARTITIONS = (
    (((1, 2, 3), (1, 2, 3), 1), ((2, 3, 1), (2, 3), 2), ((3, 1, 2), (1,), 1), ((1, 2, 3), (1,), -1)),
    (((1, 2, 9), (1, 2), 1), ((1, 2, 9), (1, 2), 1)),
    (((1, 2, 9), (1,), 1), ((1, 2, 9), (1,), 1)),
    (((3, 9), (3,), 3), ((3, 9), (3, 9), 3)),
    (((1,), (1,), 1), ((2,), (2,), -1), ((2, 1), (2,), 2)),
)


def topics() -> TopicsImage:
    delta = MetadataDelta(MetadataImage.empty())
    offset = 0
    for number, partitions in enumerate(PARTITIONS):
        topic_id = UUID(int=(number + 1) << 70)
        delta.replay(TopicRecord(name=f"topic-{number}", topic_id=topic_id), offset)
        for partition_id, (replicas, isr, leader) in enumerate(partitions):
            offset += 1
            record = PartitionRecord(
                partition_id=partition_id,
                topic_id=topic_id,
                replicas=replicas,
                isr=isr,
                removing_replicas=(),
                adding_replicas=(9,) if partition_id == 1 else (),
                leader=leader,
                leader_epoch=0,
                partition_epoch=0,
            )
            delta.replay(record, offset)
    return delta.apply(Provenance(last_contained_offset=offset)).topics


def test_of_the_cluster() -> None:
    every = [each for partitions in PARTITIONS for each in partitions]
    counts = count_partitions(topics())
    assert counts.partitions == len(every)
    assert counts.without_leader == sum(leader == -1 for _, _, leader in every)
    assert counts.not_led_by_preferred == sum(leader != replicas[0] for replicas, _, leader in every)


def test_of_each_broker() -> None:
    every = [(number, *each) for partitions in PARTITIONS for number, each in enumerate(partitions)]
    for broker_id in (1, 2, 3, 4):
        counts = count_replicas(topics(), broker_id)
        led = [(number, replicas, isr) for number, replicas, isr, leader in every if leader == broker_id]
        assert counts.replicas == sum(broker_id in replicas for _, replicas, _, _ in every)
        assert counts.leads == len(led)
        wanted = [len(set(replicas) - ({9} if number == 1 else set())) for number, replicas, _ in led]
        short = [len(isr) < count for (_, _, isr), count in zip(led, wanted, strict=True)]
        assert counts.leads_under_replicated == sum(short)
        assert counts.reassigning == sum(number == 1 for number, _, _ in led)


def test_nothing_at_all_and_nothing_twice() -> None:
    assert count_partitions(TopicsImage()).partitions == 0
    counter, image = PartitionCounter(), topics()
    assert counter.known(image) is None
    counts = counter.count(image, is_controller=True, broker_id=1)
    assert counter.known(image) is counts
    assert (counts.of_cluster, counts.of_broker) == (count_partitions(image), count_replicas(image, 1))
    assert counter.known(TopicsImage()) is None, "other topics are counted again"
    alone = counter.count(image, is_controller=False, broker_id=None)
    assert (alone.of_cluster, alone.of_broker) == (None, None)
