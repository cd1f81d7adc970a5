"""The offsets that groups committed: as the log has them, as its committed part has them, and those of transactions.

A decision looks at the newest state, a reader gets what is committed (rule G2.4). Both are kept: the committed state
follows the newest one when the high watermark passes the record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from kquorum.wire.offsets_records import NO_TIMESTAMP, OffsetCommitValue, OffsetKey


class Place(NamedTuple):
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """`record_offset` is that of its record in the log."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    topic_id: UUID
    record_offset: int


Offsets = dict[str, dict[Place, CommittedOffset]]
_NONE: Final[Mapping[Place, CommittedOffset]] = {}


def committed_offset(value: OffsetCommitValue, record_offset: int) -> CommittedOffset:
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
        record_offset,
    )


class OffsetStore:
    def __init__(self) -> None:
        self._newest: Offsets = {}
        self._committed: Offsets = {}
        self._not_committed: deque[tuple[int, str, Place, CommittedOffset | None]] = deque()
        self._in_transactions: dict[int, dict[OffsetKey, CommittedOffset]] = {}
        # By group: OffsetFetch, expiry and the deletion of a topic ask for each of many groups.
        self._transactions_of: dict[str, dict[Place, set[int]]] = {}

    # Reading

    def newest(self, group_id: str) -> Mapping[Place, CommittedOffset]:
        return self._newest.get(group_id, _NONE)

    def committed(self, group_id: str) -> Mapping[Place, CommittedOffset]:
        return self._committed.get(group_id, _NONE)

    def is_in_transaction(self, group_id: str, place: Place) -> bool:
        """Whether a transaction that has not ended commits an offset there."""
        return place in self._transactions_of.get(group_id, ())

    def in_transactions(self, group_id: str) -> list[Place]:
        return list(self._transactions_of.get(group_id, ()))

    @property
    def count(self) -> int:
        return sum(map(len, self._newest.values()))

    # Replaying

    def set(self, key: OffsetKey, found: CommittedOffset | None, record_offset: int) -> None:
        """None: a tombstone, which removes the offsets of transactions there too (rule G3.29)."""
        place = Place(key.topic, key.partition)
        _put(self._newest, key.group_id, place, found)
        self._not_committed.append((record_offset, key.group_id, place, found))
        if found is None:
            for producer_id in self._forget_transactions(key.group_id, place):
                self._in_transactions[producer_id].pop(key, None)

    def set_in_transaction(self, producer_id: int, key: OffsetKey, found: CommittedOffset) -> None:
        self._in_transactions.setdefault(producer_id, {})[key] = found
        of_group = self._transactions_of.setdefault(key.group_id, {})
        of_group.setdefault(Place(key.topic, key.partition), set()).add(producer_id)

    def _forget_transactions(self, group_id: str, place: Place) -> Iterable[int]:
        of_group = self._transactions_of.get(group_id, {})
        producers = of_group.pop(place, ())
        if not of_group:
            self._transactions_of.pop(group_id, None)
        return producers

    def end_transaction(
        self, producer_id: int, record_offset: int, *, is_commit: bool
    ) -> Iterable[OffsetKey]:
        """The keys that the transaction committed. A later plain commit wins (rule G3.35)."""
        pending = self._in_transactions.pop(producer_id, {})
        for key, found in pending.items():
            place = Place(key.topic, key.partition)
            waiting = self._transactions_of[key.group_id][place]
            waiting.discard(producer_id)
            if not waiting:
                self._forget_transactions(key.group_id, place)
            if is_commit:
                known = self.newest(key.group_id).get(place)
                if known is None or known.record_offset < found.record_offset:
                    _put(self._newest, key.group_id, place, found)
                    self._not_committed.append((record_offset, key.group_id, place, found))
        return pending.keys() if is_commit else ()

    def commit_to(self, high_watermark: int) -> None:
        """All records below it are on every in-sync replica."""
        waiting = self._not_committed
        while waiting and waiting[0][0] < high_watermark:
            _, group_id, place, found = waiting.popleft()
            _put(self._committed, group_id, place, found)


def _put(offsets: Offsets, group_id: str, place: Place, found: CommittedOffset | None) -> None:
    if found is not None:
        offsets.setdefault(group_id, {})[place] = found
        return
    of_group = offsets.get(group_id)
    if of_group is not None:
        of_group.pop(place, None)
        if not of_group:
            del offsets[group_id]


def is_expired(found: CommittedOffset, now_ms: int, since_ms: int, retention_ms: int) -> bool:
    """An expiry of its own always counts; else the retention since the commit or since the group became empty."""
    if found.expire_timestamp_ms != NO_TIMESTAMP:
        return now_ms >= found.expire_timestamp_ms
    return now_ms - since_ms >= retention_ms
