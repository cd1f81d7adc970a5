"""Configs of a topic (LogConfig and TopicConfig of Kafka 4.3, KIP-405 for tiered storage)."""

from metadata.configs.kinds import LONG_MAX, boolean, double, integer, long, names, string
from metadata.configs.validators import (
    at_least,
    between,
    between_or_default,
    list_of,
    one_of,
    throttled_replicas,
)

DEFINITIONS = (
    names(
        "cleanup.policy",
        "delete",
        "What becomes of old records: delete drops them in time, compact keeps each key's newest; none keeps all.",
        list_of("compact", "delete"),
    ),
    integer(
        "compression.gzip.level",
        -1,
        "How hard gzip compresses when the topic's compression is gzip; -1 is gzip's own default.",
        between_or_default(1, 9, -1),
    ),
    integer(
        "compression.lz4.level",
        9,
        "How hard lz4 compresses when the topic's compression is lz4.",
        between(1, 17),
    ),
    string(
        "compression.type",
        "producer",
        'In which codec the broker stores batches; "producer" leaves them as the producer sent them.',
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    ),
    integer(
        "compression.zstd.level",
        3,
        "How hard zstd compresses when the topic's compression is zstd.",
        between(-131072, 22),
    ),
    long(
        "delete.retention.ms",
        86_400_000,
        "How long a compacted topic keeps tombstones: within it a reader must have read on.",
        at_least(0),
    ),
    long(
        "file.delete.delay.ms",
        60_000,
        "How long a deleted segment's files stay on disk under another name.",
        at_least(0),
    ),
    long(
        "flush.messages",
        LONG_MAX,
        "After how many records the log is forced to disk; replication makes that needless in most clusters.",
        at_least(1),
    ),
    long("flush.ms", LONG_MAX, "After how long the log is forced to disk.", at_least(0)),
    names(
        "follower.replication.throttled.replicas",
        "",
        'Which replicas are throttled when they fetch: "*" or pairs of partition and broker.',
        throttled_replicas(),
    ),
    integer(
        "index.interval.bytes",
        4096,
        "How many bytes of records lie between two entries of the offset index.",
        at_least(0),
    ),
    integer(
        "internal.segment.bytes",
        None,
        "The segment size for Kafka's own tests, without a lower limit.",
        is_internal=True,
    ),
    names(
        "leader.replication.throttled.replicas",
        "",
        'Which replicas are throttled when they are fetched from: "*" or pairs of partition and broker.',
        throttled_replicas(),
    ),
    long(
        "local.retention.bytes",
        -2,
        "How much of a tiered partition stays on the broker's own disks; -2 takes retention.bytes.",
        at_least(-2),
    ),
    long(
        "local.retention.ms",
        -2,
        "How long tiered segments stay on the broker's own disks; -2 takes retention.ms.",
        at_least(-2),
    ),
    long(
        "max.compaction.lag.ms",
        LONG_MAX,
        "After how long at the latest a record becomes open to compaction.",
        at_least(1),
    ),
    integer(
        "max.message.bytes",
        1_048_588,
        "The largest batch, after compression, that the topic takes.",
        at_least(0),
    ),
    long(
        "message.timestamp.after.max.ms",
        3_600_000,
        "How far a record's timestamp may lie in the broker's future.",
        at_least(0),
    ),
    long(
        "message.timestamp.before.max.ms",
        LONG_MAX,
        "How far a record's timestamp may lie in the broker's past.",
        at_least(0),
    ),
    string(
        "message.timestamp.type",
        "CreateTime",
        "Whether records carry the time of their creation or that of their append.",
        one_of("CreateTime", "LogAppendTime"),
    ),
    double(
        "min.cleanable.dirty.ratio",
        "0.5",
        "From which share of not yet compacted bytes on the log is worth compacting.",
        between(0, 1),
    ),
    long(
        "min.compaction.lag.ms",
        0,
        "For how long at least a record stays as it is before compaction may take it.",
        at_least(0),
    ),
    integer(
        "min.insync.replicas", 1, "How many replicas must be in sync for a write with acks=all.", at_least(1)
    ),
    boolean("preallocate", False, "Whether a new segment's file is given its full size at once."),
    boolean(
        "remote.log.copy.disable",
        False,
        "Turns tiered data read-only: nothing more is copied to remote storage.",
    ),
    boolean(
        "remote.log.delete.on.disable",
        False,
        "Whether remote data is deleted when tiered storage is turned off for the topic.",
    ),
    boolean(
        "remote.storage.enable", False, "Whether the topic's closed segments are copied to remote storage."
    ),
    long("retention.bytes", -1, "How large a partition may grow before old segments go; -1 is no limit."),
    long(
        "retention.ms",
        604_800_000,
        'How long records are kept at most under the policy "delete"; -1 is no limit.',
        at_least(-1),
    ),
    integer(
        "segment.bytes",
        1_073_741_824,
        "The size at which a segment is closed and the next begun.",
        at_least(1048576),
    ),
    integer(
        "segment.index.bytes",
        10_485_760,
        "The size of a segment's offset index, given to it in advance.",
        at_least(4),
    ),
    long(
        "segment.jitter.ms",
        0,
        "By how much at random segments are closed early, so that not all are at once.",
        at_least(0),
    ),
    long(
        "segment.ms", 604_800_000, "After how long a segment is closed even if it is not full.", at_least(1)
    ),
    boolean(
        "unclean.leader.election.enable",
        False,
        "Whether a replica that is not in sync may lead as the last resort, at the price of lost records.",
    ),
)
