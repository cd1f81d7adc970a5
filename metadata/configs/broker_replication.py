"""Broker configs of replication, quotas and leaders."""

from metadata.configs.definition import Importance, Update
from metadata.configs.kinds import LONG_MAX, boolean, integer, klass, long, string
from metadata.configs.validators import at_least

DEFINITIONS = (
    integer(
        "alter.log.dirs.replication.quota.window.num",
        11,
        "How many windows the quota of moves between directories looks back.",
        at_least(1),
        importance=Importance.LOW,
    ),
    integer(
        "alter.log.dirs.replication.quota.window.size.seconds",
        1,
        "How long such a window is.",
        at_least(1),
        importance=Importance.LOW,
    ),
    boolean(
        "auto.leader.rebalance.enable",
        True,
        "Whether leadership goes back to preferred replicas by itself.",
        importance=Importance.HIGH,
    ),
    klass(
        "client.quota.callback.class",
        None,
        "A class that decides on the quotas of clients.",
        importance=Importance.LOW,
    ),
    integer(
        "controller.quota.window.num",
        11,
        "How many windows the quota of administrative changes looks back.",
        at_least(1),
        importance=Importance.LOW,
    ),
    integer(
        "controller.quota.window.size.seconds",
        1,
        "How long such a window is.",
        at_least(1),
        importance=Importance.LOW,
    ),
    integer(
        "delete.records.purgatory.purge.interval.requests",
        1,
        "After how many finished deletions of records the waiting ones are tidied up.",
    ),
    long(
        "follower.replication.throttled.rate",
        LONG_MAX,
        "How many bytes per second throttled followers on this broker may fetch.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    long(
        "leader.imbalance.check.interval.seconds",
        300,
        "How often it is looked whether leadership should go back to preferred replicas.",
        at_least(1),
        importance=Importance.HIGH,
    ),
    long(
        "leader.replication.throttled.rate",
        LONG_MAX,
        "How many bytes per second throttled replicas led by this broker may be sent.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    integer(
        "num.replica.fetchers",
        1,
        "Threads that fetch, for each broker fetched from.",
        at_least(1),
        importance=Importance.HIGH,
        update=Update.CLUSTER_WIDE,
    ),
    integer(
        "producer.id.expiration.ms",
        86_400_000,
        "How long a producer's state is kept after its last write.",
        at_least(1),
        importance=Importance.LOW,
        update=Update.CLUSTER_WIDE,
    ),
    integer(
        "producer.purgatory.purge.interval.requests",
        1000,
        "After how many finished writes the waiting ones are tidied up.",
    ),
    integer(
        "quota.window.num",
        11,
        "How many windows client quotas look back.",
        at_least(1),
        importance=Importance.LOW,
    ),
    integer(
        "quota.window.size.seconds", 1, "How long such a window is.", at_least(1), importance=Importance.LOW
    ),
    long(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG_MAX,
        "How many bytes per second may move between directories.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    integer("replica.fetch.backoff.ms", 1000, "How long a fetcher rests after an error.", at_least(0)),
    integer(
        "replica.fetch.max.bytes",
        1_048_576,
        "How many bytes of a partition a follower asks for at once.",
        at_least(0),
    ),
    integer(
        "replica.fetch.min.bytes",
        1,
        "From how many bytes on a follower's fetch is answered at once.",
        importance=Importance.HIGH,
    ),
    integer(
        "replica.fetch.response.max.bytes",
        10_485_760,
        "How many bytes a follower asks for at once in all.",
        at_least(0),
    ),
    integer(
        "replica.fetch.wait.max.ms",
        500,
        "How long a follower's fetch may wait for data.",
        importance=Importance.HIGH,
    ),
    long(
        "replica.high.watermark.checkpoint.interval.ms",
        5000,
        "How often high watermarks are noted on disk.",
        importance=Importance.HIGH,
    ),
    long(
        "replica.lag.time.max.ms",
        30_000,
        "After how long without catching up a follower falls out of the in-sync replicas.",
        importance=Importance.HIGH,
    ),
    string("replica.selector.class", None, "A class that chooses which replica a consumer reads from."),
    integer(
        "replica.socket.receive.buffer.bytes",
        65_536,
        "The receive buffer of a follower's connection.",
        importance=Importance.HIGH,
    ),
    integer(
        "replica.socket.timeout.ms",
        30_000,
        "How long a follower waits for an answer.",
        importance=Importance.HIGH,
    ),
    integer(
        "replication.quota.window.num",
        11,
        "How many windows the replication quota looks back.",
        at_least(1),
        importance=Importance.LOW,
    ),
    integer(
        "replication.quota.window.size.seconds",
        1,
        "How long such a window is.",
        at_least(1),
        importance=Importance.LOW,
    ),
)
