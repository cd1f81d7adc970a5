"""Listeners without encryption belong on loopback: anywhere else they need the operator's word."""

import ipaddress
from collections.abc import Iterator

from kquorum.node.config.addresses import WILDCARD_HOSTS, format_address
from kquorum.node.config.model import NodeConfig

FLAG = "kquorum.allow.unsecured.listeners"


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect; a name other than localhost may be anything, so it is not."""
    if host in WILDCARD_HOSTS:
        return False
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def exposure_problems(node: NodeConfig) -> Iterator[tuple[str, str]]:
    """(key, message) for every listener that any host on the network could use or read."""
    if node.kquorum_allow_unsecured_listeners:
        return
    for listener in node.listeners:
        protocol = node.protocol_of(listener.name)
        if protocol in ("PLAINTEXT", "SASL_PLAINTEXT") and not is_loopback(listener.host):
            yield (
                "listeners",
                _message(f"listener {listener.name}", listener.host, listener.port, protocol)
                + f"map it to SSL or SASL_SSL (listener.security.protocol.map={listener.name}:SSL, "
                + "with ssl.keystore.location)",
            )
    grpc = node.kquorum_grpc_listener
    if grpc is not None and node.kquorum_grpc_security == "plaintext" and not is_loopback(grpc.host):
        message = _message("kquorum.grpc.listener", grpc.host, grpc.port, "plaintext")
        yield "kquorum.grpc.listener", message + "set kquorum.grpc.security=ssl (with ssl.keystore.location)"
    metrics = node.kquorum_metrics_listener
    if metrics is not None and not is_loopback(metrics.host):
        message = _message("kquorum.metrics.listener", metrics.host, metrics.port, "plain HTTP")
        yield "kquorum.metrics.listener", message + "give it a loopback address"


def _message(name: str, host: str, port: int, protocol: str) -> str:
    where = "every address of this machine" if host in WILDCARD_HOSTS else format_address(host, port)
    return (
        f"{name} is {protocol} on {where}, open to every client that reaches it: bind it to 127.0.0.1, or say with "
        f"{FLAG}=true that the network around is trusted, or "
    )
