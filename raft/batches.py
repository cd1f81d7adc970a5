"""The batches that a leader writes: proposals (all of one turn share a batch: group commit), and control
batches.
"""

from collections.abc import Iterable, Sequence

from kquorum.raft.errors import RecordBatchTooLargeError
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    VotersRecord,
    encode_control_record,
)
from kquorum.wire.log_batch import LogBatch, build_batch

# Kafka's upper bound for what a record adds to its value, and the batch header (rule F1).
RECORD_OVERHEAD_BYTES = 21
BATCH_HEADER_BYTES = 61
# Below this many bytes compression cannot earn its frame back.
COMPRESSION_MIN_BYTES = 512


class Accumulator:
    """The open batch of a leader, and closed ones not yet drained.

    The records of a group get their offsets when the group is added, and stand in one batch (rule R12.1). So the caller
    can build records that name their own offset.
    """

    def __init__(self, max_batch_bytes: int, codec: CompressionCodec) -> None:
        self._max_batch_bytes = max_batch_bytes
        self._codec = codec
        self._epoch: int | None = None
        self._next_offset = 0
        self._open: list[bytes] = []
        self._open_bytes = BATCH_HEADER_BYTES
        self._opened_at_ms = 0
        self._closed: list[LogBatch] = []

    def begin(self, epoch: int, next_offset: int) -> None:
        assert self.is_empty
        self._epoch = epoch
        self._next_offset = next_offset

    def end(self) -> None:
        assert self.is_empty
        self._epoch = None

    @property
    def next_offset(self) -> int:
        return self._next_offset

    @property
    def is_empty(self) -> bool:
        return not self._open and not self._closed

    def add(self, values: Sequence[bytes], now_ms: int) -> int:
        """Add one atomic group, never split over batches; answers the offset of its last record."""
        assert values
        assert self._epoch is not None
        size = sum(len(value) + RECORD_OVERHEAD_BYTES for value in values)
        if BATCH_HEADER_BYTES + size > self._max_batch_bytes:
            raise RecordBatchTooLargeError(
                f"{len(values)} records of {size} bytes do not fit a batch of {self._max_batch_bytes} bytes"
            )
        if self._open and self._open_bytes + size > self._max_batch_bytes:
            self._close()
        if not self._open:
            self._opened_at_ms = now_ms
        self._open.extend(values)
        self._open_bytes += size
        self._next_offset += len(values)
        return self._next_offset - 1

    def drain(self) -> list[LogBatch]:
        if self._open:
            self._close()
        drained, self._closed = self._closed, []
        return drained

    def _close(self) -> None:
        assert self._epoch is not None
        codec = self._codec if self._open_bytes >= COMPRESSION_MIN_BYTES else CompressionCodec.NONE
        base_offset = self._next_offset - len(self._open)
        records = [(None, value) for value in self._open]
        self._closed.append(build_batch(base_offset, self._epoch, self._opened_at_ms, records, codec=codec))
        self._open = []
        self._open_bytes = BATCH_HEADER_BYTES


# Control batches that the core itself writes


def leader_change_batch(
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    leader_id: int,
    voters: Iterable[int],
    granting_voters: Iterable[int],
    quorum_records: Sequence[KRaftVersionRecord | VotersRecord] = (),
) -> LogBatch:
    """The first batch of an epoch (KIP-595): once it is committed, so is all that stands before it.

    `quorum_records` go with it: the bootstrap checkpoint's on their way into the log, or the leader's new endpoints.
    """
    message = LeaderChangeMessage(
        leader_id=leader_id,
        voters=tuple(LeaderChangeVoter(voter_id=voter) for voter in sorted(voters)),
        granting_voters=tuple(LeaderChangeVoter(voter_id=voter) for voter in sorted(granting_voters)),
    )
    records = [encode_control_record(record) for record in (message, *quorum_records)]
    return build_batch(base_offset, leader_epoch, timestamp_ms, records, control=True)


def quorum_batch(
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    quorum_records: Sequence[KRaftVersionRecord | VotersRecord],
) -> LogBatch:
    """A change of the voters, or of kraft.version and voters together, which must never be seen apart."""
    records = [encode_control_record(record) for record in quorum_records]
    return build_batch(base_offset, leader_epoch, timestamp_ms, records, control=True)
