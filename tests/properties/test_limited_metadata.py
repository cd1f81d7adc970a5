"""Metadata for clients that may not see everything: bytes and plain statement agree, and nothing hidden is in them.

Clients of different rights ask the same broker one after the other, so what was encoded for one is there for the other.
"""

import random
from collections.abc import Iterator
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquorum.broker.client_access import UNLIMITED, ClientAccess, TopicLists, client_access
from kquorum.broker.metadata_cache.responses import MetadataResponses
from kquorum.metadata.authorizer.access import Access
from kquorum.metadata.authorizer.authorizer import Acls
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire import message_codec
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.acl_worlds import (
    ALICE,
    ALLOW,
    BOB,
    DENY,
    HERE,
    LITERAL,
    PREFIXED,
    acl,
    acls_of,
    authorizer,
)
from tests.support.api_calls import request_of
from tests.support.broker_services import LowestRandomSource
from tests.support.images import LISTENER
from tests.support.kio.classes import response_class
from tests.support.kio.codec import encode
from tests.support.kio.entities import build
from tests.support.metadata.metadata_requests import NAMES, VERSIONS, image, next_image, request
from tests.support.plain_metadata import handle_metadata

SEEDS = st.integers(0, 2**32)
ASKED = [*NAMES, "unknown", "not lawful!", "unknown-2"]


def acls(random_source: random.Random) -> Acls:
    on_topics = (
        acl(
            random_source.choice([2, 3, 5, 7, 8]),
            random_source.choice([*ASKED, "*", "o", "unk"]),
            principal=random_source.choice([ALICE, BOB, "User:*"]),
            pattern_type=random_source.choice([LITERAL, PREFIXED]),
            permission_type=random_source.choice([ALLOW, ALLOW, ALLOW, DENY]),
        )
        for _ in range(random_source.randrange(6))
    )
    on_cluster = (
        acl(random_source.choice([2, 5, 8]), principal=BOB) for _ in range(random_source.randrange(3))
    )
    return acls_of([*on_topics, *on_cluster])


def worlds(seed: int) -> Iterator[tuple[random.Random, MetadataImage, dict[str, Access]]]:
    random_source = random.Random(seed)
    current, entries, judge = image(random_source), acls(random_source), authorizer()
    for _ in range(6):
        yield (
            random_source,
            current,
            {
                principal: Access(
                    authorizer=judge,
                    acls=entries,
                    topics=current.topics,
                    principal=principal,
                    host=HERE,
                    note_denial=lambda _: None,
                )
                for principal in (ALICE, BOB)
            },
        )
        if random_source.randrange(2):
            current = next_image(random_source, current)
        if random_source.randrange(3) == 0:
            entries = acls(random_source)


@settings(deadline=None, max_examples=15)
@given(SEEDS)
def test_the_bytes_are_those_of_the_plain_statement(seed: int) -> None:
    answers, lists = MetadataResponses("cluster", LowestRandomSource()), TopicLists()
    for random_source, of, accesses in worlds(seed):
        version, creates = random_source.choice(VERSIONS), bool(random_source.randrange(2))
        ask = request(random_source, version)
        eyes: list[ClientAccess] = [UNLIMITED, *(client_access(each, lists) for each in accesses.values())]
        random_source.shuffle(eyes)
        for each in eyes:
            wanted = handle_metadata(
                ask, version, of, "cluster", LISTENER, LowestRandomSource(), each, creates_topics=creates
            )
            work = answers.begin(ask, version, of, LISTENER, each, creates_topics=creates)
            while (given := work.advance()) is None:
                pass
            assert given.data == message_codec.encode(wanted.response, version)
            assert given.data == encode(
                build(response_class(ApiKey.METADATA, version), asdict(wanted.response))
            )
            assert work.topics_to_create == wanted.topics_to_create


@settings(deadline=None, max_examples=15)
@given(SEEDS)
def test_topics_without_describe_are_not_shown(seed: int) -> None:
    lists = TopicLists()
    for random_source, of, accesses in worlds(seed):
        version = random_source.choice(VERSIONS)
        ask = request(random_source, version)
        for access in accesses.values():
            eyes = client_access(access, lists)
            answer = handle_metadata(ask, version, of, "cluster", LISTENER, LowestRandomSource(), eyes)
            check_topics(list(answer.response.topics), access)
            for name in answer.topics_to_create:
                assert access.allows_on_cluster(Operation.CREATE) or access.allows_on_topic(
                    Operation.CREATE, name
                )


def check_topics(topics: object, access: Access) -> None:
    assert isinstance(topics, list)
    if any(topic.error_code is ErrorCode.invalid_request and topic.name for topic in topics):
        # A request that is refused as a whole: each entry comes back as it was sent, whichever client asks.
        assert {topic.error_code for topic in topics} == {ErrorCode.invalid_request}
        assert not any(topic.partitions or topic.is_internal for topic in topics)
        return
    for topic in topics:
        name = topic.name
        if name and not access.allows_on_topic(Operation.DESCRIBE, name):
            assert topic.error_code is ErrorCode.topic_authorization_failed
            assert (topic.topic_id.int, topic.partitions, topic.is_internal) == (0, (), False)
        operations = topic.topic_authorized_operations
        if topic.error_code is ErrorCode.none and operations > 0:
            for operation in Operation:
                may = operations >> operation & 1
                assert not may or access.allows(operation, ResourceType.TOPIC, name)


@pytest.mark.parametrize("version", VERSIONS)
def test_without_describe_a_client_gets_no_topic(version: int) -> None:
    of = image(random.Random(1))
    access = Access(
        authorizer=authorizer(),
        acls=acls_of(()),
        topics=of.topics,
        principal=ALICE,
        host=HERE,
        note_denial=lambda denial: pytest.fail(f"unexpected denial {denial}"),
    )
    flags = dict.fromkeys(
        ("include_topic_authorized_operations", "include_cluster_authorized_operations"), False
    )
    ask = request_of(ApiKey.METADATA, version, {"topics": None if version else (), **flags})
    answer = handle_metadata(
        ask, version, of, "cluster", LISTENER, LowestRandomSource(), client_access(access, TopicLists())
    )
    assert answer.response.topics == ()
    assert answer.response.brokers
