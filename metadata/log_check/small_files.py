"""The small files beside the log against what its batches say: leader epochs, election state, whose log it is."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

Epochs = Sequence[tuple[int, int]]

METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def epoch_faults(
    written: Epochs, from_batches: Epochs, *, log_end_offset: int, snapshot_end_offsets: Sequence[int]
) -> Iterator[str]:
    """What `leader-epoch-checkpoint` says otherwise than the batches; both are (epoch, start offset).

    Lawful differences: epochs that end below the log's start, where records were deleted behind a snapshot, are left
    out and the next begins where that snapshot ends; and a leader enters its epoch at the log's end before it writes
    there.
    """
    for (epoch, start), (next_epoch, next_start) in pairwise(written):
        if next_epoch <= epoch or next_start < start:
            yield f"epoch {next_epoch} from offset {next_start} follows epoch {epoch} from {start}"
    entries = [entry for entry in written if entry[1] < log_end_offset]
    for epoch, start in written:
        if start > log_end_offset:
            yield f"epoch {epoch} begins at offset {start}, but the log ends at {log_end_offset}"
    if not entries and log_end_offset in snapshot_end_offsets:
        return  # the log begins at its end, behind the newest snapshot; what is left of it goes with its segment
    due = list(from_batches)
    if entries and due and entries[0] != due[0] and entries[0][1] in snapshot_end_offsets:
        due = _cut_below(due, entries[0][1])
    starts = dict(entries)
    for epoch, start in due:
        if epoch not in starts:
            yield f"epoch {epoch}, which begins at offset {start}, is missing"
        elif starts[epoch] != start:
            yield f"epoch {epoch} begins at offset {start}, the file says {starts[epoch]}"
    known = {epoch for epoch, _ in due}
    for epoch, start in entries:
        if epoch not in known:
            yield f"no batch is of epoch {epoch}, which the file lets begin at offset {start}"


def _cut_below(epochs: Epochs, start_offset: int) -> list[tuple[int, int]]:
    kept = [entry for entry in epochs if entry[1] > start_offset]
    before = [epoch for epoch, start in epochs if start <= start_offset]
    return ([(before[-1], start_offset)] if before else []) + kept


def text_fault(content: bytes) -> str | None:
    """Where the bytes are no text (UTF-8 without zeros); None if they are."""
    zero = content.find(b"\0")
    try:
        content.decode()
    except UnicodeDecodeError as error:
        position = error.start if zero < 0 else min(zero, error.start)
    else:
        if zero < 0:
            return None
        position = zero
    return f"it is not text: byte {position} is 0x{content[position]:02x}"


def epoch_file_fault(content: bytes) -> str | None:
    """What in a text keeps it from being a `leader-epoch-checkpoint`: which line is no number, or no pair of them."""
    lines = [line.strip() for line in content.decode().split("\n") if line.strip()]
    if len(lines) == 1:
        return "it ends behind the version: the number of entries is missing"
    for number, line in enumerate(lines, 1):
        due = 1 if number <= 2 else 2
        words = line.split()
        if len(words) != due or not all(word.isascii() and word.isdecimal() for word in words):
            wanted = "a number" if due == 1 else "an epoch and an offset"
            return f"line {number}, {line[:40]!r}, is not {wanted}"
    return None


def partition_metadata_fault(content: bytes) -> str | None:
    """What is wrong with `partition.metadata` (version 0 and the topic id of `__cluster_metadata`); None if nothing."""
    try:
        words = content.decode().split()
    except UnicodeDecodeError:
        return "it is not text"
    fields = dict(zip(words[::2], words[1::2], strict=False))
    if len(words) % 2 or not words:
        return "it does not hold pairs of a key and a value"
    if fields.get("version:") != "0":
        return f"the version is {fields.get('version:', 'missing')}, not 0"
    if fields.get("topic_id:") != METADATA_TOPIC_ID:
        found = fields.get("topic_id:", "missing")
        return f"the topic id is {found}; that of the metadata log is {METADATA_TOPIC_ID}"
    return None
