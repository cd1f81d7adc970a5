"""Which partition of a coordinator's topic a key belongs to: a group's id in `__consumer_offsets`, a transactional id
in `__transaction_state`. The leader of the partition coordinates the group, or the transaction (rules G1.1 to G1.5)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
_LEAST: Final = -(1 << 31)
# Below so many code units a loop is faster than numpy.
_FEW: Final = 32
# 31 to the power of what follows a code unit, modulo 2 to the power of 32: the last is 1.
_POWERS: Final = np.concatenate(([1], np.full(4_095, 31))).cumprod(dtype=np.uint32)[::-1]


@lru_cache(maxsize=10_000)
def _short_hash(text: str) -> int:
    """Without a sign, of a few ASCII characters: a client names its id in each request."""
    found = 0
    for unit in text.encode("ascii"):
        found = (31 * found + unit) & 0xFFFF_FFFF
    return found


def java_hash(text: str) -> int:
    """Java's hash of a string, over UTF-16 code units: a character beyond the basic plane counts as two."""
    if len(text) <= _FEW and text.isascii():
        found = _short_hash(text)
    else:
        found = 0
        # Clients choose ids of up to 32 KB, thousands in a request.
        units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2")
        for at in range(0, len(units), len(_POWERS)):
            part = units[at : at + len(_POWERS)]
            weighted = np.multiply(part, _POWERS[len(_POWERS) - len(part) :], dtype=np.uint32)
            weight = pow(31, len(part), 1 << 32)
            found = (found * weight + int(weighted.sum(dtype=np.uint32))) & 0xFFFF_FFFF
    return found - (1 << 32) if found & 0x8000_0000 else found


def partition_of(key: str, partitions: int) -> int:
    """Kafka's abs of the least number is 0."""
    found = java_hash(key)
    return 0 if found == _LEAST else abs(found) % partitions
