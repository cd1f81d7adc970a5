"""The plan of the two days of `eventful_history`, whose report is the picture in docs/audit.md."""

from functools import partial
from operator import methodcaller
from pathlib import Path

from kquorum.wire.metadata_records.features import FeatureLevelRecord
from tests.support.spark.eventful_history import (
    BROKERS,
    HOUR,
    MINUTE,
    SECOND,
    TOPICS,
    EventfulCluster,
    Replicas,
    Step,
    write_log,
)

DAYS_MS = 48 * HOUR
Plan = list[tuple[int, Step]]
CREATED_AT, ROLLED_FROM, CRASHED_AT, REASSIGNED_AT = 10 * MINUTE, 9 * HOUR, 14 * HOUR, 20 * HOUR
QUORUM_LOST_AT = 26 * HOUR + 41 * MINUTE
QUORUM_BACK_AT = QUORUM_LOST_AT + 38 * MINUTE
RACKS_BACK_AT = QUORUM_BACK_AT + 95 * MINUTE
ELECTIONS_AT = (35 * HOUR, 35 * HOUR + 6 * MINUTE, 35 * HOUR + 9 * MINUTE)
FLAPS_FROM, FLAPS = 41 * HOUR, 9
REMOVED_AT = 38 * HOUR


def write_eventful_days(folder: Path) -> Path:
    """A metadata folder of node 2; some 9,000 records."""
    plan: Plan = [*_beginning(), *_rolling_restart(), *_crashes(), *_reassignment()]
    plan += [*_lost_quorum(), *_elections(), *_flapping()]
    plan.append((REMOVED_AT, methodcaller("removes", "refunds", "User:ci")))
    plan.append((REMOVED_AT + MINUTE, methodcaller("create", "refunds-v2", 96, "User:ci")))
    return write_log(folder, plan, [(QUORUM_LOST_AT, QUORUM_BACK_AT)], DAYS_MS)


def _beginning() -> Plan:
    plan: Plan = [
        (0, methodcaller("elect", 1)),
        (1, methodcaller("write", FeatureLevelRecord(name="metadata.version", feature_level=25))),
    ]
    for number, broker in enumerate(BROKERS):
        plan.append((MINUTE + number * SECOND, methodcaller("register", broker)))
        plan.append((2 * MINUTE + number * SECOND, methodcaller("serves", broker)))
    for number, (topic, partitions) in enumerate(TOPICS.items()):
        at_ms = CREATED_AT + number * 7 * SECOND
        plan.append((at_ms, methodcaller("create", topic, partitions, "User:platform")))
    for topic in ("orders", "payments"):
        plan.append(
            (
                CREATED_AT + 2 * MINUTE,
                methodcaller("configure", topic, "min.insync.replicas", "2", "User:platform"),
            )
        )
    return plan


def _returns(broker: int, at_ms: int) -> Plan:
    return [
        (at_ms, methodcaller("register", broker)),
        (at_ms + 20 * SECOND, methodcaller("serves", broker)),
        (at_ms + 4 * MINUTE, methodcaller("in_sync")),
    ]


def _rolling_restart() -> Plan:
    """One broker after the other, twelve minutes each, and the leaders back at their places at the end."""
    plan: Plan = []
    for number, broker in enumerate(BROKERS):
        at_ms = ROLLED_FROM + number * 14 * MINUTE
        plan.append((at_ms, methodcaller("shuts_down", broker)))
        plan.append((at_ms + 20 * SECOND, methodcaller("stops", broker)))
        plan += _returns(broker, at_ms + 4 * MINUTE)
    return [*plan, (ROLLED_FROM + 100 * MINUTE, methodcaller("prefers"))]


def _crashes() -> Plan:
    """Two brokers with partitions in common, one after the other; both are back after a while."""
    return [
        (CRASHED_AT, methodcaller("stops", 13)),
        (CRASHED_AT + 25 * MINUTE, methodcaller("stops", 15)),
        (CRASHED_AT + 26 * MINUTE, methodcaller("stops", 11)),
        *_returns(15, CRASHED_AT + 41 * MINUTE),
        *_returns(11, CRASHED_AT + 47 * MINUTE),
        *_returns(13, CRASHED_AT + 90 * MINUTE),
        (CRASHED_AT + 2 * HOUR, methodcaller("prefers")),
    ]


def _reassignment() -> Plan:
    """Off the first rack, six partitions at a time."""
    targets: Replicas = (14, 15, 16)

    def begin(cluster: EventfulCluster) -> None:
        cluster.reassigns("clicks", targets, "User:alice", "rack a is short of disks, OPS-2213")

    def finish(cluster: EventfulCluster, part: int) -> None:
        for each in [each for each in cluster.partitions if each.topic == "clicks"][part * 6 : part * 6 + 6]:
            cluster.reassigned(each, targets)

    ends: Plan = [
        (
            REASSIGNED_AT + (part + 1) * 13 * MINUTE,
            partial(finish, part=part),
        )
        for part in range(4)
    ]
    return [(REASSIGNED_AT, begin), *ends]


def _lost_quorum() -> Plan:
    """Two racks lose power, two controllers with them: first nothing is written, then half of the brokers is gone."""
    back = QUORUM_BACK_AT
    plan: Plan = [(back, methodcaller("elect", 3))]
    for number, broker in enumerate((15, 16, 13, 14)):
        plan.append((back + 9 * SECOND + number * SECOND, methodcaller("stops", broker)))
    # Broker 14 was the last in sync of what is on racks b and c alone; 15 is back long before it.
    plan += _returns(15, back + 66 * MINUTE)
    key = "unclean.leader.election.enable"
    plan.append(
        (back + 68 * MINUTE, methodcaller("configure", "clicks", key, "true", "User:oncall", "INC-881"))
    )
    plan.append((back + 68 * MINUTE + SECOND, methodcaller("unclean", "clicks", 15)))
    for number, broker in enumerate((13, 14, 16)):
        plan += _returns(broker, RACKS_BACK_AT + number * 3 * MINUTE)
    return [*plan, (RACKS_BACK_AT + HOUR, methodcaller("prefers"))]


def _elections() -> Plan:
    return [
        (at_ms, methodcaller("elect", controller))
        for at_ms, controller in zip(ELECTIONS_AT, (2, 3, 1), strict=True)
    ]


def _flapping() -> Plan:
    """A broker that cannot keep up its heartbeats."""
    plan: Plan = []
    for flap in range(FLAPS):
        at_ms = FLAPS_FROM + flap * 17 * MINUTE
        plan.append((at_ms, methodcaller("stops", 16)))
        plan.append((at_ms + 75 * SECOND, methodcaller("serves", 16)))
        plan.append((at_ms + 6 * MINUTE, methodcaller("in_sync")))
    return plan
