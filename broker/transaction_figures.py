"""What is counted of the transactions of a broker, for its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionFigures:
    """`partitions` of `__transaction_state` by the state of their shard. `ending` are transactions whose markers are
    not all written; `without_leader` are markers that wait for a leader or for another attempt. `aborted` are those
    whose time was over, at the coordinators that are here now; `not_verified` counts since the broker's start.
    `late_partitions` are led here, with a transaction that its coordinator should have ended long ago."""

    transactional_ids: int
    ongoing: int
    ending: int
    without_leader: int
    aborted: int
    not_verified: int
    late_partitions: int
    partitions: Mapping[str, int]
