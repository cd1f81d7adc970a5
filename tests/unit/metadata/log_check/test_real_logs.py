"""The logs of real Kafka clusters: every one replays, and snapshots agree with the log before them."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.records import image_values
from kquorum.metadata.loader import MetadataLoader
from kquorum.snapshots.bootstrap import read_bootstrap_checkpoint, write_bootstrap_checkpoint
from kquorum.snapshots.naming import snapshot_id_of
from kquorum.snapshots.reader import SnapshotReader
from kquorum.wire.log_batch import parse_batches
from kquorum.wire.record_batch import read_batch_header
from tests.support.image_records import image_from_values, image_records

LOG_NAME = "00000000000000000000.log"
# Where they stand in a batch header.
CRC = range(17, 21)
TIMESTAMPS = range(27, 43)


def folders(real_logs: Path) -> list[Path]:
    found = sorted(path.parent for path in real_logs.glob(f"*/__cluster_metadata-0/{LOG_NAME}"))
    assert found, "the fixture promises logs"
    return found


def images(folder: Path, wanted: set[int]) -> dict[int, MetadataImage]:
    """The image at each wanted end offset, and the last one under -1."""
    loader = MetadataLoader()
    found: dict[int, MetadataImage] = {}
    batches = parse_batches((folder / LOG_NAME).read_bytes())
    ends = [
        0,
        *sorted(at + 1 for at, batch in enumerate(batches) if batch.next_offset in wanted),
        len(batches),
    ]
    for start, end in pairwise(ends):
        loader.handle_commit(batches[start:end])
        found[loader.image.end_offset] = loader.image
    found[-1] = loader.image
    return found


def lines(image: MetadataImage) -> list[str]:
    return sorted(repr(record) for record in image_records(image))


def test_every_log_replays_to_its_last_record(real_logs: Path) -> None:
    expected = json.loads((real_logs / "expected.json").read_text())
    for folder in folders(real_logs):
        image = images(folder, set())[-1]
        counted = expected[str((folder / LOG_NAME).relative_to(real_logs))]
        assert image.provenance.last_contained_offset == counted["last"]
        assert image.cluster.brokers
        types = counted["types"]
        assert len(image.topics.by_id) == types["TopicRecord"] - types.get("RemoveTopicRecord", 0)


def test_snapshot_equals_the_replay_through_its_end(real_logs: Path) -> None:
    compared = 0
    for folder in folders(real_logs):
        found = {path: snapshot_id_of(path.name) for path in sorted(folder.glob("*.checkpoint"))}
        snapshots = {path: snapshot_id for path, snapshot_id in found.items() if snapshot_id is not None}
        replayed = images(folder, {snapshot_id.end_offset for snapshot_id in snapshots.values()})
        for path, snapshot_id in snapshots.items():
            image = replayed[snapshot_id.end_offset]
            reader = SnapshotReader(path.read_bytes())
            loaded = image_from_values(reader.values(), image.provenance)
            assert lines(loaded) == lines(image)
            assert loaded == image
            assert reader.epoch == snapshot_id.epoch == image.provenance.last_contained_epoch
            assert reader.last_contained_log_timestamp_ms == image.provenance.timestamp_ms
            compared += 1
    assert compared >= 9


def test_voters_of_one_quorum_have_one_image(real_logs: Path) -> None:
    voters = [folder for folder in folders(real_logs) if folder.parent.name.startswith("three-controllers")]
    if len(voters) < 3:
        pytest.skip("the logs of the three controllers are not all there")
    offsets = {5000, 21_000, 30_637}
    first, *others = [images(folder, offsets) for folder in voters]
    shared = [offset for offset in first if all(offset in other for other in others) and offset > 0]
    assert 30_637 in shared
    for offset in shared:
        for other in others:
            assert other[offset] == first[offset]


def test_image_of_every_log_survives_encoding_at_its_own_level(real_logs: Path) -> None:
    for folder in folders(real_logs):
        image = images(folder, set())[-1]
        assert image_from_values(image_values(image), image.provenance) == image


def test_bootstrap_checkpoints_are_written_like_kafkas(real_logs: Path) -> None:
    """Byte for byte but for the time of writing, which Kafka takes again for each batch, and the checksum over it."""
    files = sorted(real_logs.glob("*/bootstrap.checkpoint"))
    assert files
    for file in files:
        data = file.read_bytes()
        ours = write_bootstrap_checkpoint(read_bootstrap_checkpoint(data), timestamp_ms=1)
        assert without_time(ours) == without_time(data)


def without_time(data: bytes) -> bytes:
    out, position = bytearray(data), 0
    while position < len(data):
        for field in (CRC, TIMESTAMPS):
            for offset in field:
                out[position + offset] = 0
        position += read_batch_header(data, position).size_in_bytes
    return bytes(out)
