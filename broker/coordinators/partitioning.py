"""Which partition of a coordinator's topic a key belongs to: a group's id in `__consumer_offsets`, a transactional id
in `__transaction_state`. The leader of the partition coordinates the group, or the transaction (rules G1.1 to G1.5)."""

from __future__ import annotations

from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
_LEAST: Final = -(1 << 31)


def java_hash(text: str) -> int:
    """Java's hash of a string, over UTF-16 code units: a character beyond the basic plane counts as two."""
    data = text.encode("utf-16-le", "surrogatepass")
    found = 0
    for at in range(0, len(data), 2):
        found = (31 * found + (data[at] | data[at + 1] << 8)) & 0xFFFF_FFFF
    return found - (1 << 32) if found & 0x8000_0000 else found


def partition_of(key: str, partitions: int) -> int:
    """Kafka's abs of the least number is 0."""
    found = java_hash(key)
    return 0 if found == _LEAST else abs(found) % partitions
