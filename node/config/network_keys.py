"""Kafka's keys of what clients may cost a node, and kquorum's own for slow peers; docs/network.md says what they do.

`max.connections` and `max.connection.creation.rate` may also be said for one listener, as
`listener.name.<listener in lower case>.<key>`, and hold beside what is said for all.
"""

import socket
from collections.abc import Iterator, Mapping
from typing import Annotated, NamedTuple

from pydantic import BaseModel, BeforeValidator

from kquorum.metadata.configs.table import LISTENER_LIMITS
from kquorum.network.limits import NO_LIMIT
from kquorum.node.config.addresses import format_address
from kquorum.node.config.config_key import config_key
from kquorum.node.config.security_keys import LISTENER_PREFIX, case_problem
from kquorum.node.config.values import as_tuple
from kquorum.wire.addresses import normal_address

CREATION_RATE = "max.connection.creation.rate"


class AddressLimit(NamedTuple):
    """How many connections an address may have; `addresses` are those of `host`, which may be a name."""

    host: str
    limit: int
    addresses: tuple[str, ...]

    def __str__(self) -> str:
        return format_address(self.host, self.limit)


def parse_address_limit(text: str) -> AddressLimit:
    """`host:number`. Raises ValueError, also for a name that has no address."""
    host, separator, limit = text.strip().rpartition(":")
    host = host.strip("[]")
    if not (separator and host and limit.isascii() and limit.isdigit()):
        raise ValueError(f"{text!r} is not address:number")
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ValueError(f"{host} in {text!r} is no address, and no name of one: {error}") from error
    addresses = dict.fromkeys(normal_address(str(address[0])) for *_, address in found)
    return AddressLimit(host, int(limit), tuple(addresses))


class NetworkKeys(BaseModel):
    socket_request_max_bytes: int = config_key("socket.request.max.bytes")
    kquorum_request_max_elements: int = config_key("kquorum.request.max.elements")
    kquorum_request_max_entries: int = config_key("kquorum.request.max.entries")
    connections_max_idle_ms: int = config_key("connections.max.idle.ms")
    max_connections: int = config_key("max.connections")
    max_connections_per_ip: int = config_key("max.connections.per.ip")
    max_connections_per_ip_overrides: Annotated[
        tuple[AddressLimit, ...], BeforeValidator(as_tuple(parse_address_limit))
    ] = config_key("max.connections.per.ip.overrides")
    max_connection_creation_rate: int = config_key("max.connection.creation.rate")
    queued_max_requests: int = config_key("queued.max.requests")
    # -1: kquorum's own bound, not none as in Kafka.
    queued_max_request_bytes: int = config_key("queued.max.request.bytes")
    kquorum_grpc_max_open_calls: int = config_key("kquorum.grpc.max.open.calls")
    kquorum_grpc_max_open_calls_per_client: int = config_key("kquorum.grpc.max.open.calls.per.client")
    kquorum_frame_timeout_ms: int = config_key("kquorum.frame.timeout.ms")
    kquorum_output_timeout_ms: int = config_key("kquorum.output.timeout.ms")
    kquorum_unanswered_request_timeout_ms: int = config_key("kquorum.unanswered.request.timeout.ms")
    kquorum_grpc_max_calls_per_second: int = config_key("kquorum.grpc.max.calls.per.second")
    # What the file says for single listeners: whole keys, with their values as text.
    listener_limits: tuple[tuple[str, str], ...] = ()

    def limit_of(self, listener_name: str, key: str) -> int:
        text = dict(self.listener_limits).get(f"{LISTENER_PREFIX}{listener_name.lower()}.{key}")
        return NO_LIMIT if text is None else int(text)


def is_listener_limit(key: str) -> bool:
    return _limit_key(key) is not None


def listener_of_limit(key: str) -> str:
    """In upper case."""
    return key.removeprefix(LISTENER_PREFIX).removesuffix(f".{_limit_key(key)}").upper()


def limit_problems(limits: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(key, message) for what is no limit, or is not in lower case."""
    for key, value in limits.items():
        if (message := case_problem(key)) is not None:
            yield key, message
        if not (value.isascii() and value.isdigit() and int(value) <= NO_LIMIT):
            yield key, f"{key} must be a number from 0 to {NO_LIMIT}"


def _limit_key(key: str) -> str | None:
    if not key.startswith(LISTENER_PREFIX):
        return None
    rest = key.removeprefix(LISTENER_PREFIX)
    return next((name for name in LISTENER_LIMITS if rest.endswith(f".{name}") and rest != f".{name}"), None)
