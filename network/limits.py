"""What one peer may cost a server. The defaults are Kafka's where Kafka has the key."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Kafka's keys: `socket.request.max.bytes`, `connections.max.idle.ms`, `max.connections`."""

    max_request_bytes: int = 104_857_600
    max_idle_ms: int = 600_000
    max_connections: int = 10_000
    # Requests of one connection that wait for their reply; reading pauses above. Kafka's brokers allow one,
    # its clients send five, and a follower or broker here keeps several long polls open besides its other
    # requests.
    max_in_flight_requests: int = 256
    # Reading also pauses while this much output waits: for a peer that does not take it, or for an earlier reply.
    max_unsent_bytes: int = 4_194_304
    # How long `stop` lets replies under way go out.
    drain_timeout_ms: int = 2_000

    def __post_init__(self) -> None:
        for name in ("max_request_bytes", "max_idle_ms", "max_connections", "max_in_flight_requests"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("max_unsent_bytes", "drain_timeout_ms"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must not be negative")


@dataclass(slots=True)
class ServerCounters:
    """Counts since the start, for metrics; `open_connections` is the number of now."""

    open_connections: int = 0
    accepted_connections: int = 0
    requests: int = 0
    refused_connections: int = 0
    bad_frames: int = 0
    unsupported_requests: int = 0
    unparsable_requests: int = 0
    failed_requests: int = 0
    idle_connections_closed: int = 0
