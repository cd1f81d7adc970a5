"""Throttles of replication (KIP-73): how many bytes a second a broker may send to replicas that are being built, and
fetch for its own.

Sans-IO. Only the replicas that a topic's configs name are throttled, and never those that are in sync. A rate is looked
at before the next read, so one read may exceed it: a throttled replica gets on by that much at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from kquorum.broker.quota.rate import WindowedRate, Windows
from kquorum.metadata.configs.resolution import NodeConfigs
from kquorum.metadata.image.configs import TOPIC, ConfigResource
from kquorum.metadata.image.image import MetadataImage

_ALL: Final = "*"
# The controller takes any number of digits, as Kafka's; Python makes no number of some thousand.
_DIGITS_OF_AN_ID: Final = 10


class ReplicationThrottle:
    """One direction; implements `broker.replica.fetcher.ReplicationQuota`. Without a limit nothing is exceeded."""

    def __init__(self, broker_id: int, windows: Windows) -> None:
        self.limit = float("inf")
        """Bytes/s."""
        self._broker_id = broker_id
        self._rate = WindowedRate(windows)
        # By topic the partitions whose replica on this broker is throttled; None: all.
        self._replicas: dict[str, frozenset[int] | None] = {}

    def set_replicas(self, topic: str, text: str) -> None:
        """As the topic's config has them: nothing, "*", or pairs of partition and broker."""
        replicas = self._parsed(text)
        if replicas is None or replicas:
            self._replicas[topic] = replicas
        else:
            self._replicas.pop(topic, None)

    def _parsed(self, text: str) -> frozenset[int] | None:
        pairs = [pair.strip() for pair in text.split(",") if pair.strip()]
        if _ALL in pairs:
            return None
        split = [pair.partition(":") for pair in pairs]
        return frozenset(
            int(partition)
            for partition, _, broker in split
            if _is_id(partition) and _is_id(broker) and int(broker) == self._broker_id
        )

    def is_throttled(self, topic_partition: tuple[str, int]) -> bool:
        topic, partition = topic_partition
        if topic not in self._replicas:
            return False
        replicas = self._replicas[topic]
        return replicas is None or partition in replicas

    def is_exceeded(self, now_ms: int) -> bool:
        return self._rate.recent_per_second(now_ms) > self.limit

    def record(self, now_ms: int, size_bytes: int) -> None:
        self._rate.record(now_ms, size_bytes)

    def per_second(self, now_ms: int) -> float:
        return self._rate.recent_per_second(now_ms)


class ReplicationThrottles:
    """Of a broker: `leader` for what it sends, `follower` for what it fetches, `moves` for what it copies between its
    log directories, of all partitions."""

    def __init__(self, broker_id: int, windows: Windows, windows_of_moves: Windows | None = None) -> None:
        self.leader = ReplicationThrottle(broker_id, windows)
        self.follower = ReplicationThrottle(broker_id, windows)
        self.moves = ReplicationThrottle(broker_id, windows_of_moves or windows)

    def begin(self, image: MetadataImage, configs: NodeConfigs) -> None:
        self.change(image, image.configs.resources.keys(), configs)

    def change(self, image: MetadataImage, changed: Collection[ConfigResource], configs: NodeConfigs) -> None:
        """The configs of these resources are others than before; `configs` are the broker's."""
        self.leader.limit = configs.number("leader.replication.throttled.rate")
        self.follower.limit = configs.number("follower.replication.throttled.rate")
        self.moves.limit = configs.number("replica.alter.log.dirs.io.max.bytes.per.second")
        for resource in changed:
            if resource.type == TOPIC:
                values: Mapping[str, str] = image.configs.resources.get(resource, {})
                self.leader.set_replicas(
                    resource.name, values.get("leader.replication.throttled.replicas", "")
                )
                self.follower.set_replicas(
                    resource.name, values.get("follower.replication.throttled.replicas", "")
                )


def _is_id(text: str) -> bool:
    return text.isdecimal() and len(text) <= _DIGITS_OF_AN_ID
