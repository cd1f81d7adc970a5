"""What the archive of metadata logs refuses, and that it leaves everything as it is."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kquorum.spark_replay.archive.archiving import ArchiveRefused, NotAnArchive, archive
from kquorum.spark_replay.archive.files import ArchiveFiles, ArchiveLocked, archive_locked, digest
from kquorum.spark_replay.archive.manifest import ManifestBroken
from kquorum.spark_replay.archive.pending import PENDING, Pending, PendingCopy
from kquorum.spark_replay.archive.plan import AnotherCluster
from kquorum.spark_replay.archive.verify import verify_archive
from kquorum.spark_replay.decode.sources import NoLogFound
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
    with archive_locked(to):
        with pytest.raises(ArchiveLocked, match="is at work"):
            archive([node.folder], to)
        with pytest.raises(ArchiveLocked):
            verify_archive(to)
    with archive_locked(to, shared=True):
        assert verify_archive(to).findings == ()


def forged(to: Path, base_offset: int) -> Path:
    """A segment that another process has put into the archive."""
    return to / "node-1" / "__cluster_metadata-0" / f"{base_offset:020}.log"


def test_a_segment_that_no_run_copied_is_not_entered(node: NodeLog, to: Path) -> None:
    node.remove(0)
    run(node, to)
    forged(to, 0).write_bytes(NodeLog(to.parent / "forged").fill(3).segment(0).read_bytes())
    refuses(node, to, ArchiveRefused, r"00000000000000000000.log is unlisted: .* move it out")
    forged(to, 0).unlink()
    run(node, to)
    assert verify_archive(to).findings == ()


def test_a_segment_with_other_bytes_than_the_stopped_run_copied_is_not_entered(
    node: NodeLog, to: Path
) -> None:
    run(node, to)
    path = forged(to, 0)
    pending = PendingCopy(
        member="node-1", name=path.name, size_in_bytes=path.stat().st_size, sha256="0" * 64, is_open=False
    )
    manifest = (to / "archive.jsonl").read_text().splitlines(keepends=True)
    (to / "archive.jsonl").write_text("".join(manifest[:2]))
    Pending(to).note(ArchiveFiles(), pending)
    node.remove(0)
    refuses(node, to, ArchiveRefused, r"00000000000000000000.log is unlisted")
    Pending(to).note(ArchiveFiles(), replace(pending, sha256=digest(path).sha256))
    run(node, to)
    assert verify_archive(to).findings == ()
    assert not (to / PENDING).exists()


def test_what_a_stopped_run_copied_is_not_entered_over_archived_offsets(node: NodeLog, to: Path) -> None:
    run(node, to)
    path = forged(to, 2)
    other = NodeLog(to.parent / "other")
    other.segment(0).unlink()
    other.roll(at=2)
    other.append(2)
    path.write_bytes(other.segment(2).read_bytes())
    found = digest(path)
    Pending(to).note(
        ArchiveFiles(),
        PendingCopy(
            member="node-1",
            name=path.name,
            size_in_bytes=found.size_in_bytes,
            sha256=found.sha256,
            is_open=False,
        ),
    )
    refuses(node, to, ArchiveRefused, "00000000000000000002.log and the archived .* have offsets from")


def test_a_torn_line_of_the_pending_copies_is_left_out(to: Path) -> None:
    to.mkdir()
    copy = PendingCopy(member="m", name="a", size_in_bytes=1, sha256="0" * 64, is_open=False)
    Pending(to).note(ArchiveFiles(), copy)
    whole = (to / PENDING).read_bytes()
    (to / PENDING).write_bytes(whole + whole[:20])
    Pending(to).note(ArchiveFiles(), replace(copy, name="b"))
    assert (to / PENDING).read_bytes() == whole + whole.replace(b'"a"', b'"b"')
