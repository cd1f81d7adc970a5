"""The configs of a topic that its logs obey, as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from kquorum.broker.log.validation import ValidationRules
from kquorum.wire.data_batch import CompressionCodec

_NEVER: Final = 2**63 - 1
COMPACT: Final = "compact"
DELETE: Final = "delete"
_CODECS: Final[Mapping[str, CompressionCodec | None]] = {
    "producer": None,
    "uncompressed": CompressionCodec.NONE,
    "gzip": CompressionCodec.GZIP,
    "snappy": CompressionCodec.SNAPPY,
    "lz4": CompressionCodec.LZ4,
    "zstd": CompressionCodec.ZSTD,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Each field is the topic config of its name, with dots for underscores; the defaults are Kafka's."""

    segment_bytes: int = 1024**3
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024**2
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * 24 * 3600 * 1000
    retention_bytes: int = -1
    cleanup_policy: frozenset[str] = frozenset((DELETE,))
    flush_messages: int = _NEVER
    flush_ms: int = _NEVER
    file_delete_delay_ms: int = 60_000
    max_message_bytes: int = 1_048_588
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = _NEVER
    message_timestamp_after_max_ms: int = 3_600_000
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = 24 * 3600 * 1000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = _NEVER
    min_cleanable_dirty_ratio: float = 0.5

    @property
    def is_compacted(self) -> bool:
        return COMPACT in self.cleanup_policy

    @property
    def roll_after_ms(self) -> int:
        """How old a segment grows: a compacted one not older than it may stay uncleaned (KIP-354)."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms


def validation_rules(config: LogConfig) -> ValidationRules:
    return ValidationRules(
        codec=_CODECS[config.compression_type],
        gzip_level=config.compression_gzip_level,
        lz4_level=config.compression_lz4_level,
        zstd_level=config.compression_zstd_level,
        log_append_time=config.message_timestamp_type == "LogAppendTime",
        timestamp_before_max_ms=config.message_timestamp_before_max_ms,
        timestamp_after_max_ms=config.message_timestamp_after_max_ms,
        max_message_bytes=config.max_message_bytes,
        compacted=config.is_compacted,
    )


def log_config(values: Mapping[str, str]) -> LogConfig:
    """A topic's configs as they are in force, by their names; a key that is missing has its default. Raises ValueError
    for a value that is no number."""
    found: dict[str, Any] = {}
    for field in fields(LogConfig):
        text = values.get(field.name.replace("_", "."))
        if text is None:
            continue
        if field.name == "cleanup_policy":
            found[field.name] = frozenset(word.strip() for word in text.split(",") if word.strip())
        elif isinstance(field.default, str):
            found[field.name] = text
        else:
            found[field.name] = float(text) if isinstance(field.default, float) else int(text)
    if "internal.segment.bytes" in values:
        found["segment_bytes"] = int(values["internal.segment.bytes"])
    return LogConfig(**found)
