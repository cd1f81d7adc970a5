"""Keys that Kafka once had and has no more, and what stands in their place."""

from collections.abc import Mapping
from dataclasses import dataclass

_ZOOKEEPER = "KRaft needs no ZooKeeper; take this key out"
_ENCODER = "KRaft stores the passwords of dynamic configs without an encoder; take this key out"


@dataclass(frozen=True, slots=True)
class RemovedKey:
    """`remedy` says what to do instead. A key that only tuned an older version `is_refused` not: it has no effect."""

    name: str
    version: str
    remedy: str
    is_refused: bool = True

    def __str__(self) -> str:
        return f"{self.remedy} (Kafka {self.version} removed it)"


REMOVED: Mapping[str, RemovedKey] = {
    key.name: key
    for key in (
        RemovedKey("advertised.host.name", "3.0", "advertised.listeners has host and port"),
        RemovedKey("advertised.port", "3.0", "advertised.listeners has host and port"),
        RemovedKey("host.name", "3.0", "listeners has host and port"),
        RemovedKey("port", "3.0", "listeners has host and port"),
        RemovedKey("quota.consumer.default", "3.0", "set a default quota: `kafka-configs --entity-default`"),
        RemovedKey("quota.producer.default", "3.0", "set a default quota: `kafka-configs --entity-default`"),
        RemovedKey(
            "auto.include.jmx.reporter",
            "4.0",
            "kquorum.metrics.listener serves the metrics; take this key out",
            is_refused=False,
        ),
        RemovedKey(
            "broker.id.generation.enable",
            "4.0",
            "KRaft assigns no ids; give every node its node.id",
        ),
        RemovedKey("reserved.broker.max.id", "4.0", "KRaft assigns no ids; give every node its node.id"),
        RemovedKey(
            "control.plane.listener.name",
            "4.0",
            "KRaft has no control plane listener; controllers have controller.listener.names",
        ),
        RemovedKey(
            "controlled.shutdown.max.retries",
            "4.0",
            "a KRaft broker asks until the controller lets it go; take this key out",
            is_refused=False,
        ),
        RemovedKey(
            "controlled.shutdown.retry.backoff.ms",
            "4.0",
            "a KRaft broker asks with its heartbeats; take this key out",
            is_refused=False,
        ),
        RemovedKey("delegation.token.master.key", "4.0", "use delegation.token.secret.key"),
        RemovedKey(
            "group.coordinator.new.enable",
            "4.0",
            "use group.coordinator.rebalance.protocols",
            is_refused=False,
        ),
        RemovedKey(
            "inter.broker.protocol.version",
            "4.0",
            "metadata.version takes its place: `kquorum features upgrade`",
            is_refused=False,
        ),
        RemovedKey(
            "leader.imbalance.per.broker.percentage",
            "4.0",
            "the controller moves every leadership that it can; take this key out",
            is_refused=False,
        ),
        RemovedKey(
            "log.message.downconversion.enable",
            "4.0",
            "Kafka 4 converts no batches; take this key out",
            is_refused=False,
        ),
        RemovedKey(
            "log.message.format.version",
            "4.0",
            "Kafka 4 writes one format of batches; take this key out",
            is_refused=False,
        ),
        RemovedKey(
            "log.message.timestamp.difference.max.ms",
            "4.0",
            "use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms",
        ),
        RemovedKey(
            "offsets.commit.required.acks",
            "4.0",
            "a commit waits for all in-sync replicas; take this key out",
            is_refused=False,
        ),
        RemovedKey("password.encoder.cipher.algorithm", "4.0", _ENCODER),
        RemovedKey("password.encoder.iterations", "4.0", _ENCODER),
        RemovedKey("password.encoder.key.length", "4.0", _ENCODER),
        RemovedKey("password.encoder.keyfactory.algorithm", "4.0", _ENCODER),
        RemovedKey("password.encoder.old.secret", "4.0", _ENCODER),
        RemovedKey("password.encoder.secret", "4.0", _ENCODER),
        RemovedKey(
            "unstable.metadata.versions.enable",
            "4.0",
            "unstable.feature.versions.enable takes its place, and has no effect here either",
            is_refused=False,
        ),
        RemovedKey("zookeeper.connect", "4.0", _ZOOKEEPER),
        RemovedKey("zookeeper.connection.timeout.ms", "4.0", _ZOOKEEPER),
        RemovedKey("zookeeper.max.in.flight.requests", "4.0", _ZOOKEEPER),
        RemovedKey(
            "zookeeper.metadata.migration.enable", "4.0", "migrating from ZooKeeper ended with Kafka 3.9"
        ),
        RemovedKey(
            "zookeeper.session.timeout.ms", "4.0", f"{_ZOOKEEPER}. Brokers have broker.session.timeout.ms"
        ),
        RemovedKey("zookeeper.set.acl", "4.0", _ZOOKEEPER),
    )
}


def removed_key(name: str) -> RemovedKey | None:
    """All of `zookeeper.*` is gone, listed or not."""
    if name not in REMOVED and name.startswith("zookeeper."):
        return RemovedKey(name, "4.0", _ZOOKEEPER)
    return REMOVED.get(name)
