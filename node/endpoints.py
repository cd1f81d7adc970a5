"""Where a node's controller listeners are reached by others."""

import socket
from collections.abc import Iterable

from kquorum.node.config.addresses import WILDCARD_HOSTS, HostPort, Listener
from kquorum.node.config.model import NodeConfig
from kquorum.raft.voters import Endpoint


def controller_endpoints(node: NodeConfig) -> tuple[Endpoint, ...]:
    """In the order of `controller.listener.names`: as advertised where they are, else as listened on; a listener on
    every interface is reached under this machine's name."""
    return tuple(
        Endpoint(item.name, reachable_host(item.host), item.port) for item in advertised_controllers(node)
    )


def advertised_controllers(node: NodeConfig) -> tuple[Listener, ...]:
    advertised = {listener.name: listener for listener in node.advertised_listeners}
    return tuple(advertised.get(listener.name, listener) for listener in node.controller_listeners)


def advertised_brokers(node: NodeConfig) -> tuple[Listener, ...]:
    """Where clients find this broker; the listeners of a controller in the same process are not for them."""
    return tuple(
        item for item in node.advertised_listeners if item.name not in node.controller_listener_names
    )


def inter_broker_listener(node: NodeConfig) -> str:
    """The name of the listener on which brokers fetch from each other: the first of a broker that names none."""
    named = node.inter_broker_listener_name
    return node.broker_listeners[0].name if named is None else named.upper()


def reachable_host(host: str) -> str:
    return socket.gethostname() if host in WILDCARD_HOSTS else host


def bootstrap_endpoints(node: NodeConfig) -> tuple[Endpoint, ...]:
    """The servers to ask for the leader while no voter is known, under the name of the quorum's listener."""
    return _named(node, node.controller_quorum_bootstrap_servers)


def static_voter_endpoints(node: NodeConfig) -> dict[int, Endpoint]:
    """Where the voters of `controller.quorum.voters` listen."""
    voters = node.controller_quorum_voters
    places = _named(node, (HostPort(voter.host, voter.port) for voter in voters))
    return {voter.id: place for voter, place in zip(voters, places, strict=True)}


def _named(node: NodeConfig, addresses: Iterable[HostPort]) -> tuple[Endpoint, ...]:
    name = node.controller_listener_names[0]
    return tuple(Endpoint(name, address.host, address.port) for address in addresses)
