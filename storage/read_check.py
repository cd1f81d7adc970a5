"""Whether what was read from the log's files is still what was written to them."""

from bisect import bisect_right
from collections.abc import Sequence

from kquorum.storage.log_rules import CONTIGUOUS, LogRules
from kquorum.wire.errors import DecodeError
from kquorum.wire.record_batch import BatchHeader, check_batch


def read_fault(
    data: bytes, start_offset: int, epochs: Sequence[tuple[int, int]], rules: LogRules = CONTIGUOUS
) -> tuple[int, int, str] | None:
    """The first fault in whole batches, starting with the one that holds `start_offset`: the offset, the byte, and why.

    Base offsets and leader epochs are outside the checksum: they are held against each other and against `epochs`,
    (epoch, start offset) ascending, where the log knows them.
    """
    position, offset = 0, start_offset
    while position < len(data):
        try:
            header = check_batch(data, position)
        except DecodeError as error:
            return offset, position, error.reason
        begins_right = rules.continues(offset, header.base_offset) or (
            position == 0 and header.base_offset < offset
        )
        if not begins_right or header.next_offset <= offset:
            reason = (
                f"the batch holds offsets {header.base_offset} to {header.last_offset}, but {offset} was due"
            )
            return offset, position, reason
        due_epoch = _epoch_at(header, epochs)
        if due_epoch is not None and header.partition_leader_epoch != due_epoch:
            reason = f"the batch is of leader epoch {header.partition_leader_epoch}, but {due_epoch} was due"
            return offset, position, reason
        position, offset = position + header.size_in_bytes, header.next_offset
    return None


def _epoch_at(header: BatchHeader, epochs: Sequence[tuple[int, int]]) -> int | None:
    if epochs and header.base_offset >= epochs[-1][1]:
        return epochs[-1][0]
    index = bisect_right(epochs, header.base_offset, key=lambda entry: entry[1]) - 1
    return epochs[index][0] if index >= 0 else None
