"""Which keys there are: ours, Kafka's that have no effect here, and those which KRaft refuses."""

import difflib
from collections.abc import Iterable

# Kafka's server keys that a working server.properties may hold and that have no effect in a metadata quorum.
IGNORED_KEYS = frozenset(
    """
    auto.leader.rebalance.enable background.threads compression.type
    early.start.listeners
    fetch.max.bytes fetch.purgatory.purge.interval.requests group.coordinator.rebalance.protocols
    group.initial.rebalance.delay.ms group.max.session.timeout.ms group.max.size group.min.session.timeout.ms
    inter.broker.protocol.version leader.imbalance.check.interval.seconds leader.imbalance.per.broker.percentage
    log.cleaner.enable log.cleaner.threads log.cleanup.policy log.flush.interval.messages log.flush.interval.ms
    log.flush.scheduler.interval.ms log.message.timestamp.type log.retention.bytes
    log.retention.check.interval.ms log.retention.hours log.retention.minutes log.retention.ms log.roll.hours
    log.roll.ms log.segment.bytes log.segment.delete.delay.ms
    message.max.bytes metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms num.io.threads num.network.threads
    num.recovery.threads.per.data.dir num.replica.alter.log.dirs.threads num.replica.fetchers
    offset.metadata.max.bytes offsets.commit.timeout.ms offsets.retention.check.interval.ms
    offsets.retention.minutes offsets.topic.num.partitions offsets.topic.replication.factor
    offsets.topic.segment.bytes principal.builder.class producer.purgatory.purge.interval.requests
    quota.window.num quota.window.size.seconds replica.fetch.max.bytes
    replica.fetch.min.bytes replica.fetch.wait.max.ms replica.high.watermark.checkpoint.interval.ms
    replica.lag.time.max.ms replica.selector.class replica.socket.receive.buffer.bytes
    replica.socket.timeout.ms share.coordinator.state.topic.min.isr
    share.coordinator.state.topic.replication.factor socket.connection.setup.timeout.max.ms
    socket.connection.setup.timeout.ms socket.listen.backlog.size socket.receive.buffer.bytes
    socket.send.buffer.bytes transaction.max.timeout.ms
    transaction.state.log.min.isr transaction.state.log.num.partitions
    transaction.state.log.replication.factor transactional.id.expiration.ms
    security.inter.broker.protocol sasl.mechanism.inter.broker.protocol ssl.protocol ssl.provider
    ssl.secure.random.implementation unstable.api.versions.enable unstable.feature.versions.enable
    """.split()  # noqa: SIM905 - a paragraph of names reads better than a column of strings
)

# Key -> why it cannot be used.
REFUSED_KEYS = {
    "ssl.keystore.password": "a PEM file has no password of its own; that of its private key is ssl.key.password",
    "ssl.truststore.password": "a PEM file has no password of its own",
    "ssl.cipher.suites": "the ciphers are OpenSSL's own choice for TLS 1.2 and 1.3; take this key out",
    "control.plane.listener.name": "KRaft has no control plane listener; controllers have controller.listener.names",
    "zookeeper.connect": "KRaft needs no ZooKeeper; take this key out",
    "zookeeper.metadata.migration.enable": "migrating from ZooKeeper ended with Kafka 3.9",
}

# Said of brokers they are a mistake; in [defaults] they are said of the controllers among the nodes.
CONTROLLERS_ONLY = frozenset({"controller.quorum.auto.join.enable"})

# Other names for a key.
ALIASES = {"log.dir": "log.dirs"}


def nearest(name: str, known: Iterable[str]) -> str:
    """` (did you mean X?)` for the known name most like `name`, or nothing when none is."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" (did you mean {found[0]}?)" if found else ""
