"""Which configs a topic may have, and what their values may be (Kafka 4.x, LogConfig and TopicConfig).

A real broker that replays this log would trip over a name or value that it does not know, so nothing else may be
written. The full definitions (defaults, importance, documentation) are not here yet.
"""

from collections.abc import Callable, Mapping

from kio.schema.errors import ErrorCode

from metadata.controller.requests import ApiError

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

# Answers what is wrong with a value, or nothing.
Validator = Callable[[str], str | None]


def _number(kind: str, low: int, high: int) -> Validator:
    def check(value: str) -> str | None:
        try:
            number = int(value.strip())
        except ValueError:
            return f"Not a number of type {kind}"
        if number < low:
            return f"Value must be at least {low}"
        return None if number <= high else f"Value must be no more than {high}"

    return check


def _int(low: int, high: int = INT_MAX) -> Validator:
    return _number("INT", low, high)


def _long(low: int) -> Validator:
    return _number("LONG", low, LONG_MAX)


def _boolean(value: str) -> str | None:
    return None if value.strip().lower() in ("true", "false") else "Expected value to be either true or false"


def _ratio(value: str) -> str | None:
    try:
        return None if 0 <= float(value) <= 1 else "Value must be between 0 and 1"
    except ValueError:
        return "Not a number of type DOUBLE"


def _one_of(*allowed: str) -> Validator:
    return lambda value: None if value in allowed else f"String must be one of: {', '.join(allowed)}"


def _list_of(*allowed: str) -> Validator:
    def check(value: str) -> str | None:
        items = [item.strip() for item in value.split(",") if item.strip()]
        wrong = [item for item in items if item not in allowed]
        return f"String must be one of: {', '.join(allowed)}" if wrong else None

    return check


def _throttled_replicas(value: str) -> str | None:
    """`*`, nothing, or `partition:broker` pairs."""
    pairs = [item.strip() for item in value.split(",") if item.strip()]
    if pairs == ["*"] or all(_is_pair(pair) for pair in pairs):
        return None
    return "must be the literal '*' or a list of replicas in the form [partitionId]:[brokerId],..."


def _is_pair(text: str) -> bool:
    return [part.isdecimal() for part in text.split(":")] == [True, True]


TOPIC_CONFIGS: Mapping[str, Validator] = {
    "cleanup.policy": _list_of("compact", "delete"),
    "compression.gzip.level": lambda value: None if value == "-1" else _int(1, 9)(value),
    "compression.lz4.level": _int(1, 17),
    "compression.type": _one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    "compression.zstd.level": _int(-131072, 22),
    "delete.retention.ms": _long(0),
    "file.delete.delay.ms": _long(0),
    "flush.messages": _long(1),
    "flush.ms": _long(0),
    "follower.replication.throttled.replicas": _throttled_replicas,
    "index.interval.bytes": _int(0),
    "leader.replication.throttled.replicas": _throttled_replicas,
    "local.retention.bytes": _long(-2),
    "local.retention.ms": _long(-2),
    "max.compaction.lag.ms": _long(1),
    "max.message.bytes": _int(0),
    "message.timestamp.after.max.ms": _long(0),
    "message.timestamp.before.max.ms": _long(0),
    "message.timestamp.type": _one_of("CreateTime", "LogAppendTime"),
    "min.cleanable.dirty.ratio": _ratio,
    "min.compaction.lag.ms": _long(0),
    "min.insync.replicas": _int(1),
    "preallocate": _boolean,
    "remote.log.copy.disable": _boolean,
    "remote.log.delete.on.disable": _boolean,
    "remote.storage.enable": _boolean,
    "retention.bytes": _long(-(2**63)),
    "retention.ms": _long(-1),
    "segment.bytes": _int(14),
    "segment.index.bytes": _int(4),
    "segment.jitter.ms": _long(0),
    "segment.ms": _long(1),
    "unclean.leader.election.enable": _boolean,
}


def check_topic_config(name: str, value: str) -> None:
    """Raises ApiError INVALID_CONFIG with the words that Kafka uses."""
    validator = TOPIC_CONFIGS.get(name)
    if validator is None:
        raise ApiError(ErrorCode.invalid_config, f"Unknown topic config name: {name}")
    problem = validator(value)
    if problem is not None:
        reason = f"Invalid value {value} for configuration {name}: {problem}"
        raise ApiError(ErrorCode.invalid_config, reason)
