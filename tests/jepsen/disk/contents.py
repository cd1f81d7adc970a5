"""What a power cut leaves of a file: all that was flushed, and of what came since a random part."""

from dataclasses import dataclass
from random import Random

from tests.jepsen.disk.journals import Journal, Kind, Record
from tests.support.fault_disk_parts import SECTOR_BYTES, Change, apply


@dataclass(frozen=True, slots=True)
class History:
    """`durable` is what the disk surely holds, `pending` what came since."""

    durable: bytes
    pending: list[Change]

    def after_power_cut(self, random_source: Random | None) -> bytes:
        """Without a random source nothing of what is pending is left."""
        if random_source is None or not self.pending:
            return self.durable
        return torn(self.durable, self.pending, random_source)


def history_of(journal: Journal, content: bytes) -> History:
    """From what is read now, back through all that can be undone, and forth again through the flushes."""
    left = bytearray(content)
    changes: list[Change] = []
    sizes = []
    for record in reversed(journal.changes):
        sizes.append(len(left))
        changes.append(_undo(left, record))
    changes.reverse()
    sizes.reverse()
    begin = 0
    for settled in journal.settled:
        if settled.end <= begin:
            continue
        if settled.is_synced:
            for change in changes[begin : settled.end]:
                apply(left, change)
        else:
            # The kernel takes the pages for written, and knows the file's size.
            apply(left, (sizes[settled.end - 1], None))
        begin = settled.end
    return History(bytes(left), changes[begin:])


def _undo(content: bytearray, record: Record) -> Change:
    """Take one change back; answers it, as it really was: a process may have been killed before, or in it."""
    if record.kind is Kind.RESIZE:
        change: Change = (len(content), None)
        del content[record.first :]
    else:
        # Appends that were too many to be told apart reach to the end of the file.
        is_append = record.first == record.size
        end = len(content) if is_append else record.first + record.second
        change = (record.first, bytes(content[record.first : end]))
    apply(content, (record.size, None))
    content[record.first : record.first + len(record.data)] = record.data
    return change


def torn(durable: bytes, pending: list[Change], random_source: Random) -> bytes:
    """The first changes, the last of them only up to a sector; or, as disks write in any order, any of the sectors."""
    if random_source.random() < 0.25:
        return _any_sectors(durable, pending, random_source)
    kept = random_source.randint(0, len(pending))
    left = bytearray(durable)
    for change in pending[: max(0, kept - 1)]:
        apply(left, change)
    if kept > 0:
        apply(left, _cut(pending[kept - 1], random_source))
    return bytes(left)


def _cut(change: Change, random_source: Random) -> Change:
    position, data = change
    if data is None:
        return change
    bounds = range((position // SECTOR_BYTES + 1) * SECTOR_BYTES, position + len(data), SECTOR_BYTES)
    return position, data[: random_source.choice([*bounds, position + len(data)]) - position]


def _any_sectors(durable: bytes, pending: list[Change], random_source: Random) -> bytes:
    """Each sector as it was or as it is now, in a file as long as it was after any of the changes."""
    newest = bytearray(durable)
    sizes = [len(durable)]
    for change in pending:
        apply(newest, change)
        sizes.append(len(newest))
    size = random_source.choice(sizes)
    left = bytearray(durable[:size].ljust(size, b"\0"))
    for start in range(0, size, SECTOR_BYTES):
        if (
            left[start : start + SECTOR_BYTES] != newest[start : start + SECTOR_BYTES]
            and random_source.random() < 0.5
        ):
            sector = newest[start : start + SECTOR_BYTES].ljust(SECTOR_BYTES, b"\0")
            left[start : start + SECTOR_BYTES] = sector
    return bytes(left[:size])
