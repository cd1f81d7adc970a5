"""Both networks know the same faults of links, which overlap and heal by their tokens, and both count what was felt."""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kquorum.cli.processes import wait_until
from tests.jepsen.net import relay_process
from tests.jepsen.net.network import FaultUnavailable, Network, isolation
from tests.jepsen.net.relay_process import RelayFailed
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
BOTH_WAYS = [(A, B), (B, A)]
# So late that the test ends before it, were it not for a heal.
NEVER_MS = 60_000


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest) -> Iterator[Network]:
    with open_or_skip(request.param) as made:
        yield made


@pytest.fixture
def wire(network: Network) -> Iterator[Wire]:
    with closing(Wire(network, A, B)) as made:
        yield made


def felt(network: Network, what: str) -> bool:
    """Whether the counters come to show it."""
    return wait_until(lambda: network.counters().get(what, 0) > 0, PATIENCE_S)


def test_what_is_said_on_a_slow_link_arrives_no_sooner_than_its_delay_less_the_jitter(
    network: Network, wire: Wire
) -> None:
    network.slow([(A, B)], 250, 50)
    began_s = time.monotonic()
    assert arrives(wire.near, wire.far, b"ping", PATIENCE_S)
    assert time.monotonic() - began_s >= 0.2
    assert felt(network, f"{A} to {B} delayed")


def test_a_slow_link_is_slow_in_its_direction_only_and_what_waits_leaves_when_it_is_healed(
    network: Network, wire: Wire
) -> None:
    network.slow([(A, B)], NEVER_MS)
    wire.near.sendall(b"ping")
    assert arrives(wire.far, wire.near, b"pong", PATIENCE_S)
    assert not is_heard(wire.far, b"ping", SILENCE_S)
    network.heal()
    assert is_heard(wire.far, b"ping", PATIENCE_S)


def test_what_a_slow_link_carries_stays_in_order(network: Network, wire: Wire) -> None:
    network.slow(BOTH_WAYS, 20, 20)
    said = [bytes([number]) * 100 for number in range(20)]
    for piece in said:
        wire.near.sendall(piece)
    assert is_heard(wire.far, b"".join(said), PATIENCE_S)


def test_a_link_carries_no_more_than_its_rate(network: Network, wire: Wire) -> None:
    network.slow([(A, B)], 0, rate_bytes_per_s=50_000)
    began_s = time.monotonic()
    assert arrives(wire.near, wire.far, b"x" * 20_000, PATIENCE_S)
    assert time.monotonic() - began_s >= 20_000 / 50_000 * 0.95


def test_a_new_connection_is_announced_after_a_slow_round_trip(network: Network) -> None:
    network.slow(BOTH_WAYS, 150)
    with network.inside(B):
        server = socket.create_server(network.address_of(B))
    with network.inside(A):
        near = socket.socket()
    with server, near:
        near.setblocking(False)
        began_s = time.monotonic()
        near.connect_ex(network.route(A, B))
        assert select.select([server], [], [], PATIENCE_S)[0]
        assert time.monotonic() - began_s >= 0.3


def test_a_link_loses_some_of_what_is_said_and_tcp_gets_it_through(network: Network, wire: Wire) -> None:
    network.drop([(A, B)], 0.5)
    said = 0

    def is_lost() -> bool:
        nonlocal said
        wire.near.sendall(b"x" * 100)
        said += 100
        return network.counters().get(f"{A} to {B} lost", 0) > 0

    assert wait_until(is_lost, PATIENCE_S)
    network.heal()
    assert is_heard(wire.far, b"x" * said, PATIENCE_S)


def test_a_link_stays_cut_while_any_token_cuts_it(network: Network, wire: Wire) -> None:
    network.cut([(A, B)], "one")
    network.cut([(A, B), (A, C)], "two")
    wire.near.sendall(b"ping")
    network.heal("one")
    assert not is_heard(wire.far, b"ping", SILENCE_S)
    assert felt(network, f"{A} to {B} cut")
    network.heal("two")
    assert is_heard(wire.far, b"ping", PATIENCE_S)


def test_healing_a_token_leaves_the_faults_of_others(network: Network, wire: Wire) -> None:
    network.cut([(A, B)], "one")
    network.cut([(B, A)], "two")
    network.heal("one")
    network.heal("no such token")
    assert arrives(wire.near, wire.far, b"ping", PATIENCE_S)
    assert not arrives(wire.far, wire.near, b"pong", SILENCE_S)
    network.heal()
    assert is_heard(wire.near, b"pong", PATIENCE_S)


def test_a_slow_link_that_was_cut_as_well_is_slow_again_when_only_the_cut_is_healed(
    network: Network, wire: Wire
) -> None:
    network.slow([(A, B)], NEVER_MS, token="slow")
    network.cut([(A, B)], "cut")
    network.heal("cut")
    assert not arrives(wire.near, wire.far, b"ping", SILENCE_S)
    assert felt(network, f"{A} to {B} delayed")
    network.heal("slow")
    assert is_heard(wire.far, b"ping", PATIENCE_S)


def test_no_fault_touches_clients(network: Network) -> None:
    with network.inside(A):
        server = socket.create_server(network.address_of(A))
    network.slow(isolation(A, (A, B, C)), NEVER_MS)
    network.drop(isolation(A, (A, B, C)), 0.99)
    with server:
        assert is_reached_by_a_client(network, A)


def test_a_link_that_there_is_not_is_refused_and_nothing_is_done(network: Network, wire: Wire) -> None:
    for link in [(A, A), (A, 99)]:
        with pytest.raises(ValueError, match=f"no link {link[0]} to {link[1]}"):
            network.cut([(A, B), link])
    assert arrives(wire.near, wire.far, b"ping", PATIENCE_S)


@pytest.mark.parametrize("link", BOTH_WAYS)
def test_a_reset_ends_the_connections_between_two_nodes_in_both_directions(
    network: Network, wire: Wire, link: tuple[int, int]
) -> None:
    assert network.reset([(A, C)]) == 0
    assert arrives(wire.near, wire.far, b"ping", PATIENCE_S)
    try:
        count = network.reset([link])
    except FaultUnavailable as error:
        pytest.skip(str(error))
    assert count == 1
    for end in (wire.near, wire.far):
        with pytest.raises(ConnectionError):
            end.recv(1)
    with network.inside(A):
        again = socket.create_connection(network.route(A, B), PATIENCE_S)
    with again, wire.server.accept()[0] as far:
        assert arrives(again, far, b"ping", PATIENCE_S)


def test_without_tun_links_of_namespaces_are_cut_and_other_faults_say_why_they_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relay_process, "_TUN", "/dev/no-such-device")
    with open_or_skip("netns") as network, closing(Wire(network, A, B)) as wire:
        with pytest.raises(FaultUnavailable, match="no-such-device"):
            network.slow([(A, B)], NEVER_MS)
        with pytest.raises(FaultUnavailable, match="no-such-device"):
            network.drop([(A, B)], 0.5)
        assert arrives(wire.near, wire.far, b"ping", PATIENCE_S)
        network.cut([(A, B)])
        assert not arrives(wire.near, wire.far, b"ping", SILENCE_S)
        network.heal()
        assert is_heard(wire.far, b"ping", PATIENCE_S)


def test_a_relay_that_died_leaves_its_links_cut_until_they_are_healed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[int] = []

    class Watched(relay_process.RelayProcess):
        def __init__(self) -> None:
            super().__init__()
            started.append(self.pid)

    monkeypatch.setattr("tests.jepsen.net.namespaces.RelayProcess", Watched)
    with open_or_skip("netns") as network, closing(Wire(network, A, B)) as wire:
        network.slow([(A, B)], 1)
        assert arrives(wire.near, wire.far, b"ping", PATIENCE_S)
        os.kill(started[0], signal.SIGKILL)
        assert wait_until(lambda: not is_running(started[0]), PATIENCE_S)
        assert not arrives(wire.near, wire.far, b"ping", SILENCE_S)
        with pytest.raises(RelayFailed, match="has ended"):
            network.heal()
        assert is_heard(wire.far, b"ping", PATIENCE_S)


def is_running(pid: int) -> bool:
    """A process that was not reaped has no command line any more."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


_ABANDON = """
import os, signal
from tests.jepsen.net import namespaces
started = []
class Watched(namespaces.RelayProcess):
    def __init__(self):
        super().__init__()
        print(self.pid, flush=True)
namespaces.RelayProcess = Watched
namespaces.NamespaceNetwork((1, 2)).__enter__().slow([(1, 2)], 100)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_relay_of_a_run_that_was_killed_ends_with_it() -> None:
    with open_or_skip("netns"):
        pass
    done = subprocess.run(
        [sys.executable, "-c", _ABANDON],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert wait_until(lambda: not is_running(int(done.stdout)), PATIENCE_S)
    with open_or_skip("netns"):
        # The next run takes the namespaces away.
        pass
