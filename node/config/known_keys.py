"""Which keys there are beside the fields of the config: Kafka's that are read as text, those that have no effect
here, and those which KRaft refuses. tests/unit/node/config/test_keys_in_effect.py holds them to what the code reads."""

import difflib
from collections.abc import Iterable

# Kafka's server keys that are looked up by name, and so count as they stand in the file: a broker makes Kafka's own
# topics by them, and they are defaults and limits of topics' and groups' configs.
READ_AS_TEXT = frozenset(
    """
    compression.gzip.level compression.lz4.level compression.type compression.zstd.level
    group.consumer.assignment.interval.ms group.consumer.heartbeat.interval.ms
    group.consumer.max.assignment.interval.ms group.consumer.max.heartbeat.interval.ms
    group.consumer.max.session.timeout.ms group.consumer.min.assignment.interval.ms
    group.consumer.min.heartbeat.interval.ms group.consumer.min.session.timeout.ms
    group.consumer.session.timeout.ms group.share.assignment.interval.ms group.share.delivery.count.limit
    group.share.heartbeat.interval.ms group.share.max.assignment.interval.ms
    group.share.max.delivery.count.limit group.share.max.heartbeat.interval.ms
    group.share.max.partition.max.record.locks group.share.max.record.lock.duration.ms
    group.share.max.session.timeout.ms group.share.min.assignment.interval.ms
    group.share.min.delivery.count.limit group.share.min.heartbeat.interval.ms
    group.share.min.partition.max.record.locks group.share.min.record.lock.duration.ms
    group.share.min.session.timeout.ms group.share.partition.max.record.locks
    group.share.record.lock.duration.ms group.share.session.timeout.ms group.streams.assignment.interval.ms
    group.streams.heartbeat.interval.ms group.streams.initial.rebalance.delay.ms
    group.streams.max.assignment.interval.ms group.streams.max.heartbeat.interval.ms
    group.streams.max.session.timeout.ms group.streams.max.standby.replicas
    group.streams.min.assignment.interval.ms group.streams.min.heartbeat.interval.ms
    group.streams.min.session.timeout.ms group.streams.num.standby.replicas group.streams.session.timeout.ms
    log.cleaner.delete.retention.ms log.cleaner.max.compaction.lag.ms log.cleaner.min.cleanable.ratio
    log.cleaner.min.compaction.lag.ms log.cleanup.policy log.flush.interval.messages log.flush.interval.ms
    log.flush.scheduler.interval.ms log.index.interval.bytes log.index.size.max.bytes
    log.local.retention.bytes log.local.retention.ms log.message.timestamp.after.max.ms
    log.message.timestamp.before.max.ms log.message.timestamp.type log.preallocate log.retention.bytes
    log.retention.hours log.retention.minutes log.retention.ms log.roll.hours log.roll.jitter.hours
    log.roll.jitter.ms log.roll.ms log.segment.bytes log.segment.delete.delay.ms message.max.bytes
    offsets.topic.num.partitions offsets.topic.replication.factor offsets.topic.segment.bytes
    remote.log.storage.system.enable share.coordinator.state.topic.min.isr
    share.coordinator.state.topic.num.partitions share.coordinator.state.topic.replication.factor
    share.coordinator.state.topic.segment.bytes transaction.state.log.min.isr
    transaction.state.log.num.partitions transaction.state.log.replication.factor
    transaction.state.log.segment.bytes
    """.split()  # noqa: SIM905 - a paragraph of names reads better than a column of strings
)

# Those that a working server.properties may hold and that have no effect in a metadata quorum.
IGNORED_KEYS = frozenset(
    """
    background.threads controller.quorum.append.linger.ms early.start.listeners fetch.max.bytes
    fetch.purgatory.purge.interval.requests group.coordinator.rebalance.protocols
    group.initial.rebalance.delay.ms group.max.session.timeout.ms group.max.size group.min.session.timeout.ms
    inter.broker.protocol.version leader.imbalance.per.broker.percentage log.cleaner.enable
    log.cleaner.threads log.retention.check.interval.ms metric.reporters metrics.num.samples
    metrics.recording.level metrics.sample.window.ms num.io.threads num.network.threads
    num.recovery.threads.per.data.dir num.replica.alter.log.dirs.threads num.replica.fetchers
    offset.metadata.max.bytes offsets.commit.timeout.ms offsets.retention.check.interval.ms
    offsets.retention.minutes principal.builder.class producer.purgatory.purge.interval.requests
    quota.window.num quota.window.size.seconds replica.fetch.max.bytes replica.fetch.min.bytes
    replica.fetch.wait.max.ms replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms
    replica.selector.class replica.socket.receive.buffer.bytes replica.socket.timeout.ms
    sasl.mechanism.inter.broker.protocol security.inter.broker.protocol socket.connection.setup.timeout.max.ms
    socket.connection.setup.timeout.ms socket.listen.backlog.size socket.receive.buffer.bytes
    socket.send.buffer.bytes ssl.protocol ssl.provider ssl.secure.random.implementation
    transaction.max.timeout.ms transactional.id.expiration.ms unstable.api.versions.enable
    unstable.feature.versions.enable
    """.split()  # noqa: SIM905
)

# Key -> why it cannot be used.
REFUSED_KEYS = {
    "ssl.keystore.password": "a PEM file has no password of its own; that of its private key is ssl.key.password",
    "ssl.truststore.password": "a PEM file has no password of its own",
    "ssl.cipher.suites": "the suites are fixed: in TLS 1.2 those with AEAD and ECDHE; take this key out",
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
