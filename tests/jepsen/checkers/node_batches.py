"""The metadata logs that the nodes of a run left, batch by batch, as the product's own reader finds them."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kquorum.cli.commands.log.files import MetadataLogFiles, the_log
from kquorum.raft.voters import VoterSet, voter_set_of
from kquorum.wire.control_records import VotersRecord, decode_control_record_lenient
from kquorum.wire.log_scan import Damage, ScannedBatch, scan_batches
from kquorum.wire.record_batch import read_records
from tests.jepsen.core.cluster import NODES_FOLDER

_SEGMENT_OFFSETS_MAX = 1 << 31
_DIGEST_BYTES = 16


class Batch(NamedTuple):
    """The digest is of all its bytes, those before the checksum included."""

    base_offset: int
    next_offset: int
    epoch: int
    digest: bytes


@dataclass(slots=True)
class NodeLog:
    """What one node holds. `torn` is a write that was never finished at the end of the log, which is lawful; `damaged`
    is all else that is wrong. `snapshots` are their end offsets."""

    node: int
    start: int = 0
    end: int = 0
    batches: list[Batch] = field(default_factory=list)
    voters: list[tuple[int, VoterSet]] = field(default_factory=list)
    snapshots: list[int] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    torn: str | None = None

    @property
    def is_whole(self) -> bool:
        return not self.damaged


def node_logs(folder: Path, nodes: tuple[int, ...]) -> list[NodeLog]:
    """Of the nodes of a run, whose `folder` this is. Raises CliError for a node without a log, and OSError."""
    return [read_log(node, folder / NODES_FOLDER / str(node) / "data") for node in nodes]


def read_log(node: int, data_folder: Path) -> NodeLog:
    files = the_log(data_folder)
    log = NodeLog(node, snapshots=[each.end_offset for each in files.snapshots])
    if files.segments:
        log.start = log.end = files.segments[0].base_offset or 0
    else:
        log.start = log.end = max(log.snapshots, default=0)
    for found, name, is_last in _found_in(files):
        if isinstance(found, ScannedBatch):
            _take(log, found)
        elif found.kind == "torn" and is_last:
            log.torn = f"{name}, byte {found.position}: {found.reason}"
        else:
            log.damaged.append(f"{name}, byte {found.position}: {found.reason}")
    return log


def _found_in(files: MetadataLogFiles) -> Iterator[tuple[ScannedBatch | Damage, str, bool]]:
    """With the name of the file, and whether it is the last one."""
    expected: int | None = None
    for segment in files.segments:
        content, base = Path(segment.path).read_bytes(), segment.base_offset or 0
        if expected is not None and expected != base:
            yield (
                Damage(0, expected, f"begins at offset {base} instead of {expected}", "corrupt"),
                segment.name,
                False,
            )
        expected = base
        offsets = range(base, base + _SEGMENT_OFFSETS_MAX)
        for found in scan_batches(content, base_offset=base, resync=offsets):
            if isinstance(found, ScannedBatch):
                expected = found.header.next_offset
            yield found, segment.name, segment is files.segments[-1]


def _take(log: NodeLog, found: ScannedBatch) -> None:
    header = found.header
    digest = hashlib.blake2b(found.data, digest_size=_DIGEST_BYTES).digest()
    log.batches.append(Batch(header.base_offset, header.next_offset, header.partition_leader_epoch, digest))
    log.end = header.next_offset
    if not header.is_control:
        return
    for record in read_records(found.data, 0, header):
        decoded = decode_control_record_lenient(record.key, record.value).record
        if isinstance(decoded, VotersRecord):
            log.voters.append((record.offset, voter_set_of(decoded)))
