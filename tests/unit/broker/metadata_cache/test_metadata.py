"""Metadata answers: Kafka's rules for leaders, listeners, fenced brokers and unknown topics, in every version."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from kquorum.broker.metadata_cache.answers import ALL_TOPIC_OPERATIONS, OPERATIONS_NOT_ASKED
from kquorum.broker.metadata_cache.cache import controller_id_for_clients
from kquorum.broker.metadata_cache.responses import SLICE_ASKED, MetadataResponses
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.metadata import MetadataResponseBroker, MetadataResponsePartition
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.api_calls import read_answer, request_of
from tests.support.broker_services import LowestRandomSource
from tests.support.images import LISTENER, broker_record, image_of, partition_record, topic_id, topic_records
from tests.support.kio.classes import response_class
from tests.support.kio.codec import decode
from tests.support.plain_metadata import MetadataAnswer, handle_metadata

VERSIONS = range(supported_versions(ApiKey.METADATA)[0], supported_versions(ApiKey.METADATA)[1] + 1)

NOTHING_ELSE = {
    "allow_auto_topic_creation": True,
    "include_topic_authorized_operations": False,
    "include_cluster_authorized_operations": False,
}


IMAGE = image_of(
    broker_record(1),
    broker_record(2, fenced=True),
    broker_record(3, listener="OTHER"),
    *topic_records(
        1,
        "orders",
        partition_record(1, 0, (1, 2)),
        partition_record(1, 1, (2, 1), leader=-1, isr=()),
        partition_record(1, 2, (3, 1)),
        partition_record(1, 3, (9, 1)),
    ),
    *topic_records(2, "__consumer_offsets", partition_record(2, 0, (1,))),
)


def ask(
    names: Sequence[str] | None = None,
    *,
    version: int = VERSIONS[-1],
    image: MetadataImage = IMAGE,
    ids: Sequence[UUID] = (),
    **fields: object,
) -> MetadataAnswer:
    topics: Any = (
        None
        if names is None and not ids and version > 0
        else [{"name": name, "topic_id": None} for name in names or ()]
    )
    if ids:
        topics = [{"name": None, "topic_id": each} for each in ids]
    values = {"topics": topics, "include_topic_authorized_operations": False} | fields
    if version in range(8, 11):
        values |= {"include_cluster_authorized_operations": False}
    request = request_of(ApiKey.METADATA, version, values)
    answer = handle_metadata(request, version, image, "cluster", LISTENER, LowestRandomSource())
    assert read_answer(ApiKey.METADATA, version, answer.response), "what is answered can be sent"
    return answer


def topics_of(answer: MetadataAnswer) -> dict[Any, Any]:
    topics: Any = answer.response.topics
    return {topic.name: topic for topic in topics}


def partition(answer: MetadataAnswer, index: int) -> Any:
    return topics_of(answer)["orders"].partitions[index]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_lists_all_topics_and_one_by_name(version: int) -> None:
    assert set(topics_of(ask(version=version))) == {"orders", "__consumer_offsets"}
    answer = ask(["orders", "missing"], version=version)
    assert [topic.error_code for topic in topics_of(answer).values()] == [
        ErrorCode.none,
        ErrorCode.unknown_topic_or_partition,
    ]


def test_an_empty_list_means_none_from_version_1_on() -> None:
    assert topics_of(ask([], version=1)) == {}


def test_brokers_are_the_unfenced_ones_with_the_listener() -> None:
    assert ask().response.brokers == (MetadataResponseBroker(node_id=1, host="b1", port=9001, rack="rack-1"),)


def test_the_controller_told_to_clients_is_an_alive_broker_and_never_a_fenced_one() -> None:
    assert ask().response.controller_id == 1
    assert controller_id_for_clients(image_of(broker_record(2, fenced=True)), LowestRandomSource()) == -1


def test_a_healthy_partition_has_its_leader_and_names_the_replica_that_is_offline() -> None:
    assert partition(ask(), 0) == MetadataResponsePartition(
        error_code=ErrorCode.none,
        partition_index=0,
        leader_id=1,
        leader_epoch=3,
        replica_nodes=(1, 2),
        isr_nodes=(1, 2),
        offline_replicas=(2,),
    )


def test_a_fenced_leader_is_listed_all_the_same() -> None:
    image = image_of(broker_record(2, fenced=True), *topic_records(1, "orders", partition_record(1, 0, (2,))))
    assert partition(ask(image=image), 0).leader_id == 2


def test_a_partition_without_a_registered_leader_is_leader_not_available_with_its_true_epoch() -> None:
    for index in (1, 3):
        found = partition(ask(), index)
        assert (found.error_code, found.leader_id) == (ErrorCode.leader_not_available, -1)
        assert found.leader_epoch == 3
        assert found.replica_nodes


@pytest.mark.parametrize(
    ("version", "error"), [(5, ErrorCode.leader_not_available), (6, ErrorCode.listener_not_found)]
)
def test_a_leader_without_the_listener(version: int, error: ErrorCode) -> None:
    assert partition(ask(version=version), 2).error_code is error


def test_version_0_hides_replicas_that_cannot_be_reached_and_says_so() -> None:
    found = partition(ask(version=0), 0)
    assert found.error_code is ErrorCode.replica_not_available
    assert found.replica_nodes == found.isr_nodes == (1,)


def test_topics_by_id() -> None:
    answer = ask(ids=[topic_id(1), topic_id(99)])
    topics: Any = answer.response.topics
    assert [(topic.name, topic.error_code) for topic in topics] == [
        ("orders", ErrorCode.none),
        (None, ErrorCode.unknown_topic_id),
    ]
    assert answer.topics_to_create == ()


def asked(*entries: tuple[str | None, UUID | None], version: int = VERSIONS[-1]) -> list[tuple[Any, ...]]:
    """Name, id and error of what is answered to entries with names and ids."""
    answer = ask(version=version, topics=[{"name": name, "topic_id": each} for name, each in entries])
    topics: Any = answer.response.topics
    return [(topic.name, topic.topic_id, topic.error_code) for topic in topics]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_that_is_named_twice_is_answered_and_created_once(version: int) -> None:
    answer = ask(["new", "orders", "new", "orders", "new"], version=version, allow_auto_topic_creation=True)
    topics: Any = answer.response.topics
    assert [topic.name for topic in topics] == ["new", "orders"]
    assert answer.topics_to_create == ("new",)


def test_an_id_that_is_asked_for_twice_is_answered_once_whatever_name_is_beside_it() -> None:
    orders, missing = topic_id(1), topic_id(99)
    entries = [(None, orders), (None, missing), ("orders", orders), (None, missing), ("x", missing)]
    assert asked(*entries) == [
        ("orders", orders, ErrorCode.none),
        (None, missing, ErrorCode.unknown_topic_id),
    ]


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("bad", [(None, topic_id(1)), (None, None), ("orders", topic_id(1))])
def test_before_version_12_an_id_or_a_null_name_fails_the_whole_request(
    version: int, bad: tuple[str | None, UUID | None]
) -> None:
    name, bad_id = bad
    assert asked(("orders", None), bad, ("new", None), version=version) == [
        ("orders", UUID(int=0), ErrorCode.invalid_request),
        (name or "", bad_id or UUID(int=0), ErrorCode.invalid_request),
        ("new", UUID(int=0), ErrorCode.invalid_request),
    ]


@pytest.mark.parametrize("version", [12, 13])
def test_beside_ids_what_has_only_a_name_is_passed_over(version: int) -> None:
    found = asked(
        ("__consumer_offsets", None), (None, topic_id(1)), (None, None), ("new", None), version=version
    )
    assert found == [("orders", topic_id(1), ErrorCode.none)]


def test_very_many_names_are_looked_up_and_answered_in_slices() -> None:
    names = [f"missing-{number}" for number in range(15 * SLICE_ASKED)]
    request = request_of(ApiKey.METADATA, 9, {"topics": [{"name": name} for name in names], **NOTHING_ELSE})
    work = MetadataResponses("cluster", LowestRandomSource()).begin(request, 9, IMAGE, LISTENER)
    slices = 0
    while (answer := work.advance()) is None:
        slices += 1
    assert slices >= 18, "fifteen of looking up, and three of encoding"
    response: Any = decode(response_class(ApiKey.METADATA, 9), answer.data)[0]
    assert [topic.name for topic in response.topics] == names
    assert work.topics_to_create == tuple(names)


def test_an_internal_topic_is_marked() -> None:
    assert topics_of(ask())["__consumer_offsets"].is_internal is True


def test_an_invalid_name_is_refused_and_never_created() -> None:
    answer = ask(["not/lawful", "..", "lawful"], allow_auto_topic_creation=True)
    assert topics_of(answer)["not/lawful"].error_code is ErrorCode.invalid_topic_exception
    assert topics_of(answer)[".."].error_code is ErrorCode.invalid_topic_exception
    assert answer.topics_to_create == ("lawful",)


def test_a_client_may_decline_topic_creation() -> None:
    assert ask(["new"], allow_auto_topic_creation=False).topics_to_create == ()
    assert ask(["new"], version=3).topics_to_create == ("new",), "before version 4 a client cannot decline"


def test_operations_are_reported_for_names_without_a_topic_too() -> None:
    """As Kafka 4.3.1 answers; not where the error hides the topic, or no name came."""
    names = ["new", "not/lawful", "..", "orders"]
    told = topics_of(ask(names, include_topic_authorized_operations=True))
    assert {told[name].topic_authorized_operations for name in names} == {ALL_TOPIC_OPERATIONS}
    assert {each.topic_authorized_operations for each in topics_of(ask(names)).values()} == {
        OPERATIONS_NOT_ASKED
    }


def test_operations_are_reported_when_asked_for() -> None:
    asked = topics_of(ask(["orders"], include_topic_authorized_operations=True))
    assert asked["orders"].topic_authorized_operations == ALL_TOPIC_OPERATIONS
    assert topics_of(ask(["orders"]))["orders"].topic_authorized_operations == OPERATIONS_NOT_ASKED
