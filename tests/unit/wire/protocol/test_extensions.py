"""What our nodes add to Kafka's words is skipped by those who do not know it."""

from dataclasses import fields
from typing import Any

import pytest
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse
from kio.schema.fetch.v17.request import FetchRequest

from kquorum.raft.adapters.kafka_codec import codec
from kquorum.raft.messages import FetchRequest as Fetch
from kquorum.raft.voters import ReplicaKey
from kquorum.wire import message_codec
from kquorum.wire.messages import fetch
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.kio.classes import request_class, response_class
from tests.support.kio.codec import decode, encode
from tests.support.kio.entities import build

ANNOTATION = bytes(range(25))
FETCH = Fetch(
    cluster_id="c",
    replica=ReplicaKey(1),
    current_leader_epoch=3,
    fetch_offset=7,
    last_fetched_epoch=2,
    max_wait_ms=500,
    max_bytes=1000,
    annotation=ANNOTATION,
)


@pytest.mark.parametrize("version", range(12, 19))
def test_a_fetch_carries_an_annotation(version: int) -> None:
    data = message_codec.encode(codec.encode_request(FETCH, version), version)
    message, end = message_codec.decode(fetch.FetchRequest, version, data)
    assert end == len(data)
    decoded: Any = codec.decode_request(ApiKey.FETCH, message)
    assert decoded.annotation == ANNOTATION


def test_a_reader_that_knows_of_no_annotation_skips_it() -> None:
    data = message_codec.encode(codec.encode_request(FETCH, 17), 17)
    entity, end = decode(FetchRequest, data)
    assert end == len(data)
    assert entity.topics[0].partitions[0].fetch_offset == 7
    assert not hasattr(entity, "annotation")


def test_without_an_annotation_the_bytes_are_kafkas() -> None:
    plain = Fetch(
        **{each.name: getattr(FETCH, each.name) for each in fields(FETCH) if each.name != "annotation"}
    )
    data = message_codec.encode(codec.encode_request(plain, 17), 17)
    entity, _ = decode(FetchRequest, data)
    assert encode(entity) == data


def test_so_does_the_answer_to_describe_quorum() -> None:
    values: dict[str, object] = {
        "error_code": 0,
        "error_message": None,
        "topics": [],
        "nodes": [],
        "annotation": ANNOTATION,
    }
    data = encode(build(response_class(ApiKey.DESCRIBE_QUORUM, 2), values))
    ours: Any = decode(response_class(ApiKey.DESCRIBE_QUORUM, 2), data)[0]
    assert ours.annotation == ANNOTATION
    kafkas, end = decode(DescribeQuorumResponse, data)
    assert end == len(data)
    assert kafkas.topics == ()


@pytest.mark.parametrize("version", range(5))
def test_the_answer_to_a_registration_says_when_the_session_of_the_previous_process_ends(
    version: int,
) -> None:
    values: dict[str, object] = {
        "error_code": int(ErrorCode.duplicate_broker_registration),
        "broker_epoch": -1,
        "session_ends_in_ms": 6_123,
    }
    cls = response_class(ApiKey.BROKER_REGISTRATION, version)
    data = encode(build(cls, values))
    ours: Any = decode(cls, data)[0]
    assert ours.session_ends_in_ms == 6_123
    kafkas, end = decode(BrokerRegistrationResponse, data)
    assert (end, kafkas.error_code) == (len(data), ErrorCode.duplicate_broker_registration)
    taken: dict[str, object] = {"error_code": 0, "broker_epoch": 5}
    plain = encode(build(cls, taken))
    silent: Any = decode(cls, plain)[0]
    assert silent.session_ends_in_ms == -1
    assert encode(decode(BrokerRegistrationResponse, plain)[0]) == plain, (
        "Kafka's bytes where nothing is said"
    )


@pytest.mark.parametrize("version", [4, 11])
def test_versions_without_tagged_fields_have_none(version: int) -> None:
    cls: Any = request_class(ApiKey.FETCH, version)
    assert "annotation" not in cls.__slots__
