"""Snapshot files in and out: under its final name there is never one that is not whole."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from kquorum.raft.adapters import snapshot_files
from kquorum.raft.adapters.snapshot_files import (
    CHECK_PAUSE,
    SnapshotGone,
    SnapshotStore,
    SnapshotUnsound,
    list_snapshots,
    problem_of,
)
from kquorum.raft.ready import SnapshotChunk
from kquorum.storage.errors import StorageFailed
from kquorum.storage.file_system import POSIX
from kquorum.wire.log_batch import OffsetAndEpoch
from tests.support.raft.log_folders import snapshot_content, write_snapshot

ID = OffsetAndEpoch(30, 1)


def chunks(content: bytes, size: int, snapshot_id: OffsetAndEpoch = ID) -> list[SnapshotChunk]:
    return [
        SnapshotChunk(
            snapshot_id,
            position,
            content[position : position + size],
            position + size >= len(content),
            len(content),
        )
        for position in range(0, len(content), size)
    ]


def test_pieces_make_a_file_that_gets_its_name_at_the_end(tmp_path: Path) -> None:
    store, content = SnapshotStore(tmp_path), snapshot_content()
    for chunk in chunks(content, 7):
        store.write_chunk(chunk)
        assert list_snapshots(tmp_path) == ()
    store.finish(ID)
    assert list_snapshots(tmp_path) == (ID,)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [content]


@pytest.mark.parametrize("harm", ["cut", "flipped", "another epoch"])
def test_what_is_no_snapshot_leaves_nothing_behind(tmp_path: Path, harm: str) -> None:
    store, content = SnapshotStore(tmp_path), snapshot_content(2 if harm == "another epoch" else 1)
    if harm == "cut":
        content = content[:-1]
    if harm == "flipped":
        content = content[:100] + bytes([content[100] ^ 1]) + content[101:]
    for chunk in chunks(content, 50):
        store.write_chunk(chunk)
    with pytest.raises(SnapshotUnsound):
        store.finish(ID)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SnapshotUnsound, match="not kept"):
        store.finish(ID)


def test_a_piece_that_does_not_follow_is_not_taken(tmp_path: Path) -> None:
    store, pieces = SnapshotStore(tmp_path), chunks(snapshot_content(), 50)
    with pytest.raises(SnapshotUnsound):
        store.write_chunk(pieces[1])
    store.write_chunk(pieces[0])
    with pytest.raises(SnapshotUnsound):
        store.write_chunk(pieces[2])
    with pytest.raises(SnapshotUnsound):
        store.write_chunk(chunks(snapshot_content(), 50, OffsetAndEpoch(31, 1))[1])


def test_position_0_starts_again(tmp_path: Path) -> None:
    store, content = SnapshotStore(tmp_path), snapshot_content()
    for chunk in chunks(content, 50)[:2] + chunks(content, 60):
        store.write_chunk(chunk)
    store.finish(ID)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [content]


def test_a_sound_snapshot_is_read_in_pieces(tmp_path: Path) -> None:
    content = write_snapshot(tmp_path, 30).read_bytes()
    store = SnapshotStore(tmp_path)
    assert store.read(ID, 0, 50) == (content[:50], len(content))
    assert store.read(ID, 50, 10_000) == (content[50:], len(content))
    assert store.read(ID, len(content), 10) == (b"", len(content))


def test_one_that_went_bad_is_never_begun_and_is_set_aside(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path, 30)
    path.write_bytes(path.read_bytes()[:-1])
    store = SnapshotStore(tmp_path)
    with pytest.raises(SnapshotGone, match="cannot be served"):
        store.read(ID, 0, 50)
    assert [each.name for each in tmp_path.iterdir()] == [path.name + ".damaged"]
    for position in (0, 10):
        with pytest.raises(SnapshotGone):
            store.read(ID, position, 50)


def test_a_large_one_is_not_checked_for_each_replica_that_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica that asked for the first byte over and over had the whole file read each time."""
    content = write_snapshot(tmp_path, 30).read_bytes()
    clock_s, checks = [0.0], [0]

    def takes_two_seconds(*arguments: Any) -> str | None:
        clock_s[0] += 2
        checks[0] += 1
        return problem_of(*arguments)

    monkeypatch.setattr(snapshot_files, "problem_of", takes_two_seconds)
    store = SnapshotStore(tmp_path, now_s=lambda: clock_s[0])
    for _ in range(100):
        assert store.read(ID, 0, 1) == (content[:1], len(content))
        clock_s[0] += 0.1
    assert checks == [1]
    clock_s[0] += 2 * CHECK_PAUSE
    store.read(ID, 0, 1)
    assert checks == [2]


def test_a_disk_that_cannot_deliver_a_snapshot_is_an_error_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it is about to be served: the node says why, and does not just vanish."""

    def fail(_descriptor: int, _buffers: list[bytearray], _position: int) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    path = write_snapshot(tmp_path, 5)
    monkeypatch.setattr(os, "preadv", fail)
    with pytest.raises(StorageFailed, match=rf"{path.name}.*Input/output error"):
        problem_of(path, 1, POSIX)


def test_nothing_is_served_through_a_link(tmp_path: Path) -> None:
    operators = tmp_path / "operator"
    operators.write_bytes(b"x" * 100)
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "00000000000000000030-0000000001.checkpoint").symlink_to(operators)
    with pytest.raises(StorageFailed, match=r"[Ss]ymbolic link"):
        SnapshotStore(tmp_path / "log").read(ID, 1, 100)
