"""Hosts and ports in the forms which Kafka's config uses."""

import re
from typing import NamedTuple

_PORT_MAX = 65535
_HOST_AND_PORT = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^:\[\]@/\s]*):(?P<port>\d+)")
_LISTENER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
WILDCARD_HOSTS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - recognised here, not listened on


class HostPort(NamedTuple):
    """An address; the host of an IPv6 address is without brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return format_address(self.host, self.port)


class Listener(NamedTuple):
    """A named address to listen on or to be found at; an empty host means every interface."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{format_address(self.host, self.port)}"


class VoterAddress(NamedTuple):
    """A voter of a static quorum and where its controller listener is."""

    id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.id}@{format_address(self.host, self.port)}"


def format_address(host: str, port: int) -> str:
    """`host:port`, with brackets around an IPv6 host."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_host_port(text: str) -> HostPort:
    """Raises ValueError when `text` is not `host:port`; the host may be empty."""
    match = _HOST_AND_PORT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not host:port")
    port = int(match["port"])
    if port > _PORT_MAX:
        raise ValueError(f"{text!r} has port {port}; the highest is {_PORT_MAX}")
    return HostPort(match["host"].strip("[]"), port)


def parse_listener(text: str) -> Listener:
    """Raises ValueError when `text` is not `NAME://host:port`; names are upper-cased, as Kafka does."""
    name, separator, address = text.strip().partition("://")
    if not separator or not _LISTENER_NAME.fullmatch(name):
        raise ValueError(f"{text!r} is not NAME://host:port")
    return Listener(name.upper(), *parse_host_port(address))


def parse_voter(text: str) -> VoterAddress:
    """Raises ValueError when `text` is not `id@host:port`."""
    node_id, separator, address = text.strip().partition("@")
    if not separator or not node_id.isdecimal():
        raise ValueError(f"{text!r} is not id@host:port")
    host, port = parse_host_port(address)
    if host in WILDCARD_HOSTS:
        raise ValueError(f"{text!r} names no host that others can connect to")
    return VoterAddress(int(node_id), host, port)


def reachable(host: str, port: int) -> HostPort:
    """Where a listener is reached from this machine: one on every interface by loopback."""
    return HostPort("127.0.0.1" if host in WILDCARD_HOSTS else host, port)
