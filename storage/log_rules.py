"""What the batches of a log may look like. The owner of the log knows; the storage checks it."""

from collections.abc import Iterator
from dataclasses import dataclass

from kquorum.wire.log_scan import Damage, ScannedBatch, scan_batches
from kquorum.wire.primitives import Buffer
from kquorum.wire.record_batch import HEADER_BYTES, MAX_BATCH_RECORDS

# The offsets of a segment: its indexes keep them in 31 bits, relative to the segment's base offset.
OFFSET_SPAN_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRules:
    """The default is a metadata log: every offset is there, and no batch has a producer.

    `has_gaps`: compaction removes records, and batches with them, so offsets ascend but need not follow one another.
    `has_producers`: batches may carry a producer id, epoch and sequence (KIP-98).
    """

    has_gaps: bool = False
    has_producers: bool = False

    def continues(self, due_offset: int, base_offset: int) -> bool:
        """Whether a batch may stand where `due_offset` is the next offset of the log."""
        return base_offset == due_offset or (self.has_gaps and base_offset > due_offset)

    def largest_offset_behind(self, offset: int, size: int) -> int:
        """No batch begins at a larger offset within `size` bytes of one segment from where `offset` is due.

        Compressed records can take less than a byte each, so the bytes alone are no bound: a batch takes its header at
        least, and holds no more records than this program decodes.
        """
        if self.has_gaps:
            return offset + OFFSET_SPAN_MAX
        return offset + min(OFFSET_SPAN_MAX, (size // HEADER_BYTES + 1) * MAX_BATCH_RECORDS)

    def scan(self, buffer: Buffer, base_offset: int, position: int = 0) -> Iterator[ScannedBatch | Damage]:
        """`wire.log_scan.scan_batches` from the batch that is due at `base_offset` on."""
        return scan_batches(buffer, position, base_offset=base_offset, has_gaps=self.has_gaps)


# A log without gaps in its offsets, as Raft needs it.
CONTIGUOUS = LogRules()
# A partition log: its records have producers, and compaction leaves gaps.
PARTITION_LOG = LogRules(has_gaps=True, has_producers=True)
