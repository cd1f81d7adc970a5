"""Configs of a client metrics subscription (KIP-714)."""

from kquorum.metadata.configs.definition import integer, names
from kquorum.metadata.configs.used_by import CLIENT_METRICS
from kquorum.metadata.configs.validators import list_of

DEFINITIONS = (
    integer(
        "interval.ms",
        300_000,
        "How often clients push their metrics, 100 ms to an hour.",
        used_by=CLIENT_METRICS,
    ),
    names(
        "match",
        "",
        "Which clients the subscription means: pairs of a client's property and a regular expression; none means all.",
        list_of(),
        used_by=CLIENT_METRICS,
    ),
    names(
        "metrics",
        "",
        'Which metrics are subscribed to: prefixes of their names, "*" for all; none turns the subscription off.',
        list_of(),
        used_by=CLIENT_METRICS,
    ),
)
