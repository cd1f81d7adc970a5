"""Broker configs of share groups (KIP-932)."""

from metadata.configs.definition import Importance, Update
from metadata.configs.kinds import integer, names, short
from metadata.configs.validators import at_least, between, list_of

DEFINITIONS = (
    integer(
        "group.share.assignment.interval.ms",
        1000,
        "Default of the groups' share.assignment.interval.ms.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    names(
        "group.share.assignors",
        "simple",
        "The assignors of share groups, the default first.",
        list_of(may_be_empty=False),
    ),
    integer(
        "group.share.delivery.count.limit",
        5,
        "Default of the groups' share.delivery.count.limit.",
        between(2, 10),
    ),
    integer(
        "group.share.heartbeat.interval.ms",
        5000,
        "Default of the groups' share.heartbeat.interval.ms.",
        at_least(1),
    ),
    integer(
        "group.share.max.assignment.interval.ms",
        15_000,
        "The largest share.assignment.interval.ms that a group may have.",
        at_least(0),
    ),
    integer(
        "group.share.max.delivery.count.limit",
        10,
        "The largest share.delivery.count.limit that a group may have.",
        between(5, 25),
    ),
    integer(
        "group.share.max.heartbeat.interval.ms",
        15_000,
        "The largest share.heartbeat.interval.ms that a group may have.",
        at_least(1),
    ),
    integer(
        "group.share.max.partition.max.record.locks",
        4000,
        "The largest share.partition.max.record.locks that a group may have.",
        between(2000, 10000),
    ),
    integer(
        "group.share.max.record.lock.duration.ms",
        60_000,
        "The largest share.record.lock.duration.ms that a group may have.",
        between(30000, 3600000),
    ),
    integer(
        "group.share.max.session.timeout.ms",
        60_000,
        "The largest share.session.timeout.ms that a group may have.",
        at_least(1),
    ),
    integer(
        "group.share.max.share.sessions", 2000, "How many share sessions a broker remembers.", at_least(1)
    ),
    integer("group.share.max.size", 200, "How many members a share group may have.", between(1, 1000)),
    integer(
        "group.share.min.assignment.interval.ms",
        0,
        "The smallest share.assignment.interval.ms that a group may have.",
        at_least(0),
    ),
    integer(
        "group.share.min.delivery.count.limit",
        2,
        "The smallest share.delivery.count.limit that a group may have.",
        between(2, 5),
    ),
    integer(
        "group.share.min.heartbeat.interval.ms",
        5000,
        "The smallest share.heartbeat.interval.ms that a group may have.",
        at_least(1),
    ),
    integer(
        "group.share.min.partition.max.record.locks",
        100,
        "The smallest share.partition.max.record.locks that a group may have.",
        between(100, 2000),
    ),
    integer(
        "group.share.min.record.lock.duration.ms",
        15_000,
        "The smallest share.record.lock.duration.ms that a group may have.",
        between(1000, 30000),
    ),
    integer(
        "group.share.min.session.timeout.ms",
        45_000,
        "The smallest share.session.timeout.ms that a group may have.",
        at_least(1),
    ),
    integer(
        "group.share.partition.max.record.locks",
        2000,
        "Default of the groups' share.partition.max.record.locks.",
        between(100, 10000),
    ),
    integer(
        "group.share.record.lock.duration.ms",
        30_000,
        "Default of the groups' share.record.lock.duration.ms.",
        between(1000, 3600000),
    ),
    integer(
        "group.share.session.timeout.ms",
        45_000,
        "Default of the groups' share.session.timeout.ms.",
        at_least(1),
    ),
    integer(
        "share.coordinator.append.linger.ms",
        -1,
        "How long the share coordinator waits to write several changes together; -1 lets it decide.",
        at_least(-1),
    ),
    integer(
        "share.coordinator.cached.buffer.max.bytes",
        1_048_588,
        "How large a write buffer may be that the share coordinator keeps for the next write.",
        at_least(524288),
        update=Update.CLUSTER_WIDE,
    ),
    integer(
        "share.coordinator.load.buffer.size",
        5_242_880,
        "How much is read at once when share state is loaded.",
        at_least(1),
        importance=Importance.HIGH,
    ),
    integer(
        "share.coordinator.snapshot.update.records.per.snapshot",
        500,
        "How many updates of share state are written between two full ones.",
        between(0, 500),
    ),
    integer(
        "share.coordinator.state.topic.compression.codec",
        0,
        "The codec of the topic of share state, as a number.",
        importance=Importance.HIGH,
    ),
    short(
        "share.coordinator.state.topic.min.isr",
        2,
        "min.insync.replicas of the topic of share state.",
        at_least(1),
        importance=Importance.HIGH,
    ),
    integer(
        "share.coordinator.state.topic.num.partitions",
        50,
        "How many partitions the topic of share state has.",
        at_least(1),
        importance=Importance.HIGH,
    ),
    short(
        "share.coordinator.state.topic.replication.factor",
        3,
        "How many replicas the topic of share state has.",
        at_least(1),
        importance=Importance.HIGH,
    ),
    integer(
        "share.coordinator.state.topic.segment.bytes",
        104_857_600,
        "The segment size of the topic of share state.",
        at_least(1),
        importance=Importance.HIGH,
    ),
    integer("share.coordinator.threads", 1, "Threads of the share coordinator.", at_least(1)),
    integer(
        "share.coordinator.write.timeout.ms",
        5000,
        "How long a write of share state may wait for its replicas.",
        at_least(1),
        importance=Importance.HIGH,
    ),
    integer(
        "share.fetch.purgatory.purge.interval.requests",
        1000,
        "After how many finished share fetches the waiting ones are tidied up.",
    ),
)
