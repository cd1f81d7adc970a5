"""What a network of nodes can do, whatever it is made of.

A link is directed: (a, b) is what a says to b. Cutting it loses what a says, silently, on connections of either
side; what b says still arrives. No connection is reset, and a new one needs both directions.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, Self

from cli.config.addresses import HostPort

Link = tuple[int, int]


class NetworkUnavailable(Exception):
    """This kind of network cannot be had here; the message says what is missing."""


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

    def route(self, source: int, target: int) -> HostPort:
        """Where `source` has to connect to in order to reach the node `target`."""
        ...

    def inside(self, node_id: int) -> AbstractContextManager[None]:
        """Processes started by this thread within the block are on the node's side of the network."""
        ...

    def enter_as_client(self) -> None:
        """From now on sockets made by this thread are on the clients' side of the network."""
        ...

    def cut(self, links: Iterable[Link]) -> None:
        """Takes effect for all of them before it returns."""
        ...

    def heal(self) -> None:
        """All links work again."""
        ...

    def counters(self) -> dict[str, int]:
        """Bytes that passed, by name of the link or interface."""
        ...


def isolation(node_id: int, nodes: Sequence[int]) -> list[Link]:
    """The links to and from all others."""
    others = [other for other in nodes if other != node_id]
    return [(node_id, other) for other in others] + [(other, node_id) for other in others]
