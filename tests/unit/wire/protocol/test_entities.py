"""One mapping serves every version of a message; mistakes of the caller are named, not sent."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from kquorum.wire import message_codec
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.unregister_broker import UnregisterBrokerResponse
from kquorum.wire.protocol.apis import ApiKey, supported_versions
from kquorum.wire.protocol.headers import EncodedBody
from tests.support.kio.classes import request_class, response_class
from tests.support.kio.codec import decode, encode
from tests.support.kio.entities import build

TOPIC_ID = UUID(int=77)

FETCH = {
    "cluster_id": "c",
    "replica_id": 3,
    "replica_state": {"replica_id": 3, "replica_epoch": 9},
    "max_wait_ms": 500,
    "min_bytes": 1,
    "max_bytes": 1 << 20,
    "topics": [
        {
            "topic": "__cluster_metadata",
            "topic_id": TOPIC_ID,
            "partitions": [
                {
                    "partition": 0,
                    "current_leader_epoch": 4,
                    "fetch_offset": 12,
                    "last_fetched_epoch": 3,
                    "partition_max_bytes": 1 << 19,
                    "replica_directory_id": UUID(int=0),
                    "high_watermark": 11,
                }
            ],
        }
    ],
    "forgotten_topics_data": (),
}


@pytest.mark.parametrize("version", range(4, 19))
def test_one_mapping_makes_every_version_of_a_request(version: int) -> None:
    assert supported_versions(ApiKey.FETCH) == (4, 18)
    cls: Any = request_class(ApiKey.FETCH, version)
    entity = build(cls, FETCH)
    assert type(entity) is cls
    assert entity.max_wait == timedelta(milliseconds=500)
    if version >= 15:
        assert entity.replica_state.replica_id == 3
    else:
        assert entity.replica_id == 3
    (topic,) = entity.topics
    assert topic.topic_id == TOPIC_ID if version >= 13 else topic.topic == "__cluster_metadata"
    assert topic.partitions[0].fetch_offset == 12
    assert decode(cls, encode(entity)) == (entity, len(encode(entity)))


def test_plain_values_become_what_kio_keeps() -> None:
    values = {
        "error_code": 41,
        "throttle_time_ms": 1500,
        "principal_type": "User",
        "principal_name": "a",
        "issue_timestamp": 1_700_000_000_123,
        "expiry_timestamp_ms": 1_700_000_000_999,
        "max_timestamp": datetime(2030, 1, 1, tzinfo=UTC),
        "token_id": "t",
        "hmac": b"h",
    }
    token: Any = build(response_class(ApiKey.CREATE_DELEGATION_TOKEN, 2), values)
    assert token.error_code is ErrorCode.not_controller
    assert token.throttle_time == timedelta(milliseconds=1500)
    assert token.issue_timestamp == datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC)
    assert token.expiry_timestamp == datetime(2023, 11, 14, 22, 13, 20, 999_000, tzinfo=UTC)
    assert token.max_timestamp == datetime(2030, 1, 1, tzinfo=UTC)


def _produced(log_append_time_ms: int) -> dict[str, object]:
    partition = {
        "index": 0,
        "error_code": 0,
        "base_offset": 0,
        "log_append_time_ms": log_append_time_ms,
        "record_errors": (),
    }
    return {"responses": [{"name": "t", "partition_responses": [partition]}]}


@pytest.mark.parametrize("milliseconds", [0, 1, 999, 1_753_000_000_001, 253_402_300_799_999])
def test_points_in_time_keep_each_millisecond(milliseconds: int) -> None:
    """253402300799999 is the last millisecond of the year 9999; a float of seconds cannot hold it."""
    cls = response_class(ApiKey.PRODUCE, 9)
    entity: Any = build(cls, _produced(milliseconds))
    since_epoch = entity.responses[0].partition_responses[0].log_append_time - datetime(
        1970, 1, 1, tzinfo=UTC
    )
    assert since_epoch // timedelta(milliseconds=1) == milliseconds


def test_absent_values_become_none() -> None:
    produced: Any = build(response_class(ApiKey.PRODUCE, 9), _produced(-1))
    assert produced.responses[0].partition_responses[0].log_append_time is None
    fetch: Any = build(request_class(ApiKey.FETCH, 17), FETCH)
    assert fetch.topics[0].partitions[0].replica_directory_id is None
    metadata: Any = build(request_class(ApiKey.METADATA, 12), _METADATA | {"topics": None})
    assert metadata.topics is None


_METADATA = {
    "allow_auto_topic_creation": False,
    "include_topic_authorized_operations": False,
}


def test_arrays_may_be_any_iterable_and_hold_ready_entities() -> None:
    cls = request_class(ApiKey.METADATA, 12)
    made: Any = build(cls, _METADATA | {"topics": [{"topic_id": TOPIC_ID, "name": None}]})
    again: Any = build(cls, _METADATA | {"topics": (topic for topic in made.topics)})
    assert made == again
    assert isinstance(again.topics, tuple)


def test_identities_in_arrays_are_converted() -> None:
    values = {
        "broker_id": 1,
        "cluster_id": "c",
        "incarnation_id": TOPIC_ID,
        "listeners": [],
        "features": [],
        "rack": None,
        "log_dirs": [UUID(int=5), UUID(int=0)],
    }
    entity: Any = build(request_class(ApiKey.BROKER_REGISTRATION, 4), values)
    assert entity.log_dirs == (UUID(int=5), None)


def test_missing_values_are_all_named() -> None:
    cls = request_class(ApiKey.HEARTBEAT, 4)
    with pytest.raises(
        TypeError, match="HeartbeatRequest version 4 lacks a value for generation_id, member_id"
    ):
        build(cls, {"group_id": "g"})


def test_a_missing_value_of_a_nested_struct_is_named() -> None:
    with pytest.raises(TypeError, match="ListOffsetsPartition version 7 lacks a value for timestamp"):
        build(
            request_class(ApiKey.LIST_OFFSETS, 7),
            {
                "replica_id": -1,
                "isolation_level": 0,
                "topics": [{"name": "t", "partitions": [{"partition_index": 1}]}],
            },
        )


def test_throttle_time_alone_may_be_missing_from_a_response() -> None:
    entity: Any = build(response_class(ApiKey.HEARTBEAT, 4), {"error_code": 0})
    assert entity.throttle_time == timedelta(0)


@pytest.mark.parametrize("version", [0, 4])
def test_a_misspelt_name_is_refused_in_every_version(version: int) -> None:
    values = {"error_code": 0, "throttle_tyme_ms": 5}
    with pytest.raises(TypeError, match="no version of HeartbeatResponse has a field 'throttle_tyme_ms'"):
        build(response_class(ApiKey.HEARTBEAT, version), values)


def test_a_misspelt_name_in_a_nested_struct_is_refused() -> None:
    topics = [{"topic_id": TOPIC_ID, "nam": "t"}]
    with pytest.raises(TypeError, match="no version of MetadataRequestTopic has a field 'nam'"):
        build(request_class(ApiKey.METADATA, 12), _METADATA | {"topics": topics})


_MESSAGES_IMPORTED_BY_THE_PROTOCOL = (
    "LIGHT = ('kquorum.wire.messages.index', 'kquorum.wire.messages.error_codes')\n"
    "import sys, kquorum.wire.protocol.headers, kquorum.wire.protocol.frames\n"
    "print([m for m in sys.modules if m.startswith(('kio', 'kquorum.wire.messages.')) and m not in LIGHT])"
)
_IMPORTED_BY_THE_FIRST_MESSAGE = (
    "import sys\n"
    "from kquorum.wire.protocol.warm_up import warm_up\n"
    "from kquorum.wire.protocol.apis import message_types\n"
    "from kquorum.wire.protocol.headers import encode_request\n"
    "warm_up([52, 3])\n"
    "modules = set(sys.modules)\n"
    "encode_request(3, 13, 1, 'c', message_types(3)[0]())\n"
    "encode_request(52, 2, 1, 'c', message_types(52)[0]())\n"
    "print(sorted(set(sys.modules) - modules))"
)


@pytest.mark.parametrize(
    "code",
    [
        # They are slow to import, and a command that reads a log needs none.
        pytest.param(_MESSAGES_IMPORTED_BY_THE_PROTOCOL, id="message classes, by the protocol"),
        pytest.param(_IMPORTED_BY_THE_FIRST_MESSAGE, id="anything, by the first message after warming up"),
    ],
)
def test_what_is_not_imported(code: str) -> None:
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_a_message_is_encoded_in_the_version_of_the_class() -> None:
    """A handler that is converted answers with a message; `build` takes either."""
    response = UnregisterBrokerResponse(error_code=ErrorCode.not_controller, error_message="m")
    built = build(response_class(ApiKey.UNREGISTER_BROKER, 0), response)
    assert isinstance(built, EncodedBody)
    assert encode(built) == message_codec.encode(response, 0)
