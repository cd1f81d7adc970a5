"""Which faults are planted, and what must be said of each."""

import struct
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from kquorum.wire.metadata_records.features import BeginTransactionRecord, EndTransactionRecord, NoOpRecord
from kquorum.wire.metadata_records.topics import TopicRecord
from kquorum.wire.record_frame import encode_record
from tests.support.batches import rewrite_offsets
from tests.support.log_faults import (
    DAMAGED,
    VIOLATED,
    changed,
    changed_bytes,
    flip,
    flip_in,
    in_its_place,
    move_index_entry,
    move_time_entry,
    put,
    raw_control,
    raw_record,
    removed,
    renamed,
    set_epoch,
    set_header,
    snapshot_batches,
    swap,
    trimmed_without_snapshot,
    without_middle_segment,
    without_record,
    written,
)
from tests.support.metadata_folders import FIRST, SECOND, write_recovery_point
from tests.support.sample_logs import LogBuilder

TOPIC = UUID(int=77)
NO_OP = encode_record(NoOpRecord())
FAULTS: dict[str, tuple[Callable[[Path], None], int, str]] = {
    "a log that ends before what was durable": (
        lambda folder: write_recovery_point(folder, 160),
        DAMAGED,
        "recovery-point",
    ),
    "a recovery point that cannot be read": (
        changed_bytes("recovery-point", lambda d: d.__setitem__(slice(0, None), b"?" * len(d))),
        VIOLATED,
        "recovery-point",
    ),
    "a flipped bit in a record": (changed(lambda b: flip_in(b, 3, -2)), DAMAGED, "batches"),
    "a flipped bit in the checksum": (changed(lambda b: flip_in(b, 3, 18)), DAMAGED, "batches"),
    "a flipped magic": (changed(lambda b: flip_in(b, 3, 16)), DAMAGED, "batches"),
    "a length that reaches too far": (changed(lambda b: flip_in(b, 3, 8)), DAMAGED, "batches"),
    "a torn end": (
        changed_bytes(f"{SECOND}.log", lambda d: d.__delitem__(slice(-5, None))),
        DAMAGED,
        "batches",
    ),
    "zeros at the end": (changed_bytes(f"{SECOND}.log", lambda d: d.extend(bytes(900))), DAMAGED, "batches"),
    "a cut inside the log": (
        changed_bytes(f"{FIRST}.log", lambda d: d.__delitem__(slice(-5, None))),
        DAMAGED,
        "batches",
    ),
    "swapped batches": (changed(lambda b: swap(b, 5, 6)), VIOLATED, "offsets"),
    "a missing batch": (changed(lambda b: b.pop(9) and None), VIOLATED, "offsets"),
    "a batch twice": (changed(lambda b: b.insert(9, b[9])), VIOLATED, "offsets"),
    "a base offset moved": (
        changed(lambda b: b.__setitem__(9, rewrite_offsets(b[9], 7777, 1))),
        VIOLATED,
        "offsets",
    ),
    "an epoch that goes back": (changed(lambda b: set_epoch(b, 9, 0)), VIOLATED, "leader epochs"),
    "an epoch too early": (changed(lambda b: set_epoch(b, 9, 2)), VIOLATED, "leader epochs"),
    "a wrong last offset delta": (changed(lambda b: set_header(b, 9, 23, ">i", 4)), VIOLATED, "batches"),
    "a wrong record count": (changed(lambda b: set_header(b, 9, 57, ">i", 2)), DAMAGED, "records"),
    "an unknown codec": (changed(lambda b: set_header(b, 2, 21, ">h", 7)), DAMAGED, "records"),
    "another codec than the data's": (changed(lambda b: set_header(b, 2, 21, ">h", 4)), DAMAGED, "records"),
    "a wrong offset delta": (
        changed(lambda b: raw_record(b, 9, bytes((20, 0, 0, 10, 1, 8)) + NO_OP + b"\0")),
        VIOLATED,
        "records",
    ),
    "a timestamp of its own": (
        changed(lambda b: raw_record(b, 9, bytes((20, 0, 8, 0, 1, 8)) + NO_OP + b"\0")),
        VIOLATED,
        "records",
    ),
    "a control record of unknown type": (
        changed(lambda b: raw_control(b, 9)),
        DAMAGED,
        "control records",
    ),
    "a record that ends early": (
        changed(lambda b: put(b, 9, b"\x01\x02\x00\x09ab")),
        DAMAGED,
        "metadata records",
    ),
    "a record that contradicts": (
        changed(lambda b: put(b, 9, encode_record(TopicRecord(name="orders", topic_id=TOPIC)))),
        VIOLATED,
        "replay",
    ),
    "an end of no transaction": (
        changed(lambda b: put(b, 9, encode_record(EndTransactionRecord()))),
        VIOLATED,
        "transactions",
    ),
    "a snapshot inside a transaction": (
        changed(lambda b: put(b, 20, encode_record(BeginTransactionRecord()))),
        VIOLATED,
        "snapshot = replay",
    ),
    "a missing segment": (removed(f"{FIRST}.log"), VIOLATED, "log start"),
    "a log that begins nowhere": (trimmed_without_snapshot, VIOLATED, "log start"),
    "a segment of the wrong name": (
        lambda folder: (folder / f"{SECOND}.log").rename(folder / "00000000000000000101.log") and None,
        VIOLATED,
        "segments",
    ),
    "an index entry moved": (changed_bytes(f"{FIRST}.index", move_index_entry), VIOLATED, "offset index"),
    "an index entry twice": (
        changed_bytes(f"{FIRST}.index", lambda d: d.extend(d[-8:])),
        VIOLATED,
        "offset index",
    ),
    "an index cut inside an entry": (
        changed_bytes(f"{FIRST}.index", lambda d: d.__delitem__(slice(-3, None))),
        VIOLATED,
        "offset index",
    ),
    "an index that points behind the log": (
        changed_bytes(f"{SECOND}.index", lambda d: d.extend(struct.pack(">ii", 999, 99_999))),
        VIOLATED,
        "offset index",
    ),
    "a time index entry moved": (
        changed_bytes(f"{FIRST}.timeindex", move_time_entry),
        VIOLATED,
        "time index",
    ),
    "a time index out of order": (
        changed_bytes(f"{FIRST}.timeindex", lambda d: d.extend(d[:12])),
        VIOLATED,
        "time index",
    ),
    "an epoch that begins elsewhere": (
        written("leader-epoch-checkpoint", "0\n2\n1 0\n2 99\n"),
        VIOLATED,
        "leader-epoch-checkpoint",
    ),
    "an epoch that is missing": (
        written("leader-epoch-checkpoint", "0\n1\n1 0\n"),
        VIOLATED,
        "leader-epoch-checkpoint",
    ),
    "an epoch too many": (
        written("leader-epoch-checkpoint", "0\n3\n1 0\n2 100\n3 400\n"),
        VIOLATED,
        "leader-epoch-checkpoint",
    ),
    "an unreadable epoch file": (
        written("leader-epoch-checkpoint", "0\n7\n1 0\n"),
        DAMAGED,
        "leader-epoch-checkpoint",
    ),
    "an old election state": (
        changed_bytes(
            "quorum-state", lambda d: d.__setitem__(slice(None), d.replace(b'Epoch":2', b'Epoch":1'))
        ),
        VIOLATED,
        "quorum-state",
    ),
    "a damaged election state": (written("quorum-state", '{"leaderId":'), DAMAGED, "quorum-state"),
    "no election state": (removed("quorum-state"), VIOLATED, "quorum-state"),
    "the topic id of another topic": (
        written("partition.metadata", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg"),
        VIOLATED,
        "partition.metadata",
    ),
    "a damaged meta.properties": (written("../meta.properties", "version=9\n"), DAMAGED, "meta.properties"),
    "a flipped bit in a snapshot": (
        changed_bytes("snapshot", lambda d: flip(d, 150)),
        DAMAGED,
        "snapshot files",
    ),
    "a cut snapshot": (
        changed_bytes("snapshot", lambda d: d.__delitem__(slice(-5, None))),
        DAMAGED,
        "snapshot files",
    ),
    "an empty snapshot": (changed_bytes("snapshot", lambda d: d.clear()), DAMAGED, "snapshot files"),
    "a snapshot without footer": (snapshot_batches(lambda b: b.pop() and None), DAMAGED, "snapshot files"),
    "a snapshot without header": (snapshot_batches(lambda b: b.pop(0) and None), VIOLATED, "snapshot files"),
    "a record after the footer": (
        snapshot_batches(lambda b: b.append(bytes(LogBuilder(next_offset=99).records(5, NoOpRecord()).data))),
        VIOLATED,
        "snapshot files",
    ),
    "a batch missing in a snapshot": (
        snapshot_batches(lambda b: b.pop(1) and None),
        VIOLATED,
        "snapshot files",
    ),
    "a batch of another epoch in a snapshot": (
        snapshot_batches(lambda b: set_epoch(b, 1, 5)),
        VIOLATED,
        "snapshot files",
    ),
    "a record missing in a snapshot": (without_record, VIOLATED, "snapshot = replay"),
    "a snapshot of another offset": (
        renamed(f"{7:020d}-0000000001.checkpoint"),
        VIOLATED,
        "snapshot = replay",
    ),
    "a snapshot that ends inside a batch": (
        renamed(f"{3:020d}-0000000001.checkpoint"),
        VIOLATED,
        "snapshot names",
    ),
    "a snapshot of another epoch": (renamed(f"{60:020d}-0000000002.checkpoint"), VIOLATED, "snapshot names"),
    "a snapshot that ends behind the log": (
        renamed(f"{99_999:020d}-0000000001.checkpoint"),
        VIOLATED,
        "snapshot names",
    ),
    "a segment missing in the middle": (without_middle_segment, DAMAGED, "segments"),
    "a folder in a segment's place": (in_its_place(f"{SECOND}.log"), DAMAGED, "segments"),
    "a folder in a snapshot's place": (in_its_place("snapshot"), DAMAGED, "snapshot files"),
    "a folder in an index's place": (in_its_place(f"{FIRST}.index"), DAMAGED, "offset index"),
    "a folder in the recovery point's place": (in_its_place("recovery-point"), DAMAGED, "recovery-point"),
    "a folder in the epoch file's place": (
        in_its_place("leader-epoch-checkpoint"),
        DAMAGED,
        "leader-epoch-checkpoint",
    ),
    "a folder in the election state's place": (in_its_place("quorum-state"), DAMAGED, "quorum-state"),
}
