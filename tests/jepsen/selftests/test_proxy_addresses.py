"""A node has one address that it tells all others, and what they say there is on their links all the same."""

import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.jepsen.net.network import Network
from tests.jepsen.net.proxies import ProxyNetwork
from tests.jepsen.net.wires import NETWORKS, PATIENCE_S, SILENCE_S, A, B, C, arrives, is_heard, open_or_skip


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest) -> Iterator[Network]:
    with open_or_skip(request.param) as made:
        yield made


def request_of(client_id: str) -> bytes:
    """The beginning of a Kafka request, as far as who sent it."""
    name = client_id.encode()
    return struct.pack(">ihhih", 100, 18, 3, 1, len(name)) + name


class Visit:
    """A connection from one node to the advertised address of another, and its first bytes."""

    def __init__(self, stack: ExitStack, network: Network, source: int, target: int) -> None:
        with network.inside(target):
            self.server = stack.enter_context(socket.create_server(network.address_of(target)))
        with network.inside(source):
            address = network.advertised(target)
            self.near = stack.enter_context(socket.create_connection(address, PATIENCE_S))
        self.server.settimeout(PATIENCE_S)
        self._stack = stack

    def far(self) -> socket.socket:
        connection, _ = self.server.accept()
        connection.settimeout(PATIENCE_S)
        return self._stack.enter_context(connection)


@pytest.mark.parametrize("link", [(A, B), (B, A)])
def test_a_node_at_the_advertised_address_is_on_its_link(network: Network, link: tuple[int, int]) -> None:
    hello = request_of(f"raft-client-{A}")
    with ExitStack() as stack:
        visit = Visit(stack, network, A, B)
        visit.near.sendall(hello)
        far = visit.far()
        assert is_heard(far, hello, PATIENCE_S)
        network.cut([link])
        speaker, listener = (visit.near, far) if link == (A, B) else (far, visit.near)
        assert arrives(listener, speaker, b"works", PATIENCE_S)
        assert not arrives(speaker, listener, b"cut", SILENCE_S)
        network.heal()
        assert is_heard(listener, b"cut", PATIENCE_S)


def test_a_connection_to_the_advertised_address_waits_while_its_link_is_cut() -> None:
    with ProxyNetwork((A, B, C), (A, B)) as network, ExitStack() as stack:
        visit = Visit(stack, network, A, B)
        network.cut([(A, B)])
        visit.near.sendall(request_of(f"heartbeat-{A}"))
        visit.server.settimeout(SILENCE_S)
        with pytest.raises(TimeoutError):
            visit.server.accept()
        network.heal()
        visit.server.settimeout(PATIENCE_S)
        assert is_heard(visit.far(), request_of(f"heartbeat-{A}"), PATIENCE_S)


@pytest.mark.parametrize("client_id", ["kquorum", "", f"raft-client-{B}", "raft-client-99", "jepsen-1-x"])
def test_a_connection_of_no_node_is_a_client_and_on_no_link(client_id: str) -> None:
    nodes = (A, B, C)
    with ProxyNetwork(nodes, (A, B)) as network, ExitStack() as stack:
        network.cut([(source, target) for source in nodes for target in nodes if source != target])
        visit = Visit(stack, network, A, B)
        visit.near.sendall(request_of(client_id))
        assert is_heard(visit.far(), request_of(client_id), PATIENCE_S)


def test_a_client_that_leaves_before_authentication_disturbs_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with ProxyNetwork((A, B), (A, B)) as network, ExitStack() as stack:
        visit = Visit(stack, network, A, B)
        visit.near.sendall(b"?")
        visit.near.close()
        with socket.create_connection(network.advertised(B), PATIENCE_S) as again:
            again.sendall(request_of(f"raft-client-{A}"))
            assert is_heard(visit.far(), request_of(f"raft-client-{A}"), PATIENCE_S)
    assert [record for record in caplog.records if record.name == "asyncio"] == []


def test_all_that_came_by_a_door_is_closed_when_the_network_ends() -> None:
    with ExitStack() as stack:
        with ProxyNetwork((A, B), (A, B)) as network:
            visit = Visit(stack, network, A, B)
            visit.near.sendall(request_of(f"raft-client-{A}"))
            far = visit.far()
            assert is_heard(far, request_of(f"raft-client-{A}"), PATIENCE_S)
        assert far.recv(1) == b""
