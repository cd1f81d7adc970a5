"""ListOffsets of a broker without records: the ends of every log are 0, and nothing has a timestamp."""

from typing import Any

import pytest

from kquorum.broker.apis.list_offsets import handle_list_offsets
from kquorum.broker.client_access import Unlimited
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.api_calls import read_answer, request_of
from tests.support.images import broker_record, image_of, partition_record, topic_records

IMAGE = image_of(broker_record(1), *topic_records(1, "orders", partition_record(1, 0, (1,))))
LOWEST, HIGHEST = supported_versions(ApiKey.LIST_OFFSETS)


class Nothing(Unlimited):
    def may_describe(self, topic_name: str) -> bool:
        return False


def listed(
    timestamp: int, *, topic: str = "orders", index: int = 0, version: int = HIGHEST, **how: Any
) -> Any:
    partition = {"partition_index": index, "current_leader_epoch": -1, "timestamp": timestamp}
    values = {
        "replica_id": -1,
        "isolation_level": 0,
        "topics": [{"name": topic, "partitions": [partition]}],
        "timeout_ms": 1000,
    }
    request = request_of(ApiKey.LIST_OFFSETS, version, values)
    answer = read_answer(ApiKey.LIST_OFFSETS, version, handle_list_offsets(request, IMAGE, **how))
    return answer.topics[0].partitions[0]


@pytest.mark.parametrize("version", range(LOWEST, HIGHEST + 1))
def test_the_log_begins_and_ends_at_0(version: int) -> None:
    for timestamp in (-1, -2):
        told = listed(timestamp, version=version)
        assert (told.error_code, told.offset) == (ErrorCode.none, 0)


@pytest.mark.parametrize("timestamp", [0, 1_700_000_000_000, -3, -5])
def test_no_record_has_a_timestamp(timestamp: int) -> None:
    told = listed(timestamp)
    assert (told.error_code, told.offset) == (ErrorCode.none, -1)


@pytest.mark.parametrize(("topic", "index"), [("none", 0), ("orders", 1)])
def test_a_partition_that_is_not_there_has_no_offsets(topic: str, index: int) -> None:
    told = listed(-1, topic=topic, index=index)
    assert (told.error_code, told.offset) == (ErrorCode.unknown_topic_or_partition, -1)


def test_without_describe_a_client_does_not_learn_whether_a_topic_exists() -> None:
    codes = {listed(-1, topic=name, access=Nothing()).error_code for name in ("orders", "none")}
    assert codes == {ErrorCode.topic_authorization_failed}
