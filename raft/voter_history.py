"""The voter sets of the log, by offset: the newest one counts from the moment it is appended (KIP-853).

A set is in force before it is committed, so a cut of the log takes it back, and asking what was in force at an
earlier offset is how a snapshot at that offset comes to know it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from raft.quorum_records import KRaftVersionAt, QuorumRecord, VotersAt, quorum_records
from raft.voters import NO_VOTERS, ReplicaKey, VoterSet
from wire.errors import DecodeError
from wire.log_batch import LogBatch

# A set that did not come from the log: the static configuration's or the bootstrap checkpoint's.
BEFORE_THE_LOG = -1


class VoterHistory:
    """Invariant: offsets ascend; each set of the log differs from the one before it in the log by at most one voter
    added and one removed (the static configuration's and the bootstrap checkpoint's are exempt)."""

    def __init__(self, static: VoterSet = NO_VOTERS) -> None:
        """`static` is the configuration's (`controller.quorum.voters`), in force while the log says nothing."""
        self.static = static
        self._sets: list[VotersAt] = []
        self._versions: list[KRaftVersionAt] = []

    @staticmethod
    def of(static: VoterSet, records: Iterable[QuorumRecord]) -> "VoterHistory":
        """The history at start: `records` are the bootstrap checkpoint's (at offset -1), a snapshot's (at its last
        contained offset) and the log's, in ascending order."""
        history = VoterHistory(static)
        for record in records:
            history.add(record)
        return history

    # What is in force

    @property
    def voters(self) -> VoterSet:
        return self._sets[-1].voters if self._sets else self.static

    @property
    def voters_offset(self) -> int:
        """Where the newest set stands; -1 when it did not come from the log."""
        return self._sets[-1].offset if self._sets else BEFORE_THE_LOG

    @property
    def kraft_version(self) -> int:
        return self._versions[-1].kraft_version if self._versions else 0

    @property
    def kraft_version_offset(self) -> int:
        return self._versions[-1].offset if self._versions else BEFORE_THE_LOG

    def voters_at(self, offset: int) -> VoterSet:
        """The set in force once everything up to and including `offset` was appended."""
        position = bisect_right(self._sets, offset, key=_offset_of)
        return self._sets[position - 1].voters if position else self.static

    def kraft_version_at(self, offset: int) -> int:
        position = bisect_right(self._versions, offset, key=_offset_of)
        return self._versions[position - 1].kraft_version if position else 0

    def was_removed(self, key: ReplicaKey) -> bool:
        """Whether this replica voted once and no longer does: only an operator takes it back (KAFKA-19850)."""
        if self.voters.contains(key):
            return False
        return any(entry.voters.contains(key) for entry in self._sets)

    def is_leaving(self, key: ReplicaKey, high_watermark: int) -> bool:
        """Whether the newest set left this replica out, and is not known to be committed (-1: nothing is)."""
        if self.voters_offset < high_watermark or self.voters.contains(key):
            return False
        previous = self._sets[-2].voters if len(self._sets) > 1 else self.static
        return bool(self._sets) and previous.contains(key)

    # Changes

    def append(self, batch: LogBatch) -> None:
        for record in quorum_records(batch):
            self.add(record)

    def accepts(self, before: Iterable[LogBatch], batch: LogBatch) -> bool:
        """Whether a control batch that a peer sent may follow this history and the batches `before` it: it can be
        read, every set in it has voters, and differs from its predecessor by one change at most. No leader of ours
        wrote another."""
        try:
            added = [record for earlier in before for record in quorum_records(earlier)]
            return self._accepts(added, list(quorum_records(batch)))
        except DecodeError:
            return False

    def _accepts(self, before: list[QuorumRecord], records: list[QuorumRecord]) -> bool:
        known = [VotersAt(self.voters_offset, self.voters)]
        known.extend(record for record in before if isinstance(record, VotersAt))
        for record in records:
            if isinstance(record, VotersAt):
                is_exempt = known[-1].offset == BEFORE_THE_LOG
                if len(record.voters) == 0:
                    return False
                if not (is_exempt or record.voters.overlaps_majority_of(known[-1].voters)):
                    return False
                known.append(record)
        return True

    def add(self, record: QuorumRecord) -> None:
        if isinstance(record, KRaftVersionAt):
            assert record.offset > self.kraft_version_offset or not self._versions, record
            self._versions.append(record)
            return
        assert record.offset > self.voters_offset or not self._sets, record
        if self.voters_offset != BEFORE_THE_LOG:
            assert record.voters.overlaps_majority_of(self.voters), (self.voters, record)
        self._sets.append(record)

    def truncate_to(self, end_offset: int) -> None:
        """The log was cut: forget what stood at and above `end_offset`."""
        del self._sets[bisect_left(self._sets, end_offset, key=_offset_of) :]
        del self._versions[bisect_left(self._versions, end_offset, key=_offset_of) :]

    def trim_to(self, start_offset: int) -> None:
        """The log begins at `start_offset` now: keep what was in force there, and what follows.

        The newest entry below it stays even if there is one exactly at it: that one may yet be cut off again.
        """
        del self._sets[: max(0, bisect_left(self._sets, start_offset, key=_offset_of) - 1)]
        del self._versions[: max(0, bisect_left(self._versions, start_offset, key=_offset_of) - 1)]


def _offset_of(record: QuorumRecord) -> int:
    return record.offset
