"""Metadata responses made of columns are, byte for byte, those that kio's codec makes of the rules' plain statement."""

import random
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kquorum.broker.metadata_cache.responses as responses
from kquorum.broker.metadata_cache.responses import MetadataResponses
from kquorum.metadata.image.directories import MIGRATING
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.metadata.image.partitions import table_of
from kquorum.metadata.image.topics import TopicImage, TopicsImage
from kquorum.wire import message_codec
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import request_of
from tests.support.broker_services import LowestRandomSource
from tests.support.images import LISTENER, topic_id
from tests.support.kio.classes import response_class
from tests.support.kio.codec import encode
from tests.support.kio.entities import build
from tests.support.metadata.metadata_requests import NAMES, VERSIONS, image, next_image, partition, request
from tests.support.plain_metadata import handle_metadata

SEEDS = st.integers(0, 2**32)


def check_equal(ask: Any, version: int, of: MetadataImage, answers: MetadataResponses) -> None:
    wanted = handle_metadata(ask, version, of, "cluster", LISTENER, LowestRandomSource())
    work = answers.begin(ask, version, of, LISTENER)
    while (given := work.advance()) is None:
        pass
    assert given.data == message_codec.encode(wanted.response, version)
    assert given.data == encode(build(response_class(ApiKey.METADATA, version), asdict(wanted.response)))
    assert work.topics_to_create == wanted.topics_to_create


def sequences(seed: int) -> Iterator[tuple[Any, int, MetadataImage]]:
    """Requests of changing kinds, over an image that changes now and then."""
    random_source = random.Random(seed)
    current = image(random_source)
    for _ in range(8):
        version = random_source.choice(VERSIONS)
        yield request(random_source, version), version, current
        if random_source.randrange(2):
            current = next_image(random_source, current)


@settings(deadline=None, max_examples=25)
@given(SEEDS, st.sampled_from([1, 5, 6_000]))
def test_the_bytes_are_kios(seed: int, slice_partitions: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(responses, "SLICE_PARTITIONS", slice_partitions)
        answers = MetadataResponses("cluster", LowestRandomSource())
        for ask, version, of in sequences(seed):
            check_equal(ask, version, of, answers)


@pytest.mark.slow
@settings(deadline=None, max_examples=1_500)
@given(SEEDS, st.sampled_from([1, 5, 6_000]))
def test_the_bytes_are_kios_in_many_worlds(seed: int, slice_partitions: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(responses, "SLICE_PARTITIONS", slice_partitions)
        answers = MetadataResponses("cluster", LowestRandomSource())
        for ask, version, of in sequences(seed):
            check_equal(ask, version, of, answers)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_of_everything(version: int) -> None:
    random_source = random.Random(version)
    answers = MetadataResponses("cluster", LowestRandomSource())
    whole = request_of(
        ApiKey.METADATA,
        version,
        {
            "topics": None if version else [],
            "include_topic_authorized_operations": True,
            "include_cluster_authorized_operations": True,
        },
    )
    for _ in range(3):
        of = image(random_source)
        check_equal(whole, version, of, answers)
        check_equal(whole, version, of, answers)


@pytest.mark.parametrize("version", [0, 8, VERSIONS[-1]])
@pytest.mark.parametrize("replicas", [125, 126, 127, 200])
def test_lists_of_excessive_length(version: int, replicas: int) -> None:
    many = tuple(range(replicas))
    state = PartitionState(replicas=many, directories=(MIGRATING,) * replicas, isr=many, leader=2)
    topics = TopicsImage()
    for number, states in enumerate(
        [{0: state, 1: partition(random.Random(1))}, {0: partition(random.Random(2))}]
    ):
        made = TopicImage(name=NAMES[number], id=topic_id(number), partitions=table_of(states))
        topics = topics.with_topic(made)
    of = MetadataImage(cluster=image(random.Random(3)).cluster, topics=topics)
    ask = request_of(
        ApiKey.METADATA,
        version,
        {"topics": None if version else [], "include_cluster_authorized_operations": False}
        | {"include_topic_authorized_operations": False},
    )
    check_equal(ask, version, of, MetadataResponses("cluster", LowestRandomSource()))
