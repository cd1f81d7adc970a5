"""Bytes flipped in what Apache Kafka wrote: in its log and in its snapshots, none is taken for what was meant."""

from pathlib import Path
from random import Random

import pytest

from raft.adapters.errors import DamagedRange
from raft.adapters.file_log import FileLog
from raft.adapters.snapshot_files import problem_of
from tests.unit.raft_adapters.log_folders import FIRST
from wire.log_scan import ScannedBatch, scan_batches

SNAPSHOT = "00000000000000028869-0000000189.checkpoint"


def opened(folder: Path) -> DamagedRange | None:
    log = FileLog(folder, on_damage="report")
    log.close()
    assert log.recovered_cut_bytes == 0
    return log.damage


def test_a_flipped_byte_of_a_log_that_kafka_wrote_is_found(real_logs: Path, tmp_path: Path) -> None:
    content = (real_logs / "early-3.0" / "__cluster_metadata-0" / FIRST).read_bytes()
    path = tmp_path / FIRST
    path.write_bytes(content)
    assert opened(tmp_path) is None, "and from here on it is known how far it was durable"
    dice = Random(3)
    for _ in range(60):
        position = dice.randrange(len(content))
        damaged = bytearray(content)
        damaged[position] ^= dice.randint(1, 255)
        path.write_bytes(damaged)
        damage = opened(tmp_path)
        assert damage is not None, position
        assert damage.position <= position
        assert path.read_bytes() == damaged


def check_flipped(path: Path, content: bytes, positions: list[int], dice: Random) -> None:
    for position in positions:
        damaged = bytearray(content)
        damaged[position] ^= dice.randint(1, 255)
        path.write_bytes(damaged)
        assert problem_of(path, 189) is not None, position


def test_a_flipped_byte_of_a_snapshot_that_kafka_wrote_is_found(real_logs: Path, tmp_path: Path) -> None:
    content = (real_logs / "three-controllers-1" / "__cluster_metadata-0" / SNAPSHOT).read_bytes()
    path = tmp_path / SNAPSHOT
    path.write_bytes(content)
    assert problem_of(path, 189) is None
    starts = [found.position for found in scan_batches(content) if isinstance(found, ScannedBatch)]
    headers = [start + offset for start in starts for offset in range(61)]
    dice = Random(4)
    check_flipped(path, content, [*headers, *dice.sample(range(len(content)), 200)], dice)


@pytest.mark.parametrize("batches", [0, 1, 2])
def test_a_snapshot_cut_between_batches_was_never_finished(
    real_logs: Path, tmp_path: Path, batches: int
) -> None:
    content = (real_logs / "three-controllers-1" / "__cluster_metadata-0" / SNAPSHOT).read_bytes()
    starts = [found.position for found in scan_batches(content) if isinstance(found, ScannedBatch)]
    path = tmp_path / SNAPSHOT
    path.write_bytes(content[: starts[batches]])
    assert problem_of(path, 189) is not None
