"""What a broker's data plane counts: records and bytes by topic (Kafka's BrokerTopicMetrics), and what waits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields


@dataclass(slots=True)
class TopicCounters:
    """Since the start. Requests are counted once for each partition in them, as Kafka does."""

    messages_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    produce_requests: int = 0
    fetch_requests: int = 0
    failed_produce_requests: int = 0
    failed_fetch_requests: int = 0

    def add(self, other: TopicCounters) -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


class TopicTraffic:
    """Made for each topic at its first record; those of deleted topics are in the sum alone."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicCounters] = {}
        self._of_no_topic = TopicCounters()
        self.replication_bytes_out = 0

    def of(self, topic: str) -> TopicCounters:
        """Of a topic with a partition on this broker."""
        counters = self._topics.get(topic)
        if counters is None:
            counters = self._topics[topic] = TopicCounters()
        return counters

    @property
    def of_unknown_topics(self) -> TopicCounters:
        """Clients may name any: these make no entry of their own."""
        return self._of_no_topic

    def by_topic(self, existing: Collection[str]) -> tuple[Mapping[str, TopicCounters], TopicCounters]:
        """The counters of the topics that exist, and the sum over all there ever were."""
        for topic in [each for each in self._topics if each not in existing]:
            self._of_no_topic.add(self._topics.pop(topic))
        total = TopicCounters()
        for counters in (self._of_no_topic, *self._topics.values()):
            total.add(counters)
        return self._topics, total


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFigures:
    """As of one moment. `waiting` and `expired` are by Kafka's name of the operation."""

    total: TopicCounters = field(default_factory=TopicCounters)
    topics: Mapping[str, TopicCounters] = field(default_factory=dict)
    replication_bytes_in: int = 0
    replication_bytes_out: int = 0
    waiting: Mapping[str, int] = field(default_factory=dict)
    expired: Mapping[str, int] = field(default_factory=dict)
    max_lag: int = 0
    failed_partitions: int = 0
    offline_replicas: int = 0
    under_min_isr: int = 0
    fetch_sessions: int = 0
    session_partitions: int = 0
    session_evictions: int = 0
    full_log_dirs: int = 0
