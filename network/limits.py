"""The limits that bound what one peer costs a server. docs/network.md describes each, with its config key.

A default is Kafka's where Kafka has the key. `node/network_limits.py` sets the limits from a node's config.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

NO_LIMIT = 2**31 - 1
# The most entries of an administrative request or question; one with more is refused
# (metadata.adapters.request_bounds).
ENTRIES_KEY = "kquorum.request.max.entries"
MOST_ENTRIES = 2_000

_AT_LEAST_ONE = (
    "max_request_bytes",
    "max_request_elements",
    "max_idle_ms",
    "max_in_flight_requests",
    "frame_timeout_ms",
    "write_timeout_ms",
    "request_timeout_ms",
)
_NOT_NEGATIVE = (
    "max_connections",
    "max_open_files",
    "max_connection_creation_rate",
    "max_unsent_bytes",
    "drain_timeout_ms",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """The limits of one listener. Kafka's keys: `socket.request.max.bytes`, `connections.max.idle.ms`, and with the
    listener's prefix `max.connections` and `max.connection.creation.rate`."""

    max_request_bytes: int = 104_857_600
    # The elements of all arrays in a request together: an element of one byte on the wire takes about a hundred bytes
    # of memory and some microseconds.
    max_request_elements: int = 200_000
    # By api key, for the APIs with another limit than `max_request_elements`.
    max_elements_by_api: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    # By api key, for the APIs with a lower limit than `max_request_bytes`.
    max_bytes_by_api: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    max_idle_ms: int = 600_000
    max_connections: int = NO_LIMIT
    # A connection whose descriptor has this number or a higher one is refused. The kernel gives the lowest that is
    # free, so this many files are open already, whichever listener or part of the process has opened them.
    max_open_files: int = NO_LIMIT
    max_connection_creation_rate: int = NO_LIMIT
    # A full listener closes the connection that has been idle for longest, if it has been idle for at least this time,
    # and accepts the new one in its place. None: it refuses the new one.
    evicts_after_idle_ms: int | None = None
    # Requests of one connection that wait for their reply; reading pauses above. Kafka's brokers allow one,
    # its clients send five, and a follower or broker here keeps several long polls open besides its other
    # requests.
    max_in_flight_requests: int = 256
    # By api key, for the APIs with a lower limit than `max_in_flight_requests`: the next request of such an API waits,
    # and so do the requests behind it.
    max_in_flight_by_api: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    # Reading also pauses while this much output waits for a peer that does not read it, or for an earlier reply.
    max_unsent_bytes: int = 4_194_304
    # `kquorum.frame.timeout.ms`: a frame that was begun must be complete after this time, and a second more for each
    # 256 KiB of it.
    frame_timeout_ms: int = 30_000
    # `kquorum.output.timeout.ms`: a peer must read, within this time, 64 KiB of the output that waits for it, or all of
    # it if that is less (network.output). Otherwise its connection is closed.
    write_timeout_ms: int = 30_000
    # `kquorum.unanswered.request.timeout.ms`: a connection is closed if a request on it has no answer after this time.
    # The fault is then the node's.
    request_timeout_ms: int = 300_000
    # How long `stop` lets replies under way go out.
    drain_timeout_ms: int = 2_000

    def __post_init__(self) -> None:
        _check_least(self, _AT_LEAST_ONE, 1)
        _check_least(self, _NOT_NEGATIVE, 0)

    def max_elements(self, api_key: int) -> int:
        return self.max_elements_by_api.get(api_key, self.max_request_elements)

    def max_bytes(self, api_key: int) -> int:
        return min(self.max_bytes_by_api.get(api_key, self.max_request_bytes), self.max_request_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcLimits:
    """The limits of the gRPC listener: the front (network.http2_front) enforces most, gRPC itself the others. Kafka's
    keys: `connections.max.idle.ms`, and with the prefix `listener.name.grpc.` `max.connections` and
    `max.connection.creation.rate`; our own are `kquorum.grpc.max.calls.per.second`,
    `kquorum.grpc.max.open.calls` and `kquorum.grpc.max.open.calls.per.client`."""

    # Each connection takes three descriptors: the client's, and both ends of the connection between front and gRPC.
    max_connections: int = 2_000
    max_open_files: int = NO_LIMIT
    # A TLS handshake takes the event loop a millisecond, and longer if the client shows a certificate.
    max_connection_creation_rate: int = 50
    # The time for TLS, and again for HTTP/2 up to the client's first SETTINGS.
    handshake_timeout_ms: int = 10_000
    # How long a connection may be without a call.
    max_idle_ms: int = 600_000
    # As `ServerLimits.write_timeout_ms`.
    write_timeout_ms: int = 30_000
    # Calls of one connection at a time; its client queues the others.
    max_concurrent_calls: int = 256
    # Streams of all connections together; each takes about 25 KiB.
    max_open_streams: int = 4_096
    # New calls; the others wait. Ten frames of other kinds count as a call.
    max_calls_per_second: int = 1_000
    max_calls_per_second_of_connection: int = 500
    # How many new calls may come at once after a pause: each takes the loop about 0.15 ms with TLS and ACLs.
    max_calls_at_once: int = 64
    # The size of a client's message before it is unpacked; answers may be longer. The event loop reads the message, and
    # one of gRPC's own limit of 4 MiB took it 80 ms.
    max_message_bytes: int = 262_144
    # Calls under way: of all connections together, and of one principal (of one address for anonymous clients).
    max_open_calls: int = 1_000
    max_open_calls_per_client: int = 200

    def __post_init__(self) -> None:
        at_least_one = (
            "handshake_timeout_ms",
            "max_idle_ms",
            "write_timeout_ms",
            "max_concurrent_calls",
            "max_open_streams",
            "max_open_calls",
            "max_open_calls_per_client",
            "max_calls_per_second",
            "max_calls_per_second_of_connection",
            "max_calls_at_once",
            "max_message_bytes",
        )
        _check_least(self, at_least_one, 1)
        _check_least(self, ("max_connections", "max_open_files", "max_connection_creation_rate"), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """The limits of all listeners of a node together. Kafka's keys: `max.connections`, `max.connections.per.ip`,
    `max.connections.per.ip.overrides` (by address, as `normal_address` writes it), `max.connection.creation.rate`."""

    max_connections: int = NO_LIMIT
    max_connections_per_address: int = NO_LIMIT
    overrides: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    max_connection_creation_rate: int = NO_LIMIT

    def __post_init__(self) -> None:
        names = ("max_connections", "max_connections_per_address", "max_connection_creation_rate")
        _check_least(self, names, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLimits:
    """The limits of what all connections of a node hold together: half-read frames, requests without an answer, and
    output that waits for its peer. Kafka's keys: `queued.max.request.bytes`, `queued.max.requests`.

    A connection may always hold the guaranteed bytes and requests, however little room is left. So a few peers with
    large requests do not keep the many with small ones waiting.
    """

    max_bytes: int = 268_435_456
    max_requests: int = 500
    guaranteed_bytes: int = 65_536
    guaranteed_requests: int = 16

    def __post_init__(self) -> None:
        _check_least(self, ("max_bytes", "max_requests", "guaranteed_requests"), 1)
        _check_least(self, ("guaranteed_bytes",), 0)


def _check_least(limits: object, names: tuple[str, ...], least: int) -> None:
    """Raises ValueError."""
    for name in names:
        if (value := getattr(limits, name)) < least:
            rule = "must not be negative" if least == 0 else f"must be at least {least}"
            raise ValueError(f"{name} is {value}; it {rule}")


@dataclass(slots=True)
class ServerCounters:
    """Counts since the start, for metrics; `open_connections`, `muted_connections`, `throttled_connections` and
    `pending_requests` are current numbers. `refused_connections` is the sum of the four counters below it."""

    open_connections: int = 0
    accepted_connections: int = 0
    refused_connections: int = 0
    refused_over_node_limit: int = 0
    refused_over_listener_limit: int = 0
    refused_over_address_limit: int = 0
    refused_over_creation_rate: int = 0
    delayed_connections: int = 0

    requests: int = 0
    pending_requests: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0
    bad_frames: int = 0
    unsupported_requests: int = 0
    unparsable_requests: int = 0
    failed_requests: int = 0

    idle_connections_closed: int = 0
    unfinished_frames_closed: int = 0
    slow_readers_closed: int = 0
    unanswered_requests_closed: int = 0
    # Connections that were not read from for want of room in the node's budget: now, and how often it began.
    muted_connections: int = 0
    mutings: int = 0
    # Connections that were not read from because of a quota: now, and how often it began.
    throttled_connections: int = 0
    throttles: int = 0

    failed_tls_handshakes: int = 0
    successful_authentications: int = 0
    failed_authentications: int = 0
    unauthenticated_connections_closed: int = 0
    expired_authentications_closed: int = 0
