"""Faults to plant in a sound metadata folder, each with the exit status and the check that must tell it."""

import struct
from collections.abc import Callable
from pathlib import Path

from kquorum.snapshots.naming import snapshot_id_of
from kquorum.snapshots.reader import SnapshotReader
from kquorum.snapshots.writer import SnapshotWriter
from kquorum.wire.log_scan import ScannedBatch, scan_batches
from tests.support.batches import batch_of, rewrite_offsets, with_valid_crc
from tests.support.metadata_folders import FIRST, SECOND, snapshot_path
from tests.support.sample_logs import LogBuilder

SOUND, VIOLATED, DAMAGED = 0, 1, 3


def batches_of(path: Path) -> list[bytes]:
    return [bytes(found.data) for found in scan_batches(path.read_bytes()) if isinstance(found, ScannedBatch)]


def changed(change: Callable[[list[bytes]], None], name: str = FIRST) -> Callable[[Path], None]:
    """A fault: the segment's batches after `change`."""

    def plant(folder: Path) -> None:
        path = folder / f"{name}.log"
        batches = batches_of(path)
        change(batches)
        path.write_bytes(b"".join(batches))

    return plant


def changed_bytes(file: str, change: Callable[[bytearray], None]) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        path = snapshot_path(folder) if file == "snapshot" else folder / file
        data = bytearray(path.read_bytes())
        change(data)
        path.unlink()
        path.write_bytes(data)

    return plant


def flip(data: bytearray, position: int) -> None:
    data[position] ^= 1


def swap(batches: list[bytes], one: int, other: int) -> None:
    batches[one], batches[other] = batches[other], batches[one]


def set_epoch(batches: list[bytes], index: int, epoch: int) -> None:
    batches[index] = rewrite_offsets(batches[index], int.from_bytes(batches[index][:8], "big"), epoch)


def set_header(batches: list[bytes], index: int, position: int, layout: str, value: int) -> None:
    data = bytearray(batches[index])
    struct.pack_into(layout, data, position, value)
    batches[index] = with_valid_crc(bytes(data))


def put(batches: list[bytes], index: int, *values: bytes) -> None:
    """Other records in the place of a batch of as many."""
    base = int.from_bytes(batches[index][:8], "big")
    epoch = int.from_bytes(batches[index][12:16], "big")
    built = LogBuilder(next_offset=base, epoch=epoch).values(1500, *values)
    batches[index] = bytes(built.data)


def raw_record(batches: list[bytes], index: int, payload: bytes) -> None:
    base = int.from_bytes(batches[index][:8], "big")
    batches[index] = rewrite_offsets(batch_of(payload, base_offset=base), base, 1)


def move_index_entry(data: bytearray) -> None:
    relative, position = struct.unpack_from(">ii", data)
    struct.pack_into(">ii", data, 0, relative, position + 7)


def move_time_entry(data: bytearray) -> None:
    timestamp_ms, relative = struct.unpack_from(">qi", data)
    struct.pack_into(">qi", data, 0, timestamp_ms, relative + 1)


def without_record(folder: Path) -> None:
    """A snapshot of the same name that lacks its last record, and is otherwise perfect."""
    path = snapshot_path(folder)
    reader = SnapshotReader(path.read_bytes())
    values = list(reader.values())[:-1]
    snapshot_id = snapshot_id_of(path.name)
    assert snapshot_id is not None
    writer = SnapshotWriter(
        snapshot_id,
        timestamp_ms=5,
        last_contained_log_timestamp_ms=reader.last_contained_log_timestamp_ms,
    )
    path.unlink()
    path.write_bytes(b"".join(writer.write(values)))


def snapshot_batches(change: Callable[[list[bytes]], None]) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        path = snapshot_path(folder)
        batches = batches_of(path)
        change(batches)
        path.unlink()
        path.write_bytes(b"".join(batches))

    return plant


def renamed(name: str) -> Callable[[Path], None]:
    return lambda folder: snapshot_path(folder).rename(folder / name) and None


def written(file: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / file).write_text(text) and None


def removed(file: str) -> Callable[[Path], None]:
    return lambda folder: (folder / file).unlink()


def in_its_place(file: str) -> Callable[[Path], None]:
    """A fault: a folder in the place of a file."""

    def plant(folder: Path) -> None:
        path = snapshot_path(folder) if file == "snapshot" else folder / file
        path.unlink()
        path.mkdir()

    return plant


def without_middle_segment(folder: Path) -> None:
    """The second segment is divided at offset 120, and its first part is gone."""
    path = folder / f"{SECOND}.log"
    batches = [batch for batch in batches_of(path) if int.from_bytes(batch[:8], "big") >= 120]
    (folder / f"{120:020d}.log").write_bytes(b"".join(batches))
    for suffix in (".log", ".index", ".timeindex"):
        (folder / f"{SECOND}{suffix}").unlink()


def trimmed_without_snapshot(folder: Path) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        (folder / f"{FIRST}{suffix}").unlink()
    snapshot_path(folder).unlink()


def flip_in(batches: list[bytes], index: int, position: int) -> None:
    data = bytearray(batches[index])
    data[position] ^= 1
    batches[index] = bytes(data)


def raw_control(batches: list[bytes], index: int) -> None:
    base = int.from_bytes(batches[index][:8], "big")
    payload = bytes((24, 0, 0, 0, 8)) + b"\0\0\0\x09" + bytes((2,)) + b"\x01" + b"\0"
    payload = bytes((2 * (len(payload) - 1),)) + payload[1:]
    batches[index] = rewrite_offsets(batch_of(payload, base_offset=base, attributes=0x20), base, 1)
