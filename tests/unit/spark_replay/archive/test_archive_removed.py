"""Segments that a node has marked as removed are archived while they are still there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kquorum.spark_replay.archive.archiving import archive
from kquorum.spark_replay.archive.files import ArchiveFiles, Digest
from kquorum.spark_replay.archive.report import MemberReport
from kquorum.spark_replay.archive.verify import verify_archive
from kquorum.spark_replay.decode.sources import find_log_files
from tests.support.node_logs import NodeLog, flip


@pytest.fixture
def node(tmp_path: Path) -> NodeLog:
    """Closed [0, 3), [3, 7), [7, 9), [9, 10), and one record in the active segment."""
    return NodeLog(tmp_path / "node-1").fill(3, 4, 2, 1, 1)


def mark(node: NodeLog, *base_offsets: int) -> None:
    """As a node does it, long before the file is gone."""
    for base_offset in base_offsets:
        node.segment(base_offset).rename(node.log / f"{base_offset:020d}.log.deleted")


def run(node: NodeLog, to: Path, *, include_active: bool = False) -> MemberReport:
    (report,) = archive([node.folder], to, include_active=include_active).members
    assert verify_archive(to).findings == ()
    return report


def ranges(report: MemberReport) -> list[tuple[int | None, int | None]]:
    return [(entry.base_offset, entry.end_offset) for entry in report.copied]


def test_history_that_is_being_removed_is_archived_with_the_rest(node: NodeLog, tmp_path: Path) -> None:
    mark(node, 0, 3)
    report = run(node, tmp_path / "archive")
    assert ranges(report) == [(0, 3), (3, 7), (7, 9), (9, 10)]
    assert ["about to remove" in note for note in report.notes] == [True]
    assert [file.name for file in find_log_files(tmp_path / "archive")] == [
        f"{base:020d}.log" for base in (0, 3, 7, 9)
    ]


def test_a_gap_is_closed_by_what_is_being_removed(node: NodeLog, tmp_path: Path) -> None:
    to = tmp_path / "archive"
    mark(node, 3)
    node.segment(3).with_suffix(".log.deleted").rename(tmp_path / "kept")
    assert [(gap.from_offset, gap.to_offset) for gap in run(node, to).gaps] == [(3, 7)]
    (tmp_path / "kept").rename(node.log / "00000000000000000003.log.deleted")
    report = run(node, to)
    assert (ranges(report), report.gaps) == ([(3, 7)], ())


def test_what_was_cut_off_the_end_of_the_log_is_not_history(node: NodeLog, tmp_path: Path) -> None:
    """A voter that followed another leader: offsets 9 on were never committed, and are written again."""
    mark(node, 9, 10)
    node.next_offset = 7
    node.segment(7).unlink()
    node.roll()
    node.append(4, seed=9)
    node.roll()
    assert ranges(run(node, tmp_path / "archive")) == [(0, 3), (3, 7), (7, 11)]


def test_a_removed_segment_that_is_damaged_or_joins_nothing_is_left(node: NodeLog, tmp_path: Path) -> None:
    mark(node, 0, 3)
    flip(node.log / "00000000000000000003.log.deleted", 100)
    assert ranges(run(node, tmp_path / "archive")) == [(7, 9), (9, 10)]


def test_an_open_piece_is_replaced_by_the_whole_segment_though_that_is_being_removed(
    node: NodeLog, tmp_path: Path
) -> None:
    to = tmp_path / "archive"
    assert ranges(run(node, to, include_active=True))[-1] == (10, 11)
    node.append(2)
    node.roll()
    node.append(1)
    mark(node, 10)
    report = run(node, to)
    assert (ranges(report), report.gaps) == ([(10, 13)], ())
    assert [entry.is_open for entry in report.copied] == [False]


class MarksMeanwhile(ArchiveFiles):
    """The node marks a segment as removed just before it is copied."""

    def __init__(self, name: str, mark: Callable[[], None]) -> None:
        self._name = name
        self._mark = mark

    def copy(self, source: Path, target: Path, limit: int | None = None) -> Digest:
        if source.name == self._name:
            self._mark()
        return super().copy(source, target, limit)


def test_a_segment_that_is_marked_while_it_is_copied_is_copied_all_the_same(
    node: NodeLog, tmp_path: Path
) -> None:
    disk = MarksMeanwhile("00000000000000000003.log", lambda: mark(node, 3))
    (report,) = archive([node.folder], tmp_path / "archive", files=disk).members
    assert (ranges(report), report.gaps, report.notes) == ([(0, 3), (3, 7), (7, 9), (9, 10)], (), ())
