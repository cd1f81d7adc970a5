"""Random images and Metadata requests for them."""

import random
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from kquorum.metadata.image.cluster import BrokerRegistration, ClusterImage, Endpoint
from kquorum.metadata.image.directories import LOST, MIGRATING, UNASSIGNED
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import NO_LEADER, PartitionState
from kquorum.metadata.image.partitions import table_of
from kquorum.metadata.image.topics import TopicImage, TopicsImage
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.api_calls import request_of
from tests.support.images import LISTENER, log_dir, topic_id

VERSIONS = range(supported_versions(ApiKey.METADATA)[0], supported_versions(ApiKey.METADATA)[1] + 1)


BROKERS = (0, 1, 2, 7, 300, 2**31 - 1)


UNREGISTERED = (5, 9000)


NAMES = ("orders", "__consumer_offsets", "ä.b", "empty", "long" * 60)


def broker(random_source: random.Random, broker_id: int) -> BrokerRegistration:
    names = random_source.choice([(LISTENER,), (LISTENER, "OTHER"), ("OTHER",), ()])
    return BrokerRegistration(
        id=broker_id,
        epoch=random_source.randrange(100),
        incarnation_id=UUID(int=broker_id),
        end_points=tuple(
            Endpoint(name, f"b{broker_id}", 9000 + random_source.randrange(9), 0) for name in names
        ),
        rack=random_source.choice([None, "", "rack"]),
        fenced=random_source.randrange(3) == 0,
        log_dirs=random_source.choice([(), (log_dir(broker_id),), (log_dir(broker_id), log_dir(99))]),
    )


def partition(random_source: random.Random) -> PartitionState:
    known = [*BROKERS, *UNREGISTERED]
    replicas = tuple(random_source.sample(known, random_source.choice([0, 1, 2, 3, 3, 5])))
    isr = tuple(random_source.sample(replicas, random_source.randint(0, len(replicas))))
    return PartitionState(
        replicas=replicas,
        directories=tuple(
            random_source.choice([log_dir(each), log_dir(99), MIGRATING, UNASSIGNED, LOST])
            for each in replicas
        ),
        isr=isr,
        leader=random_source.choice([*isr, NO_LEADER, 0, 9000]),
        leader_epoch=random_source.choice([0, 3, 2**31 - 1]),
        partition_epoch=random_source.randrange(9),
        elr=tuple(random_source.sample(replicas, random_source.randint(0, len(replicas)))),
        adding_replicas=replicas[:1] if random_source.randrange(4) == 0 else (),
    )


def topic(random_source: random.Random, number: int) -> TopicImage:
    ids = random_source.sample(range(12), 0 if NAMES[number] == "empty" else random_source.randrange(9))
    states = {each: partition(random_source) for each in ids}
    return TopicImage(name=NAMES[number], id=topic_id(number), partitions=table_of(states))


def image(random_source: random.Random) -> MetadataImage:
    cluster, topics = ClusterImage(), TopicsImage()
    for broker_id in BROKERS:
        if random_source.randrange(6):
            cluster = cluster.with_broker(broker(random_source, broker_id))
    for number in range(len(NAMES)):
        if random_source.randrange(5):
            topics = topics.with_topic(topic(random_source, number))
    return MetadataImage(cluster=cluster, topics=topics)


def next_image(random_source: random.Random, before: MetadataImage) -> MetadataImage:
    """Some brokers or topics are others, as after a few records."""
    topics, cluster = before.topics, before.cluster
    for each in list(topics.by_id.values()):
        match random_source.randrange(4):
            case 0:
                changed = {
                    **dict(each.partitions.items()),
                    random_source.randrange(12): partition(random_source),
                }
                topics = topics.with_partitions(
                    [TopicImage(name=each.name, id=each.id, partitions=table_of(changed))]
                )
            case 1:
                topics = topics.without_topic(each)
    if random_source.randrange(2):
        cluster = cluster.with_broker(broker(random_source, random_source.choice(BROKERS)))
    return MetadataImage(cluster=cluster, topics=topics)


def asked_topics(random_source: random.Random, version: int) -> Sequence[dict[str, object]] | None:
    if random_source.randrange(2):
        return None if version > 0 else []
    names = random_source.choices(
        [*NAMES, "unknown", "not lawful!", "unknown-2"], k=random_source.randrange(5)
    )
    asked: list[dict[str, object]] = [{"name": name, "topic_id": None} for name in names]
    # In versions 10 and 11 an id fails them all.
    if version >= 12 or (version >= 10 and random_source.randrange(4) == 0):
        asked += [
            {"name": None, "topic_id": topic_id(random_source.randrange(7))}
            for _ in range(random_source.randrange(3))
        ]
    return asked


def request(random_source: random.Random, version: int) -> Any:
    values: dict[str, object] = {
        "topics": asked_topics(random_source, version),
        "allow_auto_topic_creation": bool(random_source.randrange(2)),
        "include_topic_authorized_operations": bool(random_source.randrange(2)),
        "include_cluster_authorized_operations": bool(random_source.randrange(2)),
    }
    return request_of(ApiKey.METADATA, version, values)
