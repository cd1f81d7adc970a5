"""A snapshot is named after the last record in it, which no caller chooses: Kafka's checks of a name that is asked for
(KafkaRaftClientSnapshotTest, KafkaMetadataLogTest) hold for every one that can be taken."""

from collections.abc import Iterator, Sequence

from kquorum.metadata.image.image import Provenance
from kquorum.metadata.loader import MetadataLoader
from kquorum.metadata.snapshot import SnapshotContent, SnapshotPolicy, SnapshotTriggers
from kquorum.raft.adapters.delivery import CommitFeed
from kquorum.raft.batches import leader_change_batch
from kquorum.raft.log_index import LogIndex, diverging_point
from kquorum.raft.ports import QuorumAt
from kquorum.raft.voters import VoterSet
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch, build_batch
from kquorum.wire.metadata_records.features import BeginTransactionRecord, EndTransactionRecord, NoOpRecord
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.memory_log import MemoryLog

EVERY_COMMIT = SnapshotTriggers(max_bytes=1, max_interval_ms=0)
NO_OP = NoOpRecord()


class Node:
    """The loader and the policy of a running node, which takes a snapshot wherever one may be taken."""

    is_in_transaction = False

    def __init__(self) -> None:
        self.loader = MetadataLoader()
        self.policy = SnapshotPolicy(EVERY_COMMIT, 0)
        self.taken: list[OffsetAndEpoch] = []

    def handle_commit(self, now_ms: int, batches: Sequence[LogBatch]) -> None:
        for batch in batches:
            self.loader.handle_commit([batch])
            self.policy.handle_commit(len(batch.data))
            self._maybe_take(self.loader.image.provenance)

    def handle_commit_slice(self, now_ms: int, batches: Sequence[LogBatch]) -> bool:
        self.handle_commit(now_ms, batches)
        return True

    def _maybe_take(self, provenance: Provenance) -> None:
        if self.policy.reason_to_begin(0, provenance) is None:
            return
        content = SnapshotContent(image=self.loader.image, quorum=QuorumAt(VoterSet.of(), 0))
        taken = OffsetAndEpoch(content.snapshot_id.end_offset, content.snapshot_id.epoch)
        self.policy.begun(0)
        self.policy.succeeded(taken.offset)
        self.taken.append(taken)

    def handle_snapshot(self, now_ms: int, state: object) -> None: ...

    def handle_leader_change(self, now_ms: int, leader_id: int, leader_epoch: int) -> None: ...

    def handle_time(self, now_ms: int) -> None: ...

    def next_deadline_ms(self) -> int | None:
        return None


def batch(offset: int, epoch: int, *records: MetadataRecord) -> LogBatch:
    return build_batch(offset, epoch, 1000, [(None, encode_record(record)) for record in records])


def a_log() -> MemoryLog:
    """Epochs 1 and 3, and none of 2; each begins with its leader's own record.

    A transaction begins inside a batch, at 6, and ends with 8."""
    log = MemoryLog()
    log.append(
        [
            leader_change_batch(0, 1, 1000, 1, (1,), (1,)),
            batch(1, 1, NO_OP, NO_OP, NO_OP),
            leader_change_batch(4, 3, 1000, 1, (1,), (1,)),
            batch(5, 3, NO_OP, BeginTransactionRecord(name="t"), NO_OP),
            batch(8, 3, EndTransactionRecord()),
            batch(9, 3, NO_OP, NO_OP),
        ]
    )
    return log


def taken_up_to(high_watermark: int) -> Iterator[OffsetAndEpoch]:
    log, node = a_log(), Node()
    feed = CommitFeed(log, node, node_id=1, applied_offset=0)
    feed.advance(high_watermark)
    while feed.has_more:
        feed.deliver(0)
    yield from node.taken


def test_it_ends_at_a_batch_with_the_epoch_of_the_last_record_in_it() -> None:
    """testCreateSnapshotFromEndOffset, testCreateSnapshotValidation"""
    assert list(taken_up_to(11)) == [
        OffsetAndEpoch(*end) for end in ((1, 1), (4, 1), (5, 3), (9, 3), (11, 3))
    ]


def test_it_never_ends_above_the_high_watermark() -> None:
    """testCreateSnapshotLaterThanHighWatermark, testCreateSnapshotAsLeaderWithInvalidSnapshotId"""
    ends = [1, 4, 5, 9, 11]
    for high_watermark in range(-1, 12):
        found = [each.offset for each in taken_up_to(high_watermark)]
        assert found == [end for end in ends if end <= high_watermark]


def test_the_log_has_that_epoch_there() -> None:
    """testCreateSnapshotMuchLaterEpoch, testCreateSnapshotDivergingEpoch, testCreateSnapshotWithMissingEpoch"""
    index = LogIndex(a_log().summary())
    for each in taken_up_to(11):
        assert diverging_point(index, each.offset, each.epoch) is None
        # The check can fail: epochs without records in the log do not count.
        assert all(diverging_point(index, each.offset, other) is not None for other in (0, 2, 4))
