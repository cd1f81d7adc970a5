"""What is counted of the groups of a broker, for its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(slots=True)
class GroupCounters:
    """Since the broker's start."""

    offset_commits: int = 0
    offset_expirations: int = 0
    offset_deletions: int = 0
    completed_rebalances: int = 0
    """Classic groups whose leader assigned partitions."""
    consumer_rebalances: int = 0
    """Epochs that began in consumer groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFigures:
    """`partitions` of `__consumer_offsets` by the state of their shard. States are in the words of Kafka's answers."""

    counters: GroupCounters
    classic: Mapping[str, int]
    consumer: Mapping[str, int]
    offsets: int
    partitions: Mapping[str, int]
