"""What a broker's configs say about transactions, by Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    max_timeout_ms: int
    abort_check_ms: int
    expiration_ms: int
    expiration_check_ms: int
    load_buffer_bytes: int
    add_retry_ms: int
    """How long after CONCURRENT_TRANSACTIONS a partition is added again, and for how long in all."""
    add_retry_max_ms: int
