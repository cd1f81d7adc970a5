"""Both networks keep the same promises: links are cut one by one and in one direction, silently, and heal."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from kquorum.cli.processes import wait_until
from tests.jepsen.core.members import Members
from tests.jepsen.net import stale
from tests.jepsen.net.namespaces import NamespaceNetwork
from tests.jepsen.net.network import Network, NetworkUnavailable, isolation
from tests.jepsen.net.proxies import ProxyNetwork
from tests.jepsen.net.wires import (
    NETWORKS,
    PATIENCE_S,
    SILENCE_S,
    A,
    B,
    C,
    Wire,
    arrives,
    is_heard,
    is_reached_by_a_client,
    open_or_skip,
)

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest) -> Iterator[Network]:
    with open_or_skip(request.param) as made:
        yield made


@pytest.fixture
def wire(network: Network) -> Iterator[Wire]:
    with closing(Wire(network, A, B)) as made:
        yield made


def test_both_ends_hear_each_other(wire: Wire) -> None:
    assert arrives(wire.near, wire.far, b"ping", PATIENCE_S)
    assert arrives(wire.far, wire.near, b"pong", PATIENCE_S)


@pytest.mark.parametrize(("link", "there", "back"), [((A, B), False, True), ((B, A), True, False)])
def test_one_direction_is_cut_silently_and_what_was_said_arrives_when_it_is_healed(
    network: Network, wire: Wire, link: tuple[int, int], there: bool, back: bool
) -> None:
    network.cut([link])
    # The direction that works is asked with patience. Over TCP it works without the acknowledgements coming back.
    assert arrives(wire.near, wire.far, b"ping", PATIENCE_S if there else SILENCE_S) is there
    assert arrives(wire.far, wire.near, b"pong", PATIENCE_S if back else SILENCE_S) is back
    network.heal()
    assert there or is_heard(wire.far, b"ping", PATIENCE_S)
    assert back or is_heard(wire.near, b"pong", PATIENCE_S)


def test_other_links_are_not_touched(network: Network, wire: Wire) -> None:
    network.cut(isolation(C, (A, B, C)))
    assert arrives(wire.near, wire.far, b"ping", PATIENCE_S)
    network.heal()


def test_links_can_be_cut_twice_and_healed_twice(network: Network, wire: Wire) -> None:
    network.cut([(A, B)])
    network.cut([(A, B), (B, A)])
    network.heal()
    network.heal()
    assert arrives(wire.near, wire.far, b"ping", PATIENCE_S)


def test_a_new_connection_needs_both_directions(network: Network) -> None:
    with network.inside(A):
        server = socket.create_server(network.address_of(A))
    server.settimeout(SILENCE_S)
    network.cut([(A, C)])
    with network.inside(C):
        near = socket.socket()
    with near, server:
        near.settimeout(SILENCE_S)
        # A proxy accepts at once and carries on later; a cut route lets the attempt time out.
        near.connect_ex(network.route(C, A))
        with pytest.raises(TimeoutError):
            server.accept()
        network.heal()


def test_clients_reach_every_node_whatever_is_cut(network: Network) -> None:
    with network.inside(A):
        server = socket.create_server(network.address_of(A))
    network.cut(isolation(A, (A, B, C)))
    reached = is_reached_by_a_client(network, A)
    server.close()
    network.heal()
    assert reached


def test_what_passed_is_counted(network: Network, wire: Wire) -> None:
    assert arrives(wire.near, wire.far, b"x" * 10_000, PATIENCE_S)
    assert wait_until(lambda: max(network.counters().values(), default=0) >= 10_000, PATIENCE_S)


def test_a_connection_given_up_while_it_was_cut_never_reaches_the_peer() -> None:
    with ProxyNetwork((A, B), (A, B)) as network, socket.create_server(network.address_of(B)) as server:
        network.cut([(A, B)])
        with socket.create_connection(network.route(A, B), PATIENCE_S) as near:
            near.sendall(b"too late")
        server.settimeout(SILENCE_S)
        with pytest.raises(TimeoutError):
            server.accept()
        network.heal()
        with pytest.raises(TimeoutError):
            server.accept()


def our_namespaces() -> list[str]:
    folder = Path("/run/netns")
    prefix = stale.namespaces_of(os.getpid())
    return [path.name for path in folder.glob(f"{prefix}-*")] if folder.is_dir() else []


def test_nothing_is_left_when_building_fails_half_way(monkeypatch: pytest.MonkeyPatch) -> None:
    network = NamespaceNetwork((A, B))
    try:
        with network:
            assert len(our_namespaces()) == 3
    except NetworkUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setattr(NamespaceNetwork, "cut", lambda *_: (_ for _ in ()).throw(OSError("no such rule")))
    with pytest.raises(NetworkUnavailable, match="no such rule"):
        network.__enter__()
    assert our_namespaces() == []


_ABANDON = """
import os, signal
from tests.jepsen.net.namespaces import NamespaceNetwork
NamespaceNetwork((1, 2)).__enter__()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_namespaces_of_a_run_that_was_killed_are_removed_by_the_next() -> None:
    try:
        with NamespaceNetwork((A, B)):
            pass
    except NetworkUnavailable as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [sys.executable, "-c", _ABANDON],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    with NamespaceNetwork((A, B)):
        names = [path.name for path in Path("/run/netns").glob(f"{stale.PREFIX}-*")]
        assert [name for name in names if not stale.is_alive(name)] == []
        assert stale.remove_stale_namespaces() == []
        assert len(our_namespaces()) == 3
    assert our_namespaces() == []


def test_without_root_auto_takes_proxies_and_says_why_there_are_no_namespaces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tests.jepsen.core.run import open_network

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    members = Members((A, B), (C,))
    with ExitStack() as stack:
        assert open_network(stack, "auto", members).name == "proxy"
    with ExitStack() as stack, pytest.raises(NetworkUnavailable, match="need root"):
        open_network(stack, "netns", members)
