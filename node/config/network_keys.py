"""Kafka's keys of what clients may cost a node, and kquorum's own for slow peers; docs/network.md says what they do.

`max.connections` and `max.connection.creation.rate` may also be said for one listener, as
`listener.name.<listener in lower case>.<key>`, and hold beside what is said for all.
"""

import socket
from collections.abc import Iterator, Mapping
from typing import Annotated, NamedTuple

from pydantic import BaseModel, BeforeValidator, Field

from network.limits import ENTRIES_KEY, MOST_ENTRIES, NO_LIMIT, BudgetLimits, GrpcLimits, ServerLimits
from node.config.addresses import format_address
from node.config.security_keys import LISTENER_PREFIX, case_problem
from node.config.values import as_tuple
from wire.addresses import normal_address

CREATION_RATE = "max.connection.creation.rate"
LISTENER_LIMITS = ("max.connections", CREATION_RATE)

_DEFAULTS = ServerLimits()
_Positive = Annotated[int, Field(ge=1)]
_UpTo31Bits = Annotated[int, Field(ge=0, le=NO_LIMIT)]


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
    socket_request_max_bytes: _Positive = Field(_DEFAULTS.max_request_bytes, alias="socket.request.max.bytes")
    kquorum_request_max_elements: _Positive = Field(
        _DEFAULTS.max_request_elements, alias="kquorum.request.max.elements"
    )
    kquorum_request_max_entries: _Positive = Field(MOST_ENTRIES, alias=ENTRIES_KEY)
    connections_max_idle_ms: _Positive = Field(_DEFAULTS.max_idle_ms, alias="connections.max.idle.ms")
    max_connections: _UpTo31Bits = Field(NO_LIMIT, alias="max.connections")
    max_connections_per_ip: _UpTo31Bits = Field(NO_LIMIT, alias="max.connections.per.ip")
    max_connections_per_ip_overrides: Annotated[
        tuple[AddressLimit, ...], BeforeValidator(as_tuple(parse_address_limit))
    ] = Field((), alias="max.connections.per.ip.overrides")
    max_connection_creation_rate: _UpTo31Bits = Field(NO_LIMIT, alias="max.connection.creation.rate")
    queued_max_requests: _Positive = Field(BudgetLimits().max_requests, alias="queued.max.requests")
    # -1: kquorum's own bound, not none as in Kafka.
    queued_max_request_bytes: int = Field(-1, alias="queued.max.request.bytes", ge=-1)
    kquorum_frame_timeout_ms: _Positive = Field(_DEFAULTS.frame_timeout_ms, alias="kquorum.frame.timeout.ms")
    kquorum_output_timeout_ms: _Positive = Field(
        _DEFAULTS.write_timeout_ms, alias="kquorum.output.timeout.ms"
    )
    kquorum_unanswered_request_timeout_ms: _Positive = Field(
        _DEFAULTS.request_timeout_ms, alias="kquorum.unanswered.request.timeout.ms"
    )
    kquorum_grpc_max_calls_per_second: _Positive = Field(
        GrpcLimits().max_calls_per_second, alias="kquorum.grpc.max.calls.per.second"
    )
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
