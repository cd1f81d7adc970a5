"""What is refused before it could be written in Kafka's protocol, and what every version of it can carry."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquorum.metadata.grpc import access
from kquorum.metadata.grpc.access import BadMessage, status_name, words_for
from kquorum.metadata.grpc.broker import requests
from kquorum.wire.message_schema import ByVersion
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.proto import broker_pb2 as pb
from kquorum.wire.proto.inspect_pb2 import Endpoint
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from kquorum.wire.uuids import uuid_to_text
from tests.support.api_calls import as_read
from tests.support.controller_world import World
from tests.support.metadata.member_world import MEMBERSHIP

INCARNATION = UUID(int=77).bytes
TOPIC_ID = uuid_to_text(UUID(int=1234))


def register(**fields: Any) -> Any:
    values = {"broker_id": 5, "incarnation_id": INCARNATION, **fields}
    return requests.registration_request(pb.RegisterRequest(**values), MEMBERSHIP)


def endpoint(**fields: Any) -> list[Endpoint]:
    return [Endpoint(**{"name": "PLAINTEXT", "host": "h", "port": 1, **fields})]


def test_a_report_of_very_many_partitions_is_refused_before_it_holds_the_loop_up() -> None:
    change = pb.PartitionChange(topic_id=TOPIC_ID, isr=[pb.InSyncReplica(broker_id=1)] * 3)
    fits = pb.AlterPartitionRequest(partitions=[change] * 500)
    (topic,) = made(requests.alter_partition_request(fits), 3).topics
    assert len(topic.partitions) == 500
    for count in (501, 60_000):
        with pytest.raises(BadMessage, match="in one request; at most 2000 are taken, so send several"):
            requests.alter_partition_request(pb.AlterPartitionRequest(partitions=[change] * count))
    with pytest.raises(BadMessage, match="failed_directories: 501 in one request"):
        requests.heartbeat_request(pb.HeartbeatRequest(failed_directories=[INCARNATION] * 501))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"broker_id": -1}, "broker_id must be 0 or more"),
        ({"incarnation_id": b"short"}, "incarnation_id must have 16 bytes"),
        ({"incarnation_id": bytes(16)}, "not all 0"),
        ({"directories": [b""]}, "directories must have 16 bytes"),
        ({"endpoints": endpoint(port=0)}, "endpoints.port must be from 1 to 65535, not 0"),
        ({"endpoints": endpoint(port=65_536)}, "endpoints.port"),
        ({"endpoints": endpoint(host=" ")}, "a name and a host"),
        ({"endpoints": endpoint(name="")}, "a name and a host"),
        ({"endpoints": endpoint(security_protocol=4)}, "endpoints.security_protocol"),
        ({"directories": [INCARNATION] * 501}, "directories: 501 in one request; at most 500"),
        ({"rack": "é" * 20_000}, "rack is longer than 32767 bytes"),
        ({"features": [pb.SupportedFeature(name="x", max_level=40_000)]}, "features.max_level"),
    ],
)
def test_what_cannot_be_a_registration_is_refused_with_the_field(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(BadMessage, match=words):
        register(**fields)


def made(asked: Any, version: int) -> Any:
    return asked.make(version) if isinstance(asked, ByVersion) else asked


def alteration(topic_id: str) -> Any:
    member = pb.InSyncReplica(broker_id=5)
    changes = [
        pb.PartitionChange(topic_id=topic_id, partition_id=number, isr=[member], is_recovering=number == 1)
        for number in (0, 1)
    ]
    request = pb.AlterPartitionRequest(broker_id=5, broker_epoch=9, partitions=changes)
    return requests.alter_partition_request(request)


def heartbeat(*failed: bytes) -> Any:
    request = pb.HeartbeatRequest(broker_id=5, broker_epoch=9, applied_offset=8, failed_directories=failed)
    return requests.heartbeat_request(request)


def test_ids_of_topics_and_directories_are_read_with_care() -> None:
    with pytest.raises(BadMessage, match="topic_id: 'orders' is not a uuid"):
        alteration("orders")
    with pytest.raises(BadMessage, match="failed_directories must have 16 bytes"):
        heartbeat(b"x")


@pytest.mark.parametrize(
    ("api_key", "request_of"),
    [
        (ApiKey.BROKER_REGISTRATION, lambda: register(endpoints=endpoint(), rack="r")),
        (ApiKey.BROKER_HEARTBEAT, lambda: heartbeat(INCARNATION)),
        (ApiKey.ALTER_PARTITION, lambda: alteration(TOPIC_ID)),
        (
            ApiKey.UNREGISTER_BROKER,
            lambda: requests.unregistration_request(pb.UnregisterRequest(broker_id=5)),
        ),
    ],
)
def test_every_version_of_a_request_carries_the_message(
    api_key: ApiKey, request_of: Callable[[], Any]
) -> None:
    low, high = supported_versions(api_key)
    # Version 0 of a heartbeat has no failed directories.
    for version in range(low + (api_key is ApiKey.BROKER_HEARTBEAT), high + 1):
        request = made(request_of(), version)
        assert request.broker_id == 5
        assert as_read(api_key, version, request).broker_id == 5


def test_partitions_of_one_topic_go_together_and_recovery_is_reported() -> None:
    (topic,) = made(alteration(TOPIC_ID), 3).topics
    assert [each.leader_recovery_state for each in topic.partitions] == [0, 1]
    assert topic.topic_id == UUID(int=1234)


def test_a_members_own_features_go_before_those_of_the_node() -> None:
    own = [
        pb.SupportedFeature(name="mine", max_level=3),
        pb.SupportedFeature(name="kraft.version", min_level=1, max_level=1),
    ]
    found = {each.name: each for each in register(features=own).features}
    assert found["mine"].max_supported_version == 3
    assert found["kraft.version"].min_supported_version == 1
    assert found["metadata.version"].max_supported_version > 20


def test_every_error_has_a_status_and_words() -> None:
    import grpc

    for error in ErrorCode:
        assert status_name(error) in grpc.StatusCode.__members__
        assert words_for(error)
    with pytest.raises(access.Refused, match="Kafka's error KAFKA_STORAGE_ERROR"):
        raise access.Refused(ErrorCode.kafka_storage_error)


SMALL = st.integers(-1, 3)
WIDE = st.one_of(SMALL, st.integers(-(1 << 31), (1 << 31) - 1))
LONG = st.one_of(SMALL, st.integers(-(1 << 63), (1 << 63) - 1))
IDS = st.one_of(st.binary(max_size=18), st.binary(min_size=16, max_size=16))
ENDPOINTS = st.builds(
    Endpoint, name=st.text(max_size=3), host=st.text(max_size=3), port=WIDE, security_protocol=WIDE
)
FEATURES = st.builds(pb.SupportedFeature, name=st.text(max_size=3), min_level=WIDE, max_level=WIDE)
REPLICAS = st.builds(pb.InSyncReplica, broker_id=WIDE, broker_epoch=LONG)
CHANGES = st.builds(
    pb.PartitionChange,
    topic_id=st.one_of(st.text(max_size=24), st.just(TOPIC_ID)),
    partition_id=WIDE,
    leader_epoch=WIDE,
    partition_epoch=WIDE,
    isr=st.lists(REPLICAS, max_size=3),
    is_recovering=st.booleans(),
)
REQUESTS = st.one_of(
    st.builds(
        pb.RegisterRequest,
        broker_id=WIDE,
        incarnation_id=IDS,
        endpoints=st.lists(ENDPOINTS, max_size=2),
        rack=st.text(max_size=3),
        directories=st.lists(IDS, max_size=2),
        features=st.lists(FEATURES, max_size=2),
        previous_broker_epoch=LONG,
    ),
    st.builds(
        pb.HeartbeatRequest,
        broker_id=WIDE,
        broker_epoch=LONG,
        applied_offset=LONG,
        failed_directories=st.lists(IDS, max_size=2),
    ),
    st.builds(
        pb.AlterPartitionRequest, broker_id=WIDE, broker_epoch=LONG, partitions=st.lists(CHANGES, max_size=3)
    ),
    st.builds(pb.UnregisterRequest, broker_id=WIDE),
)


@settings(max_examples=150, deadline=None)
@given(REQUESTS)
def test_whatever_a_message_holds_it_is_refused_or_can_be_sent(request: Any) -> None:
    api_key, request_of = {
        pb.RegisterRequest: (
            ApiKey.BROKER_REGISTRATION,
            lambda: requests.registration_request(request, MEMBERSHIP),
        ),
        pb.HeartbeatRequest: (
            ApiKey.BROKER_HEARTBEAT,
            lambda: requests.heartbeat_request(request),
        ),
        pb.AlterPartitionRequest: (
            ApiKey.ALTER_PARTITION,
            lambda: requests.alter_partition_request(request),
        ),
        pb.UnregisterRequest: (
            ApiKey.UNREGISTER_BROKER,
            lambda: requests.unregistration_request(request),
        ),
    }[type(request)]
    try:
        asked = request_of()
    except BadMessage:
        return
    newest = supported_versions(api_key)[1]
    body = made(asked, newest)
    assert as_read(api_key, newest, body) == body
    world = World().lead()
    world.add_brokers(1)
    assert len(world.send_body(api_key, newest, body)) <= 1
    world.commit()
