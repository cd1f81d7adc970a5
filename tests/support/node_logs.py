"""The metadata folder of a node as time goes by: segments fill, are rolled and removed, snapshots are taken."""

import logging
from pathlib import Path

import pytest

from kquorum.snapshots.naming import SnapshotId
from kquorum.snapshots.writer import SnapshotWriter
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.record_frame import encode_record
from tests.support.sample_logs import LogBuilder, broker

CLUSTER = "bm9kZS1sb2dzLWNsdXN0ZQ"


class NodeLog:
    """Writes what a node would. Equal `seed`s write equal records, whatever segments they lie in."""

    def __init__(
        self, folder: Path, *, node_id: int = 1, cluster_id: str = CLUSTER, directory_id: str | None = None
    ) -> None:
        self.folder = folder
        self.log = folder / "__cluster_metadata-0"
        self.log.mkdir(parents=True)
        lines = [f"cluster.id={cluster_id}", f"node.id={node_id}", "version=1"]
        lines += [f"directory.id={directory_id}"] if directory_id is not None else []
        (folder / "meta.properties").write_text("".join(f"{line}\n" for line in lines))
        (self.log / "quorum-state").write_text(
            '{"clusterId":"","leaderId":2,"leaderEpoch":7,"votedId":-1,"data_version":0}'
        )
        self.next_offset = 0
        self.roll()

    def roll(self, at: int | None = None) -> None:
        """Begin a segment, at the end or, after what a snapshot from elsewhere brought, farther on."""
        self.next_offset = self.next_offset if at is None else at
        self.active = self.segment(self.next_offset)
        self.active.touch()

    def append(self, count: int, *, seed: int = 0) -> None:
        """Batches of one record each."""
        log = LogBuilder(next_offset=self.next_offset)
        for offset in range(self.next_offset, self.next_offset + count):
            log.records(1_000_000 + offset + seed, NoOpRecord())
        with self.active.open("ab") as file:
            file.write(log.data)
        self.next_offset = log.next_offset

    def fill(self, *counts: int) -> "NodeLog":
        """Segments of as many records, the last of them active."""
        for number, count in enumerate(counts):
            if number:
                self.roll()
            self.append(count)
        return self

    def take_snapshot(self, epoch: int = 1) -> Path:
        """Of all that is there."""
        snapshot_id = SnapshotId(self.next_offset, epoch)
        writer = SnapshotWriter(snapshot_id, timestamp_ms=5, last_contained_log_timestamp_ms=4)
        path = self.log / snapshot_id.file_name
        path.write_bytes(b"".join(writer.write([encode_record(broker(1, 1))])))
        return path

    def remove(self, *base_offsets: int) -> None:
        """What retention does."""
        for base_offset in base_offsets:
            self.segment(base_offset).unlink()

    def segment(self, base_offset: int) -> Path:
        return self.log / f"{base_offset:020d}.log"


def flip(path: Path, position: int) -> None:
    """Change one byte."""
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
