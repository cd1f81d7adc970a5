"""Whether a node's addresses can be had, before it takes part in anything.

A node that leads, or has registered, and then cannot listen disturbs the others for nothing; and its operator should
learn of it at once.
"""

import errno
import socket
from collections.abc import Callable, Iterator

from kquorum.network.errors import CannotListen, listen_error
from kquorum.node.config.model import NodeConfig

Family = tuple[int, int, int, str, tuple[object, ...]]
Refusal = Callable[[str, int, OSError], CannotListen]

_REFUSED_ANYWHERE = frozenset((errno.EADDRINUSE, errno.EACCES))


def check_addresses_are_free(config: NodeConfig) -> None:
    """Raises CannotListen, of the kind that the listener itself would raise.

    What is bound here is given back: the listeners that open late must not take connections yet, and a socket that only
    reserves the address would keep gRPC from it.
    """
    for refused in refused_addresses(config):
        raise refused


def refused_addresses(config: NodeConfig) -> Iterator[CannotListen]:
    """One for each address that cannot be had."""
    for host, port, refusal in _addresses(config):
        try:
            _check(host, port)
        except OSError as error:
            refused = refusal(host, port, error)
            refused.__cause__ = error
            yield refused


def _addresses(config: NodeConfig) -> Iterator[tuple[str, int, Refusal]]:
    of_roles = (
        *(config.controller_listeners if config.is_controller else ()),
        *(config.broker_listeners if config.is_broker else ()),
    )
    for listener in of_roles:
        yield listener.host, listener.port, listen_error
    if (grpc := config.kquorum_grpc_listener) is not None:
        from kquorum.metadata.grpc.server import grpc_listen_error

        yield grpc.host, grpc.port, grpc_listen_error
    if (metrics := config.kquorum_metrics_listener) is not None:
        from kquorum.node.observability.http_server import metrics_listen_error

        yield metrics.host, metrics.port, metrics_listen_error


def _check(host: str, port: int) -> None:
    """Raises OSError when an address of the host is taken or not permitted, or none can be bound: a family that the
    machine does not have is left to the server's own start."""
    families: list[Family] = socket.getaddrinfo(  # type: ignore[assignment]
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    refusals: list[OSError] = []
    for family, kind, protocol, _, address in families:
        try:
            _bind(family, kind, protocol, address)
        except OSError as error:
            if error.errno in _REFUSED_ANYWHERE:
                raise
            refusals.append(error)
    if len(refusals) == len(families):
        raise refusals[0]


def _bind(family: int, kind: int, protocol: int, address: tuple[object, ...]) -> None:
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        probe.bind(address)
