"""What the archive of metadata logs refuses, and that it leaves everything as it is."""

from collections.abc import Callable
from pathlib import Path

import pytest

from spark_replay.archive.archiving import ArchiveRefused, NotAnArchive, archive
from spark_replay.archive.files import ArchiveLocked, locked
from spark_replay.archive.manifest import ManifestBroken
from spark_replay.archive.plan import AnotherCluster
from spark_replay.archive.verify import verify_archive
from spark_replay.sources import NoLogFound
from tests.support.node_logs import NodeLog, flip


@pytest.fixture
def node(tmp_path: Path) -> NodeLog:
    """Closed segments [0, 3) and [3, 7), and two records in the active one."""
    return NodeLog(tmp_path / "node-1").fill(3, 4, 2)


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def run(node: NodeLog, to: Path) -> None:
    archive([node.folder], to)


def refuses(node: NodeLog, to: Path, error: type[Exception], match: str) -> None:
    """And leaves everything as it is."""
    before = {path: path.read_bytes() for path in to.rglob("*") if path.is_file()}
    with pytest.raises(error, match=match):
        archive([node.folder], to)
    assert {path: path.read_bytes() for path in to.rglob("*") if path.is_file()} == before


def test_other_bytes_in_a_segment_that_is_archived_are_refused(node: NodeLog, to: Path) -> None:
    run(node, to)
    flip(node.segment(0), 70)
    node.roll()
    refuses(node, to, ArchiveRefused, "00000000000000000000.log is not the file that was archived")


def test_a_log_that_went_back_is_refused(node: NodeLog, to: Path) -> None:
    run(node, to)
    node.active.unlink()
    node.segment(3).write_bytes(node.segment(3).read_bytes()[:-10])
    refuses(node, to, ArchiveRefused, "00000000000000000003.log is not the file that was archived")


def test_another_snapshot_of_the_same_name_is_refused(node: NodeLog, to: Path) -> None:
    snapshot = node.take_snapshot()
    run(node, to)
    flip(snapshot, 80)
    refuses(node, to, ArchiveRefused, snapshot.name)


@pytest.mark.parametrize(("seed", "match"), [(0, "cut otherwise"), (5, "differ from offset 3 on")])
def test_segments_cut_otherwise_are_refused_whatever_they_hold(
    node: NodeLog, to: Path, tmp_path: Path, seed: int, match: str
) -> None:
    run(node, to)
    other = NodeLog(tmp_path / "again")
    other.segment(0).unlink()
    other.roll(at=2)
    other.append(1)
    other.append(4, seed=seed)
    other.roll()
    refuses(other, to, ArchiveRefused, match)


def test_a_log_of_another_cluster_is_refused(node: NodeLog, to: Path, tmp_path: Path) -> None:
    run(node, to)
    other = NodeLog(tmp_path / "other", node_id=2, cluster_id="another").fill(1, 1)
    refuses(other, to, AnotherCluster, "is of cluster another")


def test_two_copies_of_one_log_are_refused(node: NodeLog, to: Path, tmp_path: Path) -> None:
    copy = NodeLog(tmp_path / "copy").fill(3, 4, 2)
    with pytest.raises(ArchiveRefused, match="are both logs of node-1"):
        archive([node.folder, copy.folder], to)


def test_an_edited_manifest_is_refused(node: NodeLog, to: Path) -> None:
    run(node, to)
    manifest = to / "archive.jsonl"
    manifest.write_text(manifest.read_text().replace('"end_offset": 7', '"end_offset": 8'))
    refuses(node, to, ManifestBroken, "line 4: was changed")


@pytest.mark.parametrize(
    ("place", "match"),
    [
        (lambda node: node.log / "archive", "one in the other"),
        (lambda node: node.folder.parent, "one in the other"),
        (lambda node: node.active, "one in the other"),
    ],
)
def test_an_archive_inside_the_log_is_refused(
    node: NodeLog, place: Callable[[NodeLog], Path], match: str
) -> None:
    with pytest.raises(NotAnArchive, match=match):
        archive([node.folder], place(node))


def test_a_folder_of_something_else_and_a_file_are_refused(node: NodeLog, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpeg").touch()
    with pytest.raises(NotAnArchive, match="neither empty nor an archive"):
        archive([node.folder], tmp_path / "photos")
    with pytest.raises(NotAnArchive, match="is a file"):
        archive([node.folder], tmp_path / "photos" / "cat.jpeg")
    with pytest.raises(NoLogFound, match="name its folder"):
        archive([node.segment(0)], tmp_path / "archive")


def test_two_runs_at_once_are_refused_and_readers_wait_for_none(node: NodeLog, to: Path) -> None:
    run(node, to)
    with locked(to):
        with pytest.raises(ArchiveLocked, match="is at work"):
            archive([node.folder], to)
        with pytest.raises(ArchiveLocked):
            verify_archive(to)
    with locked(to, shared=True):
        assert verify_archive(to).findings == ()
