"""What the listeners of a node share, what a controller's takes more of, and how long a caller may wait there."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kquorum.metadata.forwarding import encode_address, encode_principal
from kquorum.metadata.grpc.quorum import service
from kquorum.metadata.grpc.quorum.service import LONGEST_WAIT_MS, WAIT_TIMEOUT_MS, MembersCalls
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.members import Waited
from kquorum.network.api_versions import NO_FEATURES
from kquorum.network.request_times import RequestTimes
from kquorum.node.config.load import load_config
from kquorum.node.network_limits import server_limits
from kquorum.node.servers import kafka_servers
from kquorum.wire.forwarding_id import FORWARDING_ID_BYTES, forwarding_fields
from kquorum.wire.proto import quorum_pb2 as pb
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import request_of
from tests.support.config_files import SMALL
from tests.support.kio.frames import encode_request


def test_brokers_may_tell_a_controller_of_twice_as_much(tmp_path: Path) -> None:
    """A full collection over a decoded AlterPartition of four times as much takes more than 50 ms."""
    path = tmp_path / "quorum.toml"
    path.write_text(SMALL.replace("[defaults]\n", '[defaults]\n"kquorum.request.max.elements" = 40\n'))
    nodes = {node_id: load_config(path).node(node_id) for node_id in (1, 11)}
    told = {
        node_id: server_limits(node, node.listeners[0]).max_elements(ApiKey.ALTER_PARTITION)
        for node_id, node in nodes.items()
    }
    assert told == {1: 80, 11: 40}
    of_a_controller = server_limits(nodes[1], nodes[1].listeners[0])
    assert of_a_controller.max_elements(ApiKey.CREATE_TOPICS) == 40, "which every client may ask for"
    assert of_a_controller.max_elements(ApiKey.CREATE_ACLS) == 10


def test_what_a_client_may_send_to_a_broker_fits_a_controllers_listener_in_its_envelope(
    tmp_path: Path,
) -> None:
    path = tmp_path / "quorum.toml"
    path.write_text(SMALL.replace("[defaults]\n", '[defaults]\n"socket.request.max.bytes" = 100000\n'))
    controller, broker = (
        server_limits(node, node.listeners[0]).max_request_bytes
        for node in map(load_config(path).node, (1, 11))
    )
    frame, long_name = bytes(broker), "User:" + "n" * 32_000
    envelope = {
        "request_data": frame,
        "request_principal": encode_principal(long_name),
        "client_host_address": encode_address("2001:db8::7"),
    }
    entity = request_of(ApiKey.ENVELOPE, 0, envelope)
    fields = forwarding_fields(bytes(FORWARDING_ID_BYTES))
    assert len(encode_request(ApiKey.ENVELOPE, 0, 1, "forwarding-11", entity, fields)) <= controller


@pytest.mark.parametrize(
    ("asked_ms", "waited_ms"), [(0, WAIT_TIMEOUT_MS), (700, 700), (2**31 - 1, LONGEST_WAIT_MS)]
)
def test_no_call_waits_for_all_for_longer_than_the_bound(
    monkeypatch: pytest.MonkeyPatch, asked_ms: int, waited_ms: int
) -> None:
    bounds: list[int] = []

    async def wait_applied(_source: Any, offset: int | None, timeout_ms: int) -> Waited:
        bounds.append(timeout_ms)
        return Waited(offset=offset or 0, lagging=(), fenced=())

    monkeypatch.setattr(service, "wait_applied", wait_applied)
    calls, source, context = MembersCalls(), object(), object()
    anything: Any = source
    calls.members = anything
    unused: Any = context
    asyncio.run(calls.WaitApplied(pb.WaitAppliedRequest(timeout_ms=asked_ms), unused))
    assert bounds == [waited_ms]


def test_the_listeners_of_a_node_share_its_limits_and_only_one_is_protected(tmp_path: Path) -> None:
    path = tmp_path / "quorum.toml"
    two = '"PLAINTEXT://127.0.0.1:9092,OTHER://127.0.0.1:9093"\n"inter.broker.listener.name" = "OTHER"'
    path.write_text(SMALL.replace('"PLAINTEXT://127.0.0.1:9092"', two))
    node = load_config(path).node(11)
    one, other = kafka_servers(
        node,
        node.broker_listeners,
        lambda *_: None,
        {},
        lambda: NO_FEATURES,
        image=MetadataImage.empty,
        now_ms=lambda: 0,
        times=RequestTimes(),
    )
    assert one._state.shared is other._state.shared
    assert (one._state.is_protected, other._state.is_protected) == (False, True)
