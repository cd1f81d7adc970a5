"""Configs of a group (GroupConfig of Kafka 4.3: KIP-848 consumers, KIP-932 shares, KIP-1071 streams)."""

from metadata.configs.kinds import boolean, integer, string
from metadata.configs.validators import at_least, auto_offset_reset, one_of

DEFINITIONS = (
    integer(
        "consumer.assignment.interval.ms",
        1000,
        "At least how long lies between two assignments of a consumer group.",
        at_least(0),
    ),
    integer(
        "consumer.heartbeat.interval.ms",
        5000,
        "How often a consumer of the group tells that it lives.",
        at_least(1),
    ),
    integer(
        "consumer.session.timeout.ms",
        45_000,
        "After how long without a heartbeat a consumer is taken out of the group.",
        at_least(1),
    ),
    integer(
        "share.assignment.interval.ms",
        1000,
        "At least how long lies between two assignments of a share group.",
        at_least(0),
    ),
    string(
        "share.auto.offset.reset",
        "latest",
        "Where a share group begins: latest, earliest, or by_duration: with an ISO duration before now.",
        auto_offset_reset(),
    ),
    integer(
        "share.delivery.count.limit",
        5,
        "How often a record is handed out before it is given up.",
        at_least(2),
    ),
    integer(
        "share.heartbeat.interval.ms",
        5000,
        "How often a member of the share group tells that it lives.",
        at_least(1),
    ),
    string(
        "share.isolation.level",
        "read_uncommitted",
        "Whether members are given records of transactions that are not committed.",
        one_of("read_committed", "read_uncommitted"),
    ),
    integer(
        "share.partition.max.record.locks",
        2000,
        "How many records of a partition may be handed out and not yet acknowledged.",
        at_least(100),
    ),
    integer(
        "share.record.lock.duration.ms",
        30_000,
        "For how long a record handed out belongs to its reader.",
        at_least(1000),
    ),
    boolean("share.renew.acknowledge.enable", True, "Whether a reader may prolong its hold of a record."),
    integer(
        "share.session.timeout.ms",
        45_000,
        "After how long without a heartbeat a member is taken out of the share group.",
        at_least(1),
    ),
    integer(
        "streams.assignment.interval.ms",
        1000,
        "At least how long lies between two assignments of a streams group.",
        at_least(0),
    ),
    integer(
        "streams.heartbeat.interval.ms",
        5000,
        "How often a member of the streams group tells that it lives.",
        at_least(1),
    ),
    integer(
        "streams.initial.rebalance.delay.ms",
        3000,
        "How long a new streams group waits for more members before its first assignment.",
        at_least(0),
    ),
    integer(
        "streams.num.standby.replicas", 0, "How many standby copies each stateful task has.", at_least(0)
    ),
    integer(
        "streams.session.timeout.ms",
        45_000,
        "After how long without a heartbeat a member is taken out of the streams group.",
        at_least(1),
    ),
)
