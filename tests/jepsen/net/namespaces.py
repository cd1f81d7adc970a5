"""Nodes in network namespaces, each with an address of its own, around a hub that routes between them.

    client threads ── hub (a namespace that forwards) ══ veth ══ node's namespace, 10.77.N.2

A link is cut by a routing rule of the hub, `from A to B blackhole`: it needs neither nftables nor iptables, has a
direction, and drops forwarded packets without a word (a blackhole *route* in the node's own namespace would make
its `connect` fail at once instead). Nothing is ever added to the machine's own namespace: veth pairs are born
with both ends inside. Clients are in the hub and on no link, so they reach every node at any time.

Names of namespaces hold the process that made them and when it began, so that a later run can tell which were
left behind by one that died.
"""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from cli.config.addresses import HostPort
from tests.jepsen.net.network import Link, NetworkUnavailable

PREFIX = "kqj"
PORT = 9090
_NAMESPACES = Path("/run/netns")
_RULE_PRIORITY = 1000
_CLONE_NEWNET = 0x40000000
_COMMAND_TIMEOUT_S = 20.0


class NamespaceNetwork:
    """See the head of the module. Needs root and `ip` of iproute2."""

    name = "netns"

    def __init__(self, nodes: Sequence[int]) -> None:
        self._place = {node_id: place for place, node_id in enumerate(nodes, start=1)}
        assert len(self._place) == len(nodes) < 250, "places are the third byte of an address"
        self._run = f"{PREFIX}-{os.getpid()}-{start_of(os.getpid())}"
        self._hub = f"{self._run}-hub"
        self._cut: set[Link] = set()

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
        for name in [self._hub, *(self._namespace(node_id) for node_id in self._place)]:
            _remove(name)

    def _build(self) -> None:
        _ip("netns", "add", self._hub)
        _ip("-n", self._hub, "link", "set", "lo", "up")
        with _inside(self._hub):
            # The sysctl folder shows the namespace of the thread that opens it.
            Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        for node_id, place in self._place.items():
            self._add_node(node_id, place)
        # A rule of the kind that cuts links: better to know now whether there are any.
        nodes = list(self._place)
        self.cut([(nodes[0], nodes[-1])])
        self.heal()

    def _add_node(self, node_id: int, place: int) -> None:
        own, hub = self._namespace(node_id), self._hub
        _ip("netns", "add", own)
        _ip("link", "add", f"node{place}", "netns", hub, "type", "veth", "peer", "name", "eth0", "netns", own)
        _ip("-n", hub, "addr", "add", f"10.77.{place}.1/30", "dev", f"node{place}")
        _ip("-n", hub, "link", "set", f"node{place}", "up")
        _ip("-n", own, "addr", "add", f"{self._host(node_id)}/30", "dev", "eth0")
        _ip("-n", own, "link", "set", "eth0", "up")
        _ip("-n", own, "link", "set", "lo", "up")
        _ip("-n", own, "route", "add", "default", "via", f"10.77.{place}.1")

    def _namespace(self, node_id: int) -> str:
        return f"{self._run}-{node_id}"

    def _host(self, node_id: int) -> str:
        return f"10.77.{self._place[node_id]}.2"

    def address_of(self, node_id: int) -> HostPort:
        return HostPort(self._host(node_id), PORT)

    def route(self, source: int, target: int) -> HostPort:
        return self.address_of(target)

    @contextmanager
    def inside(self, node_id: int) -> Iterator[None]:
        with _inside(self._namespace(node_id)):
            yield

    def enter_as_client(self) -> None:
        _enter(_NAMESPACES / self._hub)

    def cut(self, links: Iterable[Link]) -> None:
        new = set(links) - self._cut
        self._rules("add", new)
        self._cut |= new

    def heal(self) -> None:
        self._rules("del", self._cut)
        self._cut = set()

    def _rules(self, action: str, links: Iterable[Link]) -> None:
        lines = [
            f"rule {action} from {self._host(source)} to {self._host(target)} priority {_RULE_PRIORITY} blackhole"
            for source, target in sorted(links)
        ]
        if lines:
            _ip("-n", self._hub, "-batch", "-", script="\n".join(lines) + "\n")

    def counters(self) -> dict[str, int]:
        found = {}
        with _inside(self._hub):
            lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
        for node_id, place in self._place.items():
            for line in lines:
                interface, _, figures = line.strip().partition(":")
                if interface == f"node{place}":
                    # Received by the hub is sent by the node, and the other way round.
                    found[f"node {node_id} sent"] = int(figures.split()[0])
                    found[f"node {node_id} received"] = int(figures.split()[8])
        return found


def remove_stale_namespaces() -> list[str]:
    """Takes away what runs left behind that are no more; answers their names."""
    names = [path.name for path in _NAMESPACES.glob(f"{PREFIX}-*")] if _NAMESPACES.is_dir() else []
    stale = [name for name in names if not is_alive(name)]
    for name in stale:
        _remove(name)
    return stale


def is_alive(name: str) -> bool:
    """Whether the process that made the namespace still runs."""
    match name.split("-"):
        case [_, pid, started, _] if pid.isdigit():
            return started == start_of(int(pid))
        case _:
            return False


def start_of(pid: int) -> str:
    """When a process began, in clock ticks since the machine did; empty when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


def _remove(name: str) -> None:
    if (_NAMESPACES / name).exists():
        with suppress(OSError, subprocess.SubprocessError):
            _ip("netns", "del", name)


def _ip(*arguments: str, script: str | None = None) -> None:
    """Raises OSError with the words of `ip`."""
    done = subprocess.run(
        ["ip", *arguments],
        input=script,
        stdin=subprocess.DEVNULL if script is None else None,
        capture_output=True,
        text=True,
        timeout=_COMMAND_TIMEOUT_S,
        check=False,
        start_new_session=True,
    )
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


@contextmanager
def _inside(name: str) -> Iterator[None]:
    """This thread is in the namespace; processes that it starts begin there too."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _enter(_NAMESPACES / name)
        yield
    finally:
        _set_namespace(home)
        os.close(home)


def _enter(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        _set_namespace(handle)
    finally:
        os.close(handle)


def _set_namespace(handle: int) -> None:
    """setns(2); the standard library has it from Python 3.12 on."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(handle, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"setns: {os.strerror(number)}")
