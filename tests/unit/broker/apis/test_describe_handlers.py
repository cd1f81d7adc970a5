"""DescribeCluster and DescribeTopicPartitions as a broker answers them from its image."""

from typing import Any

import pytest

from kquorum.broker.apis.describe_cluster import handle_describe_cluster
from kquorum.broker.apis.describe_topic_partitions import handle_describe_topic_partitions
from kquorum.wire.message_schema import Response
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.api_calls import read_answer, request_of
from tests.support.broker_services import LowestRandomSource
from tests.support.images import LISTENER, broker_record, image_of, partition_record, topic_records

IMAGE = image_of(
    broker_record(1),
    broker_record(2, fenced=True),
    *topic_records(1, "alpha", *(partition_record(1, index, (1, 2)) for index in range(3))),
    *topic_records(2, "beta", *(partition_record(2, index, (2,)) for index in range(2))),
)


CLUSTER_FLAGS = {"include_cluster_authorized_operations": False, "include_fenced_brokers": False}


def sendable(api_key: ApiKey, answer: Response) -> Any:
    """What a client of the newest version reads; the answer can be sent in every version."""
    lowest, highest = supported_versions(api_key)
    return [read_answer(api_key, version, answer) for version in range(lowest, highest + 1)][-1]


def cluster(version: int = 2, **fields: object) -> Any:
    values = CLUSTER_FLAGS | fields
    request = request_of(ApiKey.DESCRIBE_CLUSTER, version, values)
    return sendable(
        ApiKey.DESCRIBE_CLUSTER,
        handle_describe_cluster(request, IMAGE, "the-cluster", LISTENER, LowestRandomSource()),
    )


def test_the_cluster_is_its_alive_brokers() -> None:
    answer = cluster()
    assert (answer.cluster_id, answer.controller_id) == ("the-cluster", 1)
    assert [(broker.broker_id, broker.host, broker.is_fenced) for broker in answer.brokers] == [
        (1, "b1", False)
    ]


def test_a_controller_outside_the_listed_brokers_is_none() -> None:
    """Broker 1 is alive, but not to be reached by this listener."""
    image = image_of(broker_record(1, listener="OTHER"), broker_record(2), broker_record(3))
    request = request_of(ApiKey.DESCRIBE_CLUSTER, 2, CLUSTER_FLAGS)
    answer: Any = handle_describe_cluster(request, image, "the-cluster", LISTENER, LowestRandomSource())
    assert (answer.controller_id, len(answer.brokers)) == (-1, 2)
    other = handle_describe_cluster(request, image, "the-cluster", "OTHER", LowestRandomSource())
    assert other.controller_id == 1


def test_fenced_brokers_are_listed_on_request() -> None:
    answer = cluster(include_fenced_brokers=True)
    assert [(broker.broker_id, broker.is_fenced) for broker in answer.brokers] == [(1, False), (2, True)]


@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [(2, ErrorCode.mismatched_endpoint_type), (9, ErrorCode.unsupported_endpoint_type)],
)
def test_a_broker_does_not_describe_controllers(endpoint_type: int, error: ErrorCode) -> None:
    answer = cluster(endpoint_type=endpoint_type)
    assert answer.error_code is error
    assert answer.error_message


def partitions(names: tuple[str, ...], limit: int = 2000, cursor: tuple[str, int] | None = None) -> Any:
    values = {
        "topics": [{"name": name} for name in names],
        "response_partition_limit": limit,
        "cursor": None if cursor is None else {"topic_name": cursor[0], "partition_index": cursor[1]},
    }
    request = request_of(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, values)
    return sendable(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS, handle_describe_topic_partitions(request, IMAGE, LISTENER)
    )


def shape(answer: Any) -> list[tuple[str, list[int]]]:
    return [(topic.name, [each.partition_index for each in topic.partitions]) for topic in answer.topics]


def test_all_topics_in_one_page() -> None:
    answer = partitions(())
    assert shape(answer) == [("alpha", [0, 1, 2]), ("beta", [0, 1])]
    assert answer.next_cursor is None


def test_pages_go_on_where_the_cursor_points() -> None:
    seen: list[tuple[str, int]] = []
    cursor: tuple[str, int] | None = None
    pages = 0
    while True:
        answer = partitions((), limit=2, cursor=cursor)
        seen += [(name, index) for name, indexes in shape(answer) for index in indexes]
        pages += 1
        if answer.next_cursor is None:
            break
        cursor = answer.next_cursor.topic_name, answer.next_cursor.partition_index
    assert seen == [("alpha", 0), ("alpha", 1), ("alpha", 2), ("beta", 0), ("beta", 1)]
    assert pages == 3


def test_a_page_that_is_exactly_full_points_to_the_next_topic() -> None:
    answer = partitions((), limit=3)
    assert (answer.next_cursor.topic_name, answer.next_cursor.partition_index) == ("beta", 0)


def test_unknown_and_invalid_names_have_their_errors_and_topics_are_sorted() -> None:
    answer = partitions(("zeta", "beta", "a b"))
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("a b", ErrorCode.invalid_topic_exception),
        ("beta", ErrorCode.none),
        ("zeta", ErrorCode.unknown_topic_or_partition),
    ]


@pytest.mark.parametrize("cursor", [("alpha", -1), ("gone", 0)])
def test_a_cursor_that_makes_no_sense_is_refused(cursor: tuple[str, int]) -> None:
    answer = partitions(("beta", "alpha", "beta"), cursor=cursor)
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.invalid_request] * 3
    assert [topic.name for topic in answer.topics] == ["beta", "alpha", "beta"], "as often as they came"
