"""Nodes in network namespaces, each with an address of its own, around a hub that routes between them.

    client threads ── hub (a namespace that forwards) ══ veth ══ node's namespace, 10.77.N.2
                       ║
                      TUN ══ relay (a process)

A link with a fault has a routing rule in the hub, `from A to B iif node-A`, whose table leads into the relay; all
others are the kernel's alone. The rule has a direction, and needs neither nftables nor iptables nor `tc`. What the
relay lets through comes back by the TUN, where the rule does not apply, and goes on to B. Without a relay the table
ends in a blackhole: links can then be cut, and nothing else.

Nothing is ever added to the machine's own namespace: veth pairs are born with both ends inside. Clients are in the
hub and on no link, so they reach every node at any time.
"""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from kquorum.node.config.addresses import HostPort
from tests.jepsen.net.conditions import Condition, Ledger, Tally
from tests.jepsen.net.iproute import enter_namespace, inside_namespace, ip, run_tool
from tests.jepsen.net.network import DEFAULT_TOKEN, FaultUnavailable, Link, NetworkUnavailable, named
from tests.jepsen.net.relay_process import DEVICE, RelayProcess
from tests.jepsen.net.stale import PREFIX as PREFIX
from tests.jepsen.net.stale import namespaces_of, remove_namespace, remove_stale_namespaces

PORT = 9090
_RULE_PRIORITY = 1000
_FAULTS_TABLE = 77
# The relay reads one packet after the other; a burst must not be lost before it gets there.
_RELAY_QUEUE_PACKETS = 20_000
_LIST_CONNECTIONS = ("ss", "--no-header", "--numeric", "--tcp")


class NamespaceNetwork:
    """See the head of the module. Needs root and `ip` of iproute2."""

    name = "netns"

    def __init__(self, nodes: Sequence[int]) -> None:
        self._place = {node_id: place for place, node_id in enumerate(nodes, start=1)}
        assert len(self._place) == len(nodes) < 250, "places are the third byte of an address"
        self._run = namespaces_of(os.getpid())
        self._hub = f"{self._run}-hub"
        self._ledger = Ledger(nodes)
        self._ruled: set[Link] = set()
        self._relay: RelayProcess | None = None
        self._no_relay_because = ""
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        if os.geteuid() != 0:
            raise NetworkUnavailable("network namespaces need root")
        if shutil.which("ip") is None:
            raise NetworkUnavailable("network namespaces need the command `ip` (Debian: iproute2)")
        remove_stale_namespaces()
        try:
            self._build()
        except BaseException as error:
            self.__exit__()
            if isinstance(error, OSError | subprocess.SubprocessError):
                raise NetworkUnavailable(f"network namespaces do not work here: {error}") from error
            raise
        return self

    def __exit__(self, *error: object) -> None:
        if self._relay is not None:
            self._relay.stop()
            self._relay = None
        for name in [self._hub, *(self._namespace(node_id) for node_id in self._place)]:
            remove_namespace(name)

    def _build(self) -> None:
        ip("netns", "add", self._hub)
        ip("-n", self._hub, "link", "set", "lo", "up")
        with inside_namespace(self._hub):
            # The sysctl folder shows the namespace of the thread that opens it.
            settings = Path("/proc/sys/net/ipv4")
            (settings / "ip_forward").write_text("1")
            # What comes back from the relay does not come from where its sender is.
            for scope in ("all", "default"):
                (settings / "conf" / scope / "rp_filter").write_text("0")
        for node_id, place in self._place.items():
            self._add_node(node_id, place)
        self._add_faults_table()
        # A rule of the kind that all faults need: better to know now whether there are any.
        nodes = list(self._place)
        self.cut([(nodes[0], nodes[-1])])
        self.heal()

    def _add_node(self, node_id: int, place: int) -> None:
        own, hub = self._namespace(node_id), self._hub
        ip("netns", "add", own)
        ip("link", "add", f"node{place}", "netns", hub, "type", "veth", "peer", "name", "eth0", "netns", own)
        ip("-n", hub, "addr", "add", f"10.77.{place}.1/30", "dev", f"node{place}")
        ip("-n", hub, "link", "set", f"node{place}", "up")
        ip("-n", own, "addr", "add", f"{self._host(node_id)}/30", "dev", "eth0")
        ip("-n", own, "link", "set", "eth0", "up")
        ip("-n", own, "link", "set", "lo", "up")
        ip("-n", own, "route", "add", "default", "via", f"10.77.{place}.1")

    def _add_faults_table(self) -> None:
        """A relay that ends leaves the blackhole, so that no fault ever vanishes without being healed."""
        table = ("table", str(_FAULTS_TABLE))
        ip("-n", self._hub, "route", "add", "blackhole", "default", "metric", "1000", *table)
        try:
            with inside_namespace(self._hub):
                self._relay = RelayProcess()
        except OSError as error:
            self._no_relay_because = str(error)
            return
        queue = ("txqueuelen", str(_RELAY_QUEUE_PACKETS))
        ip("-n", self._hub, "link", "set", DEVICE, *queue, "up")
        ip("-n", self._hub, "route", "add", "default", "dev", DEVICE, "metric", "1", *table)

    def _namespace(self, node_id: int) -> str:
        return f"{self._run}-{node_id}"

    def _host(self, node_id: int) -> str:
        return f"10.77.{self._place[node_id]}.2"

    def address_of(self, node_id: int) -> HostPort:
        return HostPort(self._host(node_id), PORT)

    def advertised(self, node_id: int) -> HostPort:
        return self.address_of(node_id)

    def route(self, source: int, target: int) -> HostPort:
        return self.address_of(target)

    @contextmanager
    def inside(self, node_id: int) -> Iterator[None]:
        with inside_namespace(self._namespace(node_id)):
            yield

    def enter_as_client(self) -> None:
        enter_namespace(self._hub)

    def cut(self, links: Iterable[Link], token: str = DEFAULT_TOKEN) -> None:
        self._add_fault(token, "cut", links, Condition(is_cut=True))

    def slow(
        self,
        links: Iterable[Link],
        delay_ms: float,
        jitter_ms: float = 0.0,
        rate_bytes_per_s: float | None = None,
        token: str = DEFAULT_TOKEN,
    ) -> None:
        self._need_relay()
        self._add_fault(token, "slow", links, Condition(False, delay_ms, jitter_ms, rate_bytes_per_s))

    def drop(self, links: Iterable[Link], fraction: float, token: str = DEFAULT_TOKEN) -> None:
        self._need_relay()
        self._add_fault(token, "drop", links, Condition(drop_fraction=fraction))

    def heal(self, token: str | None = None) -> None:
        with self._lock:
            self._ledger.end(token)
            self._apply()

    def reset(self, links: Iterable[Link]) -> int:
        """By `ss --kill`, which the kernel may not support."""
        if shutil.which("ss") is None:
            raise FaultUnavailable("connections are reset by the command `ss` (Debian: iproute2)")
        try:
            return sum(self._reset_between(*sorted(pair)) for pair in {frozenset(link) for link in links})
        except OSError as error:
            raise FaultUnavailable(str(error)) from error

    def _reset_between(self, near: int, far: int) -> int:
        """Where the kernel does not support it, `ss` says nothing, and nothing happens."""
        peer = self._host(far)
        with inside_namespace(self._namespace(near)):
            before = _established_to(peer)
            killed = run_tool(*_LIST_CONNECTIONS, "--kill", "dst", peer).splitlines()
            if not killed and before & _established_to(peer):
                raise FaultUnavailable("this kernel closes no sockets for others (INET_DIAG_DESTROY)")
        return len(killed)

    def _need_relay(self) -> None:
        if self._relay is None:
            raise FaultUnavailable(
                f"links are slowed and thinned out by a TUN device: {self._no_relay_because}"
            )

    def _add_fault(self, token: str, kind: str, links: Iterable[Link], condition: Condition) -> None:
        with self._lock:
            self._ledger.add(token, kind, links, condition)
            self._apply()

    def _apply(self) -> None:
        conditions = self._ledger.conditions()
        try:
            if self._relay is not None:
                # First: then what a healed link still holds leaves before the rule that leads here goes.
                self._relay.change({self._relayed(link): each for link, each in conditions.items()})
        finally:
            self._rule("del", self._ruled - set(conditions))
            self._rule("add", set(conditions) - self._ruled)
            self._ruled = set(conditions)

    def _relayed(self, link: Link) -> str:
        return f"{self._host(link[0])} {self._host(link[1])}"

    def _rule(self, action: str, links: Iterable[Link]) -> None:
        lines = [
            f"rule {action} from {self._host(source)} to {self._host(target)} iif node{self._place[source]}"
            f" priority {_RULE_PRIORITY} lookup {_FAULTS_TABLE}"
            for source, target in sorted(links)
        ]
        if lines:
            ip("-n", self._hub, "-batch", "-", script="\n".join(lines) + "\n")

    def counters(self) -> dict[str, int]:
        """Bytes of each node, and of each link what it carried while it had a fault."""
        found = {}
        with inside_namespace(self._hub):
            lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
        for node_id, place in self._place.items():
            for line in lines:
                interface, _, figures = line.strip().partition(":")
                if interface == f"node{place}":
                    # Received by the hub is sent by the node, and the other way round.
                    found[f"node {node_id} sent"] = int(figures.split()[0])
                    found[f"node {node_id} received"] = int(figures.split()[8])
        return found | self._felt()

    def _felt(self) -> dict[str, int]:
        tallies = {} if self._relay is None else self._relay.tallies()
        found: dict[str, int] = {}
        for source in self._place:
            for target in self._place:
                if (tally := tallies.get(self._relayed((source, target)))) is not None and tally != Tally():
                    found |= named((source, target), tally)
        return found


def _established_to(peer: str) -> set[str]:
    """The near ends of connections of this thread's namespace."""
    lines = run_tool(*_LIST_CONNECTIONS, "state", "established", "dst", peer).splitlines()
    return {line.split()[2] for line in lines}
