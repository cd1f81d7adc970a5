"""What a broker's configs say about groups, by Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    initial_rebalance_delay_ms: int
    min_session_timeout_ms: int
    max_session_timeout_ms: int
    max_size: int
    metadata_max_bytes: int
    commit_timeout_ms: int
    load_buffer_bytes: int
    retention_ms: int
    retention_check_ms: int
    compression_codec: int
