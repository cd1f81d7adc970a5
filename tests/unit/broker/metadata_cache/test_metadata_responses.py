"""What is kept of Metadata responses: used again while it holds, bounded, and no caller waits for a long one."""

from typing import Any

import pytest

from kquorum.broker.metadata_cache import responses as responses_module
from kquorum.broker.metadata_cache.responses import MOST_CACHES, MetadataResponses
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.metadata_records.topics import RemoveTopicRecord
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import request_of
from tests.support.broker_services import LowestRandomSource
from tests.support.images import (
    LISTENER,
    after,
    broker_record,
    fencing,
    image_of,
    isr_change,
    partition_record,
    topic_id,
    topic_records,
)

IMAGE = image_of(
    broker_record(1),
    broker_record(2),
    *(
        record
        for number in range(1, 6)
        for record in topic_records(
            number, f"t{number}", *(partition_record(number, index, (1, 2)) for index in range(4))
        )
    ),
)


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the topics that were encoded, in their order."""
    names: list[str] = []
    encode = responses_module.encode_topics

    def noting(view: Any, layout: Any, operations: int, topics: Any) -> list[bytes]:
        names.extend(topic.name for topic in topics)
        return encode(view, layout, operations, topics)

    monkeypatch.setattr(responses_module, "encode_topics", noting)
    return names


@pytest.fixture
def responses() -> MetadataResponses:
    return MetadataResponses("cluster", LowestRandomSource())


def request(version: int = 12, names: list[str] | None = None, *, operations: bool = False) -> Any:
    topics = None if names is None else [{"name": name, "topic_id": None} for name in names]
    values = {"topics": topics, "include_topic_authorized_operations": operations}
    if 8 <= version <= 10:
        values["include_cluster_authorized_operations"] = False
    return request_of(ApiKey.METADATA, version, values)


def ask(responses: MetadataResponses, image: MetadataImage = IMAGE, **how: Any) -> bytes:
    work = responses.begin(request(**how), how.get("version", 12), image, LISTENER)
    while (answer := work.advance()) is None:
        pass
    return answer.data


def test_a_topic_is_encoded_once_while_it_stays_as_it_is(
    responses: MetadataResponses, encoded: list[str]
) -> None:
    assert ask(responses) == ask(responses)
    ask(responses, names=["t3", "t1"])
    assert encoded == ["t1", "t2", "t3", "t4", "t5"]
    encoded.clear()
    _, changed = after(IMAGE, isr_change(2, 1, (1,)))
    assert ask(responses, changed) != ask(responses, IMAGE)
    assert encoded == ["t2", "t2"]


def test_everything_is_encoded_again_when_a_broker_is_fenced(
    responses: MetadataResponses, encoded: list[str]
) -> None:
    before = ask(responses)
    encoded.clear()
    _, fenced = after(IMAGE, fencing(2, fenced=True))
    assert ask(responses, fenced) != before
    assert len(encoded) == 5


def test_a_long_answer_comes_in_slices_which_works_at_the_same_time_share(
    responses: MetadataResponses, encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses_module, "SLICE_PARTITIONS", 20)
    one, two = (responses.begin(request(), 12, IMAGE, LISTENER) for _ in range(2))
    answers = []
    turns = 0
    while len(answers) < 2:
        turns += 1
        answers += [answer for work in (one, two) if (answer := work.advance()) is not None]
    assert turns > 2
    assert answers[0] == answers[1]
    assert sorted(encoded) == ["t1", "t2", "t3", "t4", "t5"]


def test_an_answer_is_of_one_image_though_the_next_is_asked_for_meanwhile(
    responses: MetadataResponses, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ask(MetadataResponses("cluster", LowestRandomSource()))
    monkeypatch.setattr(responses_module, "SLICE_PARTITIONS", 20)
    work = responses.begin(request(), 12, IMAGE, LISTENER)
    assert work.advance() is None
    _, changed = after(IMAGE, *(isr_change(number, 0, (1,)) for number in range(1, 6)))
    assert ask(responses, changed) != expected
    while (answer := work.advance()) is None:
        pass
    assert answer.data == expected


def test_what_is_kept_is_bounded(responses: MetadataResponses) -> None:
    for version in (1, 5, 6, 7, 8, 9, 10, 12):
        for operations in (False, True):
            ask(responses, version=version, operations=operations and version >= 8)
    assert len(responses._caches) == MOST_CACHES
    _, fewer = after(IMAGE, *(RemoveTopicRecord(topic_id=topic_id(number)) for number in range(1, 5)))
    ask(responses, fewer)
    newest = list(responses._caches.values())[-1]
    assert [topic.name for topic, _ in newest.topics.values()] == ["t5"]
