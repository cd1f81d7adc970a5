"""A log read in pieces while it grows gives the rows of the whole log, each once; a log that was cut is reported."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kquorum.spark_replay.decode.sources import METADATA_FOLDER, find_log_files
from kquorum.spark_replay.stream.read_positions import (
    TruncatedLog,
    latest_positions,
    positions_from_json,
    positions_to_json,
)
from kquorum.spark_replay.stream.reader import (
    Piece,
    piece_from_json,
    piece_to_json,
    pieces_between,
    read_piece,
    tail_pieces,
)
from kquorum.wire.metadata_records.features import NoOpRecord
from tests.support.sample_logs import LogBuilder
from tests.support.spark.growing_log import GrowingLog
from tests.support.spark.random_history import write_random_history, write_random_trimmed_history
from tests.support.spark.whole_rows import SCHEMAS, rows_of, rows_of_whole


def rows_of_pieces(pieces: Sequence[Piece]) -> list[tuple[str, Any]]:
    copies = [piece_from_json(piece_to_json(piece)) for piece in pieces]
    return [item for piece in copies for item in read_piece(piece, SCHEMAS, show_secrets=False)]


class Reader:
    """What Spark does with the stream reader: from offset to offset, each through JSON."""

    def __init__(self, root: Path, split_bytes: int) -> None:
        self.root = root
        self.split_bytes = split_bytes
        self.offset = positions_to_json({})

    def plan(self) -> tuple[dict[str, Any], list[Piece]]:
        before = positions_from_json(json.loads(json.dumps(self.offset)))
        latest = positions_to_json(latest_positions(find_log_files(self.root), before))
        return latest, self.pieces(latest)

    def pieces(self, latest: dict[str, Any]) -> list[Piece]:
        start, end = (positions_from_json(json.loads(json.dumps(each))) for each in (self.offset, latest))
        return pieces_between(start, end, find_log_files(self.root), self.split_bytes)

    def read(self) -> list[tuple[str, Any]]:
        latest, pieces = self.plan()
        self.offset = latest
        return rows_of_pieces(pieces)

    def tail(self) -> list[tuple[str, Any]]:
        return rows_of_pieces(tail_pieces(positions_from_json(self.offset), find_log_files(self.root)))


def damaged(folder: Path, random: Random) -> None:
    """Some bytes flipped, anywhere but in the tail of the last segment, which nothing sound would follow."""
    for path in sorted((folder / METADATA_FOLDER).glob("*.log")):
        data = bytearray(path.read_bytes())
        for _ in range(random.randint(0, 2)):
            data[random.randrange(len(data) * 3 // 4)] ^= 1 << random.randrange(8)
        path.write_bytes(data)


@pytest.mark.parametrize("seed", range(12))
def test_pieces_of_a_growing_log_are_the_whole_log(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    write = write_random_trimmed_history if seed % 2 else write_random_history
    whole = write(tmp_path / "whole" / "node-1", seed=seed, operations=60)
    if seed % 3 == 2:
        damaged(whole, random)
    log = GrowingLog(whole, tmp_path / "shown" / "node-1", random)
    reader = Reader(tmp_path / "shown" / "node-1", random.choice([700, 1 << 30]))
    read: list[tuple[str, Any]] = []
    steps = 0
    for _ in log.steps():
        steps += 1
        read += reader.read()
        if random.random() < 0.2:
            log.remove_old()
    read += reader.read()
    read += reader.tail()
    assert steps > 5
    expected, found = rows_of_whole(whole), rows_of(read)
    for kind in SCHEMAS:
        assert found[kind] == expected[kind], kind
    assert reader.read() == []


def log_folder(root: Path) -> Path:
    folder = root / "node-1" / METADATA_FOLDER
    folder.mkdir(parents=True)
    return folder


def noops(log: LogBuilder, count: int) -> LogBuilder:
    for _ in range(count):
        log.records(1000 + log.next_offset, NoOpRecord())
    return log


def test_a_micro_batch_read_again_has_the_same_rows_though_the_log_has_grown(tmp_path: Path) -> None:
    folder = log_folder(tmp_path)
    log = noops(LogBuilder(), 5)
    (folder / f"{0:020d}.log").write_bytes(log.data)
    reader = Reader(tmp_path / "node-1", 1 << 20)
    latest, pieces = reader.plan()
    first = rows_of(rows_of_pieces(pieces))
    noops(log, 3)
    (folder / f"{0:020d}.log").write_bytes(log.data)
    (folder / f"{log.next_offset:020d}.log").write_bytes(noops(LogBuilder(log.next_offset), 2).data)
    assert rows_of(rows_of_pieces(reader.pieces(latest))) == first
    assert [row["offset"] for row in first["record"]] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("cut", [1, 30])
def test_a_torn_tail_waits_for_the_rest_of_the_write(tmp_path: Path, cut: int) -> None:
    folder = log_folder(tmp_path)
    log = noops(LogBuilder(), 3)
    (folder / f"{0:020d}.log").write_bytes(log.data[:-cut])
    reader = Reader(tmp_path / "node-1", 1 << 20)
    found = rows_of(reader.read())
    assert ([row["offset"] for row in found["record"]], found["damage"]) == ([0, 1], [])
    assert [(row["kind"], row["offset"]) for row in rows_of(reader.tail())["damage"]] == [("torn", 2)]
    (folder / f"{0:020d}.log").write_bytes(log.data)
    found = rows_of(reader.read())
    assert ([row["offset"] for row in found["record"]], found["damage"]) == ([2], [])


@pytest.mark.parametrize("at", [8, 16])
def test_a_broken_header_is_damage_once_a_sound_batch_follows(tmp_path: Path, at: int) -> None:
    folder = log_folder(tmp_path)
    path, data = folder / f"{0:020d}.log", bytearray(noops(LogBuilder(), 6).data)
    size = len(data) // 6
    data[3 * size + at] ^= 1
    path.write_bytes(data[: 4 * size])
    reader = Reader(tmp_path / "node-1", 1 << 30)
    assert {kind for kind, _ in reader.read()} == {"record", "batch"}
    assert reader.read() == []
    path.write_bytes(data)
    rows = rows_of(reader.read())
    assert [row["position"] for row in rows["damage"]] == [3 * size]
    assert [row["base_offset"] for row in rows["batch"]] == [4, 5]
    assert reader.read() == []
    assert reader.tail() == []


def test_a_torn_tail_is_damage_once_a_sound_batch_follows_in_the_next_segment(tmp_path: Path) -> None:
    folder = log_folder(tmp_path)
    log = noops(LogBuilder(), 3)
    (folder / f"{0:020d}.log").write_bytes(log.data[:-5])
    reader = Reader(tmp_path / "node-1", 1 << 20)
    reader.read()
    (folder / f"{2:020d}.log").write_bytes(b"")
    assert reader.read() == []
    (folder / f"{2:020d}.log").write_bytes(noops(LogBuilder(2), 2).data)
    found = rows_of(reader.read())
    assert [row["offset"] for row in found["record"]] == [2, 3]
    assert [(row["kind"], row["offset"]) for row in found["damage"]] == [("torn", 2)]


def rewritten(folder: Path) -> None:
    """The last two batches cut off, and others of another epoch written there."""
    log = noops(LogBuilder(), 3)
    log.epoch = 2
    (folder / f"{0:020d}.log").write_bytes(noops(log, 4).data)


def cut_only(folder: Path) -> None:
    (folder / f"{0:020d}.log").write_bytes(noops(LogBuilder(), 3).data)


def test_a_tail_that_was_cut_off_is_reported_with_the_offset_and_the_remedy(tmp_path: Path) -> None:
    for change in (rewritten, cut_only):
        folder = log_folder(tmp_path / change.__name__)
        (folder / f"{0:020d}.log").write_bytes(noops(LogBuilder(), 5).data)
        reader = Reader(folder.parent, 1 << 20)
        reader.read()
        change(folder)
        with pytest.raises(TruncatedLog, match=r"below offset 5.*another folder"):
            reader.read()
        with pytest.raises(TruncatedLog, match="below offset 5"):
            reader.pieces(reader.offset)


def test_a_segment_that_was_cut_off_whole_is_reported_and_one_that_retention_took_is_not(
    tmp_path: Path,
) -> None:
    folder = log_folder(tmp_path)
    log = noops(LogBuilder(), 5)
    (folder / f"{0:020d}.log").write_bytes(log.data)
    (folder / f"{5:020d}.log").write_bytes(noops(LogBuilder(5), 2).data)
    reader = Reader(tmp_path / "node-1", 1 << 20)
    reader.read()
    (folder / f"{9:020d}.log").write_bytes(noops(LogBuilder(9), 2).data)
    (folder / f"{0:020d}.log").unlink()
    (folder / f"{5:020d}.log").unlink()
    assert [row["offset"] for row in rows_of(reader.read())["record"]] == [9, 10]
    (folder / f"{0:020d}.log").write_bytes(log.data)
    (folder / f"{9:020d}.log").unlink()
    with pytest.raises(TruncatedLog, match=rf"below offset 11.*{9:020d}.log is not there"):
        reader.read()


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_batch_with_a_wrong_offset_is_reported_once_wherever_the_reading_paused(
    tmp_path: Path, cut: int
) -> None:
    """The scan believes no offset after a wrong one, so it must not start again behind it."""
    folder = log_folder(tmp_path)
    data = noops(LogBuilder(), 8).data
    size = len(data) // 8
    data[3 * size : 3 * size + 8] = (50).to_bytes(8, "big")
    segment = folder / f"{0:020d}.log"
    segment.write_bytes(data[: cut * size])
    reader = Reader(tmp_path / "node-1", 1 << 20)
    read = reader.read()
    segment.write_bytes(data)
    read += reader.read()
    expected = rows_of_whole(tmp_path / "node-1")
    assert len(expected["damage"]) == 1
    assert rows_of(read) == expected
