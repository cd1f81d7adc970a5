"""The counters of a node's listeners as Prometheus families, each with a label for the listener."""

from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

SOCKETS: Final = "kafka_server_socket_server_metrics_"

# Field of ServerCounters -> Kafka's name and what it says; the names of counters are without their "_total".
_GAUGES: Final = {
    "open_connections": (f"{SOCKETS}connection_count", "Open connections"),
    "idle_connections_closed": (
        f"{SOCKETS}expired_connections_killed_count",
        "Connections closed for want of use (connections.max.idle.ms)",
    ),
    "pending_requests": ("kafka_network_requestchannel_requestqueuesize", "Requests without an answer yet"),
    "muted_connections": (
        "kquorum_network_muted_connections",
        "Connections not read from for want of memory, or at gRPC's rate of calls",
    ),
    "throttled_connections": (
        "kquorum_network_throttled_connections",
        "Connections not read from because their clients exceeded a quota",
    ),
}
_COUNTERS: Final = {
    "accepted_connections": (f"{SOCKETS}connection_creation", "Accepted connections"),
    "received_bytes": (f"{SOCKETS}incoming_byte", "Bytes received"),
    "sent_bytes": (f"{SOCKETS}outgoing_byte", "Bytes sent"),
    "requests": ("kafka_network_requestmetrics_requests", "Requests, of all kinds"),
    "failed_requests": (
        "kafka_network_requestmetrics_errors",
        "Requests that failed through a fault of this node",
    ),
    "successful_authentications": (f"{SOCKETS}successful_authentication", "Clients let in by TLS or SASL"),
    "failed_authentications": (f"{SOCKETS}failed_authentication", "Clients refused by TLS or SASL"),
}


def listener_families(listeners: Mapping[str, Mapping[str, int]]) -> Iterator[Metric]:
    """`listeners`: of each listener the fields of network.limits.ServerCounters; those that Kafka has no name for are
    counters under our own."""
    names = dict.fromkeys(name for counters in listeners.values() for name in counters)
    for name in names:
        family = _family(name)
        for listener, counters in listeners.items():
            if name in counters:
                family.add_metric([listener], counters[name])
        yield family


def _family(field: str) -> GaugeMetricFamily | CounterMetricFamily:
    if field in _GAUGES:
        name, words = _GAUGES[field]
        return GaugeMetricFamily(name, words, labels=["listener"])
    name, words = _COUNTERS.get(field, (f"kquorum_network_{field}", field.replace("_", " ").capitalize()))
    return CounterMetricFamily(name, words, labels=["listener"])
