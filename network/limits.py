"""What one peer may cost a server. The defaults are Kafka's where Kafka has the key; docs/network.md tells the rest."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

NO_LIMIT = 2**31 - 1
# Of administrative requests and questions, above which they are refused (metadata.adapters.request_bounds).
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
    """Of one listener. Kafka's keys: `socket.request.max.bytes`, `connections.max.idle.ms`, and with the listener's
    prefix `max.connections` and `max.connection.creation.rate`."""

    max_request_bytes: int = 104_857_600
    # Of all arrays in a request together: one of a byte each costs some hundred bytes, and some microseconds.
    max_request_elements: int = 200_000
    # Where it is another number than that, by api key.
    max_elements_by_api: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    # Where a request of an api key may have fewer bytes than `max_request_bytes`.
    max_bytes_by_api: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    max_idle_ms: int = 600_000
    max_connections: int = NO_LIMIT
    # A connection whose descriptor has this number or a higher one is refused. The kernel gives the lowest that is
    # free, so this many files are open already, whichever listener or part of the process has opened them.
    max_open_files: int = NO_LIMIT
    max_connection_creation_rate: int = NO_LIMIT
    # A full listener takes a new connection in the place of the one that has been idle for longest, if that is at least
    # so long. None: it refuses the new one.
    evicts_after_idle_ms: int | None = None
    # Requests of one connection that wait for their reply; reading pauses above. Kafka's brokers allow one,
    # its clients send five, and a follower or broker here keeps several long polls open besides its other
    # requests.
    max_in_flight_requests: int = 256
    # Of an api key, where fewer may be without an answer: the next one waits, and what is behind it.
    max_in_flight_by_api: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    # Reading also pauses while this much output waits: for a peer that does not take it, or for an earlier reply.
    max_unsent_bytes: int = 4_194_304
    # A frame that was begun must be complete after this time, and a second more for each 256 KiB of it.
    frame_timeout_ms: int = 30_000
    # A peer that output waits for must take some of it within this time.
    write_timeout_ms: int = 30_000
    # A request that has no answer after this time is given up with its connection: a fault of ours.
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
    """Of the gRPC listener: the front's (network.http2_front), and what gRPC itself is to keep to. Kafka's keys:
    `connections.max.idle.ms`, and with the prefix `listener.name.grpc.` `max.connections` and
    `max.connection.creation.rate`; our own are `kquorum.grpc.max.calls.per.second`,
    `kquorum.grpc.max.open.calls` and `kquorum.grpc.max.open.calls.per.client`."""

    # Each has three descriptors: the client's, and both ends of the one to gRPC.
    max_connections: int = 2_000
    max_open_files: int = NO_LIMIT
    # A handshake of TLS takes the loop a millisecond, and one that has to show a certificate more.
    max_connection_creation_rate: int = 50
    # For TLS, and again for HTTP/2 up to the client's first SETTINGS.
    handshake_timeout_ms: int = 10_000
    # Without a call.
    max_idle_ms: int = 600_000
    # A peer that output waits for must take some of it within this time.
    write_timeout_ms: int = 30_000
    # Calls of one connection at a time; its client queues those above.
    max_concurrent_calls: int = 256
    # Of all connections; each takes some 25 KiB.
    max_open_streams: int = 4_096
    # New calls; those above wait. Ten other frames count as a call.
    max_calls_per_second: int = 1_000
    max_calls_per_second_of_connection: int = 500
    # Of those, how many may come at once after a pause: each takes the loop some 0.15 ms with TLS and ACLs.
    max_calls_at_once: int = 64
    # Of a client's message, before it is unpacked; answers may be longer. The loop reads it, and gRPC's own 4 MiB took
    # it 80 ms.
    max_message_bytes: int = 262_144
    # Calls under way of all connections together, and of a principal (an anonymous client: an address).
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
    """Of all listeners of a node together. Kafka's keys: `max.connections`, `max.connections.per.ip`,
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
    """Of what all connections of a node hold together: half-read frames, requests without an answer, and output which
    waits for its peer. Kafka's keys: `queued.max.request.bytes`, `queued.max.requests`.

    The guaranteed bytes and requests are those which a connection may hold however little room is left for all, so
    that a few peers with large requests do not keep the many with small ones waiting.
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
    """Counts since the start, for metrics; `open_connections`, `muted_connections` and `pending_requests` are the
    numbers of now. The four below `refused_connections` are its parts."""

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

    failed_tls_handshakes: int = 0
    successful_authentications: int = 0
    failed_authentications: int = 0
    unauthenticated_connections_closed: int = 0
    expired_authentications_closed: int = 0
