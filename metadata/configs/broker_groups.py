"""Broker configs of consumer groups and streams groups (KIP-848, KIP-1071)."""

from metadata.configs.definition import Update
from metadata.configs.kinds import INT_MAX, integer, names, string
from metadata.configs.validators import at_least, list_of, one_of_any_case

DEFINITIONS = (
    integer(
        "group.consumer.assignment.interval.ms",
        1000,
        "Default of the groups' consumer.assignment.interval.ms.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    names(
        "group.consumer.assignors",
        "uniform,range",
        "The assignors on the server side, the default first.",
        list_of(may_be_empty=False),
    ),
    integer(
        "group.consumer.heartbeat.interval.ms",
        5000,
        "Default of the groups' consumer.heartbeat.interval.ms.",
        at_least(1),
    ),
    integer(
        "group.consumer.max.assignment.interval.ms",
        15_000,
        "The largest consumer.assignment.interval.ms that a group may have.",
        at_least(0),
    ),
    integer(
        "group.consumer.max.heartbeat.interval.ms",
        15_000,
        "The largest consumer.heartbeat.interval.ms that a group may have.",
        at_least(1),
    ),
    integer(
        "group.consumer.max.session.timeout.ms",
        60_000,
        "The largest consumer.session.timeout.ms that a group may have.",
        at_least(1),
    ),
    integer("group.consumer.max.size", INT_MAX, "How many members a consumer group may have.", at_least(1)),
    string(
        "group.consumer.migration.policy",
        "bidirectional",
        "Whether groups may change between the classic and the consumer protocol.",
        one_of_any_case("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"),
    ),
    integer(
        "group.consumer.min.assignment.interval.ms",
        0,
        "The smallest consumer.assignment.interval.ms that a group may have.",
        at_least(0),
    ),
    integer(
        "group.consumer.min.heartbeat.interval.ms",
        5000,
        "The smallest consumer.heartbeat.interval.ms that a group may have.",
        at_least(1),
    ),
    integer(
        "group.consumer.min.session.timeout.ms",
        45_000,
        "The smallest consumer.session.timeout.ms that a group may have.",
        at_least(1),
    ),
    integer(
        "group.consumer.session.timeout.ms",
        45_000,
        "Default of the groups' consumer.session.timeout.ms.",
        at_least(1),
    ),
    integer(
        "group.streams.assignment.interval.ms",
        1000,
        "Default of the groups' streams.assignment.interval.ms.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    integer(
        "group.streams.heartbeat.interval.ms",
        5000,
        "Default of the groups' streams.heartbeat.interval.ms.",
        at_least(1),
    ),
    integer(
        "group.streams.initial.rebalance.delay.ms",
        3000,
        "Default of the groups' streams.initial.rebalance.delay.ms.",
        at_least(0),
    ),
    integer(
        "group.streams.max.assignment.interval.ms",
        15_000,
        "The largest streams.assignment.interval.ms that a group may have.",
        at_least(0),
    ),
    integer(
        "group.streams.max.heartbeat.interval.ms",
        15_000,
        "The largest streams.heartbeat.interval.ms that a group may have.",
        at_least(1),
    ),
    integer(
        "group.streams.max.session.timeout.ms",
        60_000,
        "The largest streams.session.timeout.ms that a group may have.",
        at_least(1),
    ),
    integer("group.streams.max.size", INT_MAX, "How many members a streams group may have.", at_least(1)),
    integer(
        "group.streams.max.standby.replicas",
        2,
        "The largest streams.num.standby.replicas that a group may have.",
        at_least(0),
    ),
    integer(
        "group.streams.min.assignment.interval.ms",
        0,
        "The smallest streams.assignment.interval.ms that a group may have.",
        at_least(0),
    ),
    integer(
        "group.streams.min.heartbeat.interval.ms",
        5000,
        "The smallest streams.heartbeat.interval.ms that a group may have.",
        at_least(1),
    ),
    integer(
        "group.streams.min.session.timeout.ms",
        45_000,
        "The smallest streams.session.timeout.ms that a group may have.",
        at_least(1),
    ),
    integer(
        "group.streams.num.standby.replicas",
        0,
        "Default of the groups' streams.num.standby.replicas.",
        at_least(0),
    ),
    integer(
        "group.streams.session.timeout.ms",
        45_000,
        "Default of the groups' streams.session.timeout.ms.",
        at_least(1),
    ),
)
