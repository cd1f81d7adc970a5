"""A run of the archive that is stopped at any step, as by kill -9, and the run after it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kquorum.spark_replay.archive.archiving import archive
from kquorum.spark_replay.archive.files import ArchiveFiles
from kquorum.spark_replay.archive.verify import verify_archive
from kquorum.spark_replay.decode.sources import find_log_files
from tests.support.node_logs import NodeLog


class Stopped(BaseException):
    """Not an error: nothing may tidy up behind it, as nothing would behind a kill."""


class StopsAt(ArchiveFiles):
    """Stops before operation number `stop_at`, or in the midst of it where that is a write."""

    def __init__(self, stop_at: int, *, midway: bool) -> None:
        self.operations = 0
        self._stop_at = stop_at
        self._midway = midway

    def _step(self) -> bool:
        """Whether to stop now."""
        self.operations += 1
        return self.operations > self._stop_at

    def write(self, descriptor: int, piece: bytes) -> None:
        if self._step():
            if self._midway:
                os.write(descriptor, piece[: len(piece) // 2])
            raise Stopped
        super().write(descriptor, piece)

    def flush(self, descriptor: int) -> None:
        if self._step():
            raise Stopped
        super().flush(descriptor)

    def sync_folder(self, folder: Path) -> None:
        if self._step():
            raise Stopped
        super().sync_folder(folder)

    def rename(self, path: Path, target: Path) -> None:
        if self._step():
            raise Stopped
        super().rename(path, target)

    def remove(self, path: Path) -> None:
        if self._step():
            raise Stopped
        super().remove(path)

    def make_folder(self, folder: Path) -> None:
        if self._step():
            raise Stopped
        super().make_folder(folder)


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here pulls the plug; a thousand flushes take half a minute."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


Scene = Callable[[Path], tuple[NodeLog, Path]]


def first_run(folder: Path) -> tuple[NodeLog, Path]:
    node = NodeLog(folder / "node-1").fill(3, 4, 2)
    node.take_snapshot()
    node.segment(3).with_suffix(".index").write_bytes(b"12345678")
    return node, folder / "archive"


def later_run(folder: Path) -> tuple[NodeLog, Path]:
    """An open piece to replace, new segments, one that the node has removed, and a gap."""
    node, to = first_run(folder)
    archive([node.folder], to, include_active=True)
    node.append(2)
    node.roll()
    node.append(1)
    node.roll(at=20)
    node.append(2)
    node.remove(0)
    return node, to


def stopped_everywhere(scene: Scene, folder: Path, *, midway: bool) -> Iterator[tuple[NodeLog, Path]]:
    """The scene after a run that was stopped before its first operation, its second, and so on."""
    for stop_at in range(1000):
        node, to = scene(folder / f"stopped-{stop_at}")
        try:
            archive([node.folder], to, include_active=True, files=StopsAt(stop_at, midway=midway))
        except Stopped:
            yield node, to
        else:
            assert stop_at > 10, "the run had nothing to do"
            return


def content(to: Path) -> dict[tuple[str, str], bytes]:
    return {(file.source, file.name): Path(file.path).read_bytes() for file in find_log_files(to)}


@pytest.mark.parametrize("midway", [False, True])
@pytest.mark.parametrize("scene", [first_run, later_run])
def test_the_next_run_ends_where_a_run_that_was_not_stopped_would(
    tmp_path: Path, scene: Scene, midway: bool
) -> None:
    node, to = scene(tmp_path / "whole")
    archive([node.folder], to, include_active=True)
    expected = content(to)
    for node, to in stopped_everywhere(scene, tmp_path, midway=midway):
        archive([node.folder], to, include_active=True)
        assert content(to) == expected
        verified = verify_archive(to)
        assert verified.findings == ()
        assert not list(to.rglob("*.part"))


@pytest.mark.parametrize("midway", [False, True])
def test_what_was_copied_before_the_stop_is_kept_even_if_the_node_has_removed_it(
    tmp_path: Path, midway: bool
) -> None:
    """A file with its final name may be entered already or not; it is whole, so it is entered then."""
    adopted = 0
    for node, to in stopped_everywhere(later_run, tmp_path, midway=midway):
        before = content(to).keys()
        node.remove(3, 7)
        (report,) = archive([node.folder], to, include_active=True).members
        assert before <= content(to).keys()
        assert not list(to.rglob("*.part"))
        assert verify_archive(to).findings == ()
        adopted += any("stopped before" in note for note in report.notes)
    assert adopted > 0


def test_a_stopped_run_never_leaves_an_archive_that_lies(tmp_path: Path) -> None:
    """Before the next run `verify` may find files that no line tells of, and nothing else."""
    kinds = set[str]()
    for _, to in stopped_everywhere(later_run, tmp_path, midway=True):
        kinds |= {finding.kind for finding in verify_archive(to).findings}
    assert kinds == {"unlisted"}
