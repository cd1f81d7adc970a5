"""Broker configs of the log cleaner and of tiered storage."""

from metadata.configs.definition import Importance, Update
from metadata.configs.kinds import LONG_MAX, boolean, double, integer, long
from metadata.configs.validators import at_least, between

DEFINITIONS = (
    long(
        "log.cleaner.backoff.ms",
        15_000,
        "How long the cleaner rests when there is nothing to clean.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    long(
        "log.cleaner.dedupe.buffer.size",
        134_217_728,
        "Memory of all cleaner threads together for finding the newest record of each key.",
        update=Update.CLUSTER_WIDE,
    ),
    long(
        "log.cleaner.delete.retention.ms",
        86_400_000,
        "Default of the topics' delete.retention.ms.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    boolean(
        "log.cleaner.enable", True, "Whether the cleaner runs; compacted topics grow for ever without it."
    ),
    double(
        "log.cleaner.io.buffer.load.factor",
        "0.9",
        "How full the deduplication buffer may get.",
        update=Update.CLUSTER_WIDE,
    ),
    integer(
        "log.cleaner.io.buffer.size",
        524_288,
        "Memory of all cleaner threads together for reading and writing.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    double(
        "log.cleaner.io.max.bytes.per.second",
        "1.7976931348623157E308",
        "How much the cleaner may read and write per second.",
        update=Update.CLUSTER_WIDE,
    ),
    long(
        "log.cleaner.max.compaction.lag.ms",
        LONG_MAX,
        "Default of the topics' max.compaction.lag.ms.",
        at_least(1),
        update=Update.CLUSTER_WIDE,
    ),
    double(
        "log.cleaner.min.cleanable.ratio",
        "0.5",
        "Default of the topics' min.cleanable.dirty.ratio.",
        between(0, 1),
        update=Update.CLUSTER_WIDE,
    ),
    long(
        "log.cleaner.min.compaction.lag.ms",
        0,
        "Default of the topics' min.compaction.lag.ms.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    ),
    integer("log.cleaner.threads", 1, "How many threads clean.", at_least(0), update=Update.CLUSTER_WIDE),
    boolean(
        "follower.fetch.last.tiered.offset.enable",
        False,
        "Whether an empty follower of a tiered topic begins where remote storage ends.",
        update=Update.CLUSTER_WIDE,
    ),
    integer(
        "remote.fetch.max.wait.ms",
        500,
        "How long a broker waits for data from remote storage before it answers a fetch.",
        at_least(1),
        update=Update.CLUSTER_WIDE,
    ),
    long(
        "remote.list.offsets.request.timeout.ms",
        30_000,
        "How long a broker waits for offsets from remote storage before it answers.",
        at_least(1),
        update=Update.CLUSTER_WIDE,
    ),
    long(
        "remote.log.index.file.cache.total.size.bytes",
        1_073_741_824,
        "Disk space for indexes fetched from remote storage.",
        at_least(1),
        importance=Importance.LOW,
        update=Update.CLUSTER_WIDE,
    ),
    integer(
        "remote.log.manager.copier.thread.pool.size",
        10,
        "Threads that copy segments to remote storage.",
        at_least(1),
        update=Update.CLUSTER_WIDE,
    ),
    long(
        "remote.log.manager.copy.max.bytes.per.second",
        LONG_MAX,
        "How much may be copied to remote storage per second.",
        at_least(1),
        update=Update.CLUSTER_WIDE,
    ),
    integer(
        "remote.log.manager.expiration.thread.pool.size",
        10,
        "Threads that delete expired segments in remote storage.",
        at_least(1),
        update=Update.CLUSTER_WIDE,
    ),
    long(
        "remote.log.manager.fetch.max.bytes.per.second",
        LONG_MAX,
        "How much may be read from remote storage per second.",
        at_least(1),
        update=Update.CLUSTER_WIDE,
    ),
    integer(
        "remote.log.manager.follower.thread.pool.size",
        2,
        "Threads that follow tiered partitions led elsewhere.",
        at_least(1),
        update=Update.CLUSTER_WIDE,
    ),
    integer(
        "remote.log.reader.max.pending.tasks",
        100,
        "How many reads of remote storage may wait; beyond, fetches are refused.",
        at_least(1),
    ),
    integer(
        "remote.log.reader.threads",
        10,
        "Threads that read from remote storage.",
        at_least(1),
        update=Update.CLUSTER_WIDE,
    ),
    boolean(
        "remote.log.storage.system.enable",
        False,
        "Whether tiered storage is on in the cluster; topics may use it only then.",
    ),
)
