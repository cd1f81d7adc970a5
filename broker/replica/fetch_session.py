"""The follower's side of a fetch session: which partitions a Fetch has to name (KIP-227).

The leader keeps the partitions of a session; a request names what changed since the last one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kquorum.wire.messages.error_codes import ErrorCode

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
MAX_EPOCH: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class SessionPartition:
    """One partition as a Fetch names it. Equal values need not be sent again."""

    topic_id: UUID
    offset: int
    leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """`named` are the partitions that the request lists; `forgotten` those that it takes out."""

    session_id: int
    session_epoch: int
    named: Mapping[Key, SessionPartition]
    forgotten: Mapping[Key, UUID]


class FetchSession:
    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._partitions: dict[Key, SessionPartition] = {}

    @property
    def partitions(self) -> Mapping[Key, SessionPartition]:
        """What the last request asked for, named in it or before."""
        return self._partitions

    @property
    def is_full(self) -> bool:
        """Whether the next request has to name all partitions."""
        return self._epoch == FIRST_EPOCH

    def request(self, changed: Mapping[Key, SessionPartition], gone: Iterable[Key]) -> SessionRequest:
        """The next request. `changed` has the partitions to name: all of them in a full request, else those that may
        have changed. `gone` have left."""
        if self.is_full:
            self._partitions = dict(changed)
            return SessionRequest(self._id, self._epoch, self._partitions, {})
        forgotten = {}
        for key in gone:
            left = self._partitions.pop(key, None)
            if left is not None:
                forgotten[key] = left.topic_id
        named = {}
        for key, partition in changed.items():
            before = self._partitions.get(key)
            if before == partition:
                continue
            if before is not None and before.topic_id != partition.topic_id:
                forgotten[key] = before.topic_id
            named[key] = self._partitions[key] = partition
        return SessionRequest(self._id, self._epoch, named, forgotten)

    def answered(self, error: ErrorCode, session_id: int) -> bool:
        """Take over the outcome of a request; False where the answer is none and the session ends."""
        if error is not ErrorCode.none:
            if error is ErrorCode.fetch_session_id_not_found:
                self._id = NO_SESSION
            self._epoch = FIRST_EPOCH
            return False
        if session_id == NO_SESSION:
            # The leader made no session, or closed it.
            self._id, self._epoch = NO_SESSION, FIRST_EPOCH
        elif self.is_full:
            self._id, self._epoch = session_id, 1
        else:
            self._epoch = 1 if self._epoch == MAX_EPOCH else self._epoch + 1
        return True

    def failed(self) -> None:
        """No answer came: what the leader knows is unknown. The next request closes this session and makes another."""
        self._epoch = FIRST_EPOCH
