"""What a network of nodes can do, whatever it is made of.

A link is directed: (a, b) is what a says to b. Cutting it loses what a says, silently, on connections of either
side; what b says still arrives. No connection is reset, and a new one needs both directions. Clients and observers
are on no link: no fault ever touches them.

Faults overlap. Each lies on its links under a token, and healing a token takes away what was done under it: a link
that another token still cuts stays cut. A fault takes effect for all of its links before the call returns.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from random import Random
from typing import Literal, Protocol, Self

from kquorum.node.config.addresses import HostPort
from tests.jepsen.net.conditions import Link as Link
from tests.jepsen.net.conditions import Tally

DEFAULT_TOKEN = "default"


class NetworkUnavailable(Exception):
    """This kind of network cannot be had here; the message says what is missing."""


class FaultUnavailable(Exception):
    """The network cannot bring about this fault here; the message says why. Nothing was done."""


class Network(Protocol):
    """A context manager: entering builds it, leaving takes all of it away, whatever happened."""

    name: str

    def __enter__(self) -> Self:
        """Raises NetworkUnavailable, with nothing left behind."""
        ...

    def __exit__(self, *error: object) -> None: ...

    def address_of(self, node_id: int) -> HostPort:
        """Where the node listens, and where clients and observers, who are on no link, reach it."""
        ...

    def advertised(self, node_id: int) -> HostPort:
        """Where other nodes learn that it listens: one address for all, and all who say their name are on a link."""
        ...

    def route(self, source: int, target: int) -> HostPort:
        """The address at which only `source` can connect to the node `target`, whatever it sends."""
        ...

    def inside(self, node_id: int) -> AbstractContextManager[None]:
        """Processes started by this thread within the block are on the node's side of the network."""
        ...

    def enter_as_client(self) -> None:
        """From now on sockets made by this thread are on the clients' side of the network."""
        ...

    def cut(self, links: Iterable[Link], token: str = DEFAULT_TOKEN) -> None:
        """Nothing that is said on them arrives until they are healed."""
        ...

    def slow(
        self,
        links: Iterable[Link],
        delay_ms: float,
        jitter_ms: float = 0.0,
        rate_bytes_per_s: float | None = None,
        token: str = DEFAULT_TOKEN,
    ) -> None:
        """What is said arrives `delay_ms` later, give or take `jitter_ms`, in order, and no faster than the rate.

        Raises FaultUnavailable.
        """
        ...

    def drop(self, links: Iterable[Link], fraction: float, token: str = DEFAULT_TOKEN) -> None:
        """This fraction of what is said is lost, at random, and TCP has to send it again. Raises FaultUnavailable."""
        ...

    def reset(self, links: Iterable[Link]) -> int:
        """Closes each connection between the nodes of a link, whichever end opened it; returns how many there were.

        Both ends see the close, unless the link is cut. Nothing has to be healed. Raises FaultUnavailable.
        """
        ...

    def heal(self, token: str | None = None) -> None:
        """Takes away the faults under the token, or all of them."""
        ...

    def counters(self) -> dict[str, int]:
        """What passed, by name of the link or node, and what faults did to it; see `named`."""
        ...


def named(link: Link, tally: Tally) -> dict[str, int]:
    """The counters of one link: those of faults only where there was one, so that a report shows what was felt."""
    prefix = f"{link[0]} to {link[1]}"
    felt = {"delayed": tally.delayed, "lost": tally.lost, "cut": tally.cut}
    return {f"{prefix} bytes": tally.bytes} | {
        f"{prefix} {what}": count for what, count in felt.items() if count
    }


def isolation(node_id: int, nodes: Sequence[int]) -> list[Link]:
    """The links to and from all others."""
    return split([[node_id], [other for other in nodes if other != node_id]])


def one_way(node_id: int, nodes: Sequence[int], direction: Literal["inbound", "outbound"]) -> list[Link]:
    """The links that bring it what others say (inbound), or those that take to them what it says (outbound)."""
    others = [other for other in nodes if other != node_id]
    return [(other, node_id) if direction == "inbound" else (node_id, other) for other in others]


def split(groups: Sequence[Sequence[int]]) -> list[Link]:
    """The links between nodes of different groups, both ways."""
    return [
        (source, target)
        for group in groups
        for source in group
        for other in groups
        if other is not group
        for target in other
    ]


def halves(nodes: Sequence[int], random_source: Random) -> tuple[list[int], list[int]]:
    """Two groups at random for `split`, the smaller one first."""
    shuffled = random_source.sample(nodes, len(nodes))
    middle = len(shuffled) // 2
    return shuffled[:middle], shuffled[middle:]


def bridge(nodes: Sequence[int], random_source: Random) -> list[Link]:
    """Two halves at random that hear nothing of each other, and one node that both talk with."""
    _, *others = random_source.sample(nodes, len(nodes))
    middle = len(others) // 2
    return split([others[:middle], others[middle:]])


def majorities_ring(nodes: Sequence[int]) -> list[Link]:
    """Every node hears a majority, itself included, and no two hear the same one.

    As in Jepsen, the nodes stand in a ring in the order given, and each hears its neighbours, the one before it first.
    Where the majority is odd (5 nodes), what is left are links both ways; among 3, each hears only the one before it,
    so that every link works in one direction.
    """
    size = len(nodes)
    majority = size // 2 + 1
    before = majority // 2
    links: list[Link] = []
    for place, node_id in enumerate(nodes):
        heard = {nodes[(place - before + step) % size] for step in range(majority)}
        links += [(other, node_id) for other in nodes if other not in heard]
    return links
