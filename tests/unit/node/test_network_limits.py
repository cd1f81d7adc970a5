"""From the keys of a config to the limits of listeners."""

import asyncio
import resource
from pathlib import Path

import pytest

from kquorum.metadata.adapters.controller_channel import SHARE_OF_ALL
from kquorum.network.connection_quota import Refusal
from kquorum.network.limits import NO_LIMIT, BudgetLimits
from kquorum.network.request_budget import RequestBudget
from kquorum.node import network_limits
from kquorum.node.config.errors import ConfigError
from kquorum.node.config.load import load_config
from kquorum.node.config.model import NodeConfig
from kquorum.node.config.network_keys import parse_address_limit
from kquorum.node.network_limits import (
    connections_that_fit,
    grpc_limits,
    grpc_shared_limits,
    is_protected,
    open_files,
    server_limits,
    shared_limits,
)
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.config_files import SMALL, write
from tests.support.network.budget_peers import USUAL, Peer


def broker(tmp_path: Path, *lines: str) -> NodeConfig:
    """Node 11 of a small config with these lines for all nodes."""
    path = tmp_path / "quorum.toml"
    path.write_text(SMALL.replace("[defaults]\n", "\n".join(("[defaults]", *lines, ""))))
    return load_config(path).node(11)


def test_a_config_that_says_nothing_is_bounded_by_the_descriptors_alone(tmp_path: Path) -> None:
    config = broker(tmp_path)
    limits = server_limits(config, config.broker_listeners[0])
    assert limits.max_connections == connections_that_fit(config)
    assert connections_that_fit(config) < limits.max_open_files < open_files()
    assert (limits.max_idle_ms, limits.max_connection_creation_rate) == (600_000, NO_LIMIT)
    quota = shared_limits(config).quota
    assert not quota.is_full
    assert quota.refusal_of_address("127.0.0.1") is None
    assert limits.evicts_after_idle_ms is None


def test_the_listener_of_controllers_makes_room_for_nodes(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, SMALL)).node(1)
    assert server_limits(config, config.controller_listeners[0]).evicts_after_idle_ms == 10_000


def test_a_controller_has_as_many_envelopes_of_a_connection_in_hand_as_a_broker_sends(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, SMALL))
    controller, member = config.node(1), config.node(11)
    limits = server_limits(controller, controller.controller_listeners[0])
    assert limits.max_in_flight_by_api == {ApiKey.ENVELOPE: SHARE_OF_ALL}
    assert server_limits(member, member.broker_listeners[0]).max_in_flight_by_api == {ApiKey.FETCH: 1}


def test_the_keys_of_a_node_reach_its_quota_and_budget(tmp_path: Path) -> None:
    config = broker(
        tmp_path,
        '"max.connections" = 3',
        '"max.connections.per.ip" = 1',
        '"max.connections.per.ip.overrides" = "127.0.0.2:2, [::1]:0"',
        '"queued.max.request.bytes" = 1000',
        '"queued.max.requests" = 7',
    )
    shared = shared_limits(config)
    shared.quota.take("10.0.0.1")
    assert shared.quota.refusal_of_address("10.0.0.1") is Refusal.ADDRESS
    assert shared.quota.refusal_of_address("::1") is Refusal.ADDRESS
    shared.quota.take("127.0.0.2")
    assert shared.quota.refusal_of_address("127.0.0.2") is None
    assert not shared.quota.is_full
    shared.quota.take("127.0.0.2")
    assert shared.quota.is_full
    assert shared.quota.refusal_of_address("127.0.0.2") is Refusal.ADDRESS
    asyncio.run(in_loop(shared.budget))


async def in_loop(budget: RequestBudget) -> None:
    peer = Peer(budget, "peer", [])
    budget.hold(peer, 70_000, 0, 0)
    assert not budget.may_read(peer)
    budget.hold(peer, 0, 0, 16)
    assert not budget.may_serve(peer, USUAL)


def test_no_bytes_said_means_a_bound_of_our_own(tmp_path: Path) -> None:
    async def test() -> None:
        budget = shared_limits(broker(tmp_path, '"queued.max.request.bytes" = -1')).budget
        peer = Peer(budget, "peer", [])
        budget.hold(peer, BudgetLimits().max_bytes - 1, 0, 0)
        assert budget.may_read(peer)
        budget.hold(peer, BudgetLimits().max_bytes, 0, 0)
        assert not budget.may_read(peer)

    asyncio.run(test())


def test_the_keys_of_a_listener_reach_its_limits(tmp_path: Path) -> None:
    config = broker(
        tmp_path,
        '"listener.name.plaintext.max.connections" = 4',
        '"listener.name.plaintext.max.connection.creation.rate" = 5',
        '"socket.request.max.bytes" = 1000',
        '"connections.max.idle.ms" = 1001',
        '"kquorum.frame.timeout.ms" = 1002',
        '"kquorum.output.timeout.ms" = 1003',
        '"kquorum.unanswered.request.timeout.ms" = 1004',
        '"kquorum.request.max.elements" = 40',
    )
    limits = server_limits(config, config.broker_listeners[0])
    assert (limits.max_connections, limits.max_connection_creation_rate) == (4, 5)
    assert (limits.max_request_bytes, limits.max_idle_ms) == (1000, 1001)
    assert (limits.frame_timeout_ms, limits.write_timeout_ms, limits.request_timeout_ms) == (1002, 1003, 1004)
    assert limits.max_elements(ApiKey.METADATA) == limits.max_elements(ApiKey.CREATE_TOPICS) == 40
    assert limits.max_elements(ApiKey.ALTER_PARTITION_REASSIGNMENTS) == 10
    assert limits.max_elements(ApiKey.OFFSET_COMMIT) == 40


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('"max.connections.per.ip.overrides" = "10.0.0.1"', "'10.0.0.1' is not address:number"),
        ('"max.connections.per.ip.overrides" = "no.such.invalid:3"', "no.such.invalid in"),
        ('"max.connections" = -1', "max.connections: -1 must be greater than or equal to 0"),
        ('"queued.max.requests" = 0', "queued.max.requests: 0 must be greater than or equal to 1"),
        ('"listener.name.plaintext.max.connections" = "many"', "must be a number from 0 to 2147483647"),
        ('"listener.name.other.max.connections" = 3', "is for a listener OTHER; there are"),
    ],
)
def test_a_limit_that_is_none_is_refused_by_name(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        broker(tmp_path, line)
    assert words in str(caught.value)


def test_an_override_may_be_for_a_name() -> None:
    limit = parse_address_limit("localhost:5")
    assert limit.limit == 5
    assert {"127.0.0.1", "::1"} & set(limit.addresses)
    assert str(limit) == "localhost:5"


def test_only_one_of_several_listeners_is_protected(tmp_path: Path) -> None:
    config = broker(tmp_path, '"inter.broker.listener.name" = "PLAINTEXT"')
    listener = config.broker_listeners[0]
    assert is_protected(config, listener, 2)
    assert not is_protected(config, listener, 1)
    assert not is_protected(broker(tmp_path), listener, 2)


def test_descriptors_are_kept_back_for_the_log_and_the_other_nodes(tmp_path: Path) -> None:
    most = connections_that_fit(broker(tmp_path))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 0 < most < soft


GRPC_LISTENER = '"kquorum.grpc.listener" = "127.0.0.1:0"'


@pytest.mark.parametrize("granted", [64, 200, 1_200, 1_048_576])
def test_grpc_has_a_share_of_the_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, granted: int
) -> None:
    monkeypatch.setattr(network_limits, "open_files", lambda: granted)
    without, with_grpc = broker(tmp_path), broker(tmp_path, GRPC_LISTENER)
    share = grpc_limits(with_grpc).max_connections
    assert 0 < share <= 2_000
    # Each has three: the client's, and both ends of the one between the front and gRPC.
    assert connections_that_fit(with_grpc) + 3 * share == connections_that_fit(without) < granted
    said = broker(tmp_path, GRPC_LISTENER, '"listener.name.grpc.max.connections" = 3')
    assert grpc_limits(said).max_connections == 3
    too_many = broker(tmp_path, GRPC_LISTENER, '"listener.name.grpc.max.connections" = 2000000')
    assert connections_that_fit(too_many) >= grpc_limits(too_many).max_connections
    assert 0 < grpc_limits(with_grpc).max_open_files < granted


def test_new_grpc_connections_have_a_rate_and_a_limit_by_address(tmp_path: Path) -> None:
    assert grpc_limits(broker(tmp_path, GRPC_LISTENER)).max_connection_creation_rate == 50
    rate = '"listener.name.grpc.max.connection.creation.rate" = 3'
    assert grpc_limits(broker(tmp_path, GRPC_LISTENER, rate)).max_connection_creation_rate == 3
    calls = grpc_limits(broker(tmp_path, GRPC_LISTENER, '"kquorum.grpc.max.calls.per.second" = 7'))
    assert (calls.max_calls_per_second, calls.max_calls_per_second_of_connection) == (7, 3)
    shared = grpc_shared_limits(broker(tmp_path, GRPC_LISTENER, '"max.connections.per.ip" = 1'))
    shared.quota.take("10.0.0.1")
    assert shared.quota.refusal_of_address("10.0.0.1") is Refusal.ADDRESS
    assert shared.quota.refusal_of_address("10.0.0.2") is None


def test_idle_grpc_connections_are_closed_as_others_are(tmp_path: Path) -> None:
    assert grpc_limits(broker(tmp_path, '"connections.max.idle.ms" = 1001')).max_idle_ms == 1001
    long = broker(tmp_path, f'"connections.max.idle.ms" = {2**40}')
    assert grpc_limits(long).max_idle_ms == NO_LIMIT


def test_the_open_calls_of_grpc_are_bounded_for_all_and_for_each_client(tmp_path: Path) -> None:
    usual = grpc_limits(broker(tmp_path))
    assert (usual.max_open_calls, usual.max_open_calls_per_client) == (1_000, 200)
    said = broker(
        tmp_path, '"kquorum.grpc.max.open.calls" = 30', '"kquorum.grpc.max.open.calls.per.client" = 3'
    )
    assert (grpc_limits(said).max_open_calls, grpc_limits(said).max_open_calls_per_client) == (30, 3)
