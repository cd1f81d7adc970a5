"""What tests of networks say and hear: a connection between two nodes, on either kind of network."""

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.jepsen.net.namespaces import NamespaceNetwork
from tests.jepsen.net.network import Network, NetworkUnavailable
from tests.jepsen.net.proxies import ProxyNetwork

A, B, C = 1, 2, 11
PATIENCE_S = 30.0
SILENCE_S = 0.4

_MAKE: dict[str, Callable[[], Network]] = {
    "netns": lambda: NamespaceNetwork((A, B, C)),
    "proxy": lambda: ProxyNetwork((A, B, C), (A, B)),
}
NETWORKS = tuple(_MAKE)


@contextmanager
def open_or_skip(kind: str) -> Iterator[Network]:
    """Nodes A and B, open to every node, and C."""
    network = _MAKE[kind]()
    try:
        network.__enter__()
    except NetworkUnavailable as error:
        pytest.skip(str(error))
    try:
        yield network
    finally:
        network.__exit__()


class Wire:
    """A connection which `source` opened to `target`; sockets stay in the namespace that they were made in."""

    def __init__(self, network: Network, source: int, target: int) -> None:
        with network.inside(target):
            self.server = socket.create_server(network.address_of(target))
        with network.inside(source):
            self.near = socket.create_connection(network.route(source, target), PATIENCE_S)
        self.server.settimeout(PATIENCE_S)
        self.far, _ = self.server.accept()
        for end in (self.near, self.far):
            end.settimeout(PATIENCE_S)

    def close(self) -> None:
        for each in (self.near, self.far, self.server):
            each.close()


def arrives(sender: socket.socket, receiver: socket.socket, data: bytes, within_s: float) -> bool:
    """Whether it is there in time; a receiver that would hear of the end of the connection would fail the test."""
    sender.sendall(data)
    return is_heard(receiver, data, within_s)


def is_heard(receiver: socket.socket, data: bytes, within_s: float) -> bool:
    """All of it, once it has begun."""
    readable, _, _ = select.select([receiver], [], [], within_s)
    if not readable:
        return False
    heard = b""
    while len(heard) < len(data) and (piece := receiver.recv(len(data) - len(heard))):
        heard += piece
    assert heard == data
    return True


def is_reached_by_a_client(network: Network, target: int) -> bool:
    """In a thread of its own, as `enter_as_client` is for good."""
    outcome: list[bool] = []

    def connect() -> None:
        network.enter_as_client()
        with socket.create_connection(network.address_of(target), PATIENCE_S):
            outcome.append(True)

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join(2 * PATIENCE_S)
    return outcome == [True]
