"""The archive of metadata logs: what each run copies, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kquorum.spark_replay.archive.archiving import archive
from kquorum.spark_replay.archive.files import ArchiveFiles, Digest
from kquorum.spark_replay.archive.manifest import RunEntry, read_manifest
from kquorum.spark_replay.archive.report import MemberReport
from kquorum.spark_replay.archive.verify import verify_archive
from kquorum.spark_replay.decode.members import member_of
from kquorum.spark_replay.decode.sources import find_log_files
from tests.support.node_logs import NodeLog, flip


@pytest.fixture
def node(tmp_path: Path) -> NodeLog:
    """Closed segments [0, 3) and [3, 7), and two records in the active one."""
    return NodeLog(tmp_path / "node-1").fill(3, 4, 2)


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def run(node: NodeLog, to: Path, *, include_active: bool = False) -> MemberReport:
    (report,) = archive([node.folder], to, include_active=include_active).members
    return report


def copied(report: MemberReport) -> list[tuple[str, int | None, int | None]]:
    return [(entry.name[-10:], entry.base_offset, entry.end_offset) for entry in report.copied]


def archived_names(to: Path) -> list[tuple[str, str]]:
    return [(file.source, file.name) for file in find_log_files(to)]


def findings(to: Path) -> list[tuple[str, str]]:
    return [(finding.kind, finding.path) for finding in verify_archive(to).findings]


def test_closed_segments_and_snapshots_are_copied_and_the_active_segment_is_not(
    node: NodeLog, to: Path
) -> None:
    snapshot = node.take_snapshot()
    report = run(node, to)
    assert copied(report) == [("000000.log", 0, 3), ("000003.log", 3, 7), ("checkpoint", None, 9)]
    assert (report.folder, report.node_id) == ("node-1", 1)
    assert (report.archived_from, report.archived_to, report.not_archived_from) == (0, 7, 7)
    folder = to / "node-1" / "__cluster_metadata-0"
    for name in ("00000000000000000000.log", "00000000000000000003.log", snapshot.name):
        assert (folder / name).read_bytes() == (node.log / name).read_bytes()
    assert not (folder / node.active.name).exists()
    assert member_of(folder) == member_of(node.log)
    assert findings(to) == []


def test_a_second_run_copies_nothing_and_leaves_the_manifest_as_it_is(node: NodeLog, to: Path) -> None:
    run(node, to)
    before = (to / "archive.jsonl").read_bytes()
    report = run(node, to)
    assert (report.copied, report.unchanged) == ((), 2)
    assert (to / "archive.jsonl").read_bytes() == before


def test_each_run_copies_what_was_closed_since_and_keeps_what_the_source_removed(
    node: NodeLog, to: Path
) -> None:
    run(node, to)
    node.roll()
    node.append(5)
    node.remove(0)
    report = run(node, to)
    assert copied(report) == [("000007.log", 7, 9)]
    assert (report.archived_from, report.archived_to, report.not_archived_from) == (0, 9, 9)
    assert (report.gone_at_source, report.unchanged, report.gaps) == (1, 1, ())
    assert [name for _, name in archived_names(to)] == [f"{base:020d}.log" for base in (0, 3, 7)]
    assert findings(to) == []


def test_the_active_segment_is_a_piece_that_later_runs_replace(node: NodeLog, to: Path) -> None:
    with node.active.open("ab") as file:
        file.write(b"half a batch")
    report = run(node, to, include_active=True)
    assert copied(report)[-1] == ("000007.log", 7, 9)
    assert [entry.is_open for entry in report.copied] == [False, False, True]
    assert (to / "node-1" / "__cluster_metadata-0" / node.active.name).read_bytes() == (
        node.active.read_bytes()[: -len(b"half a batch")]
    )
    assert run(node, to, include_active=True).copied == ()
    node.active.write_bytes(node.active.read_bytes()[: -len(b"half a batch")])
    node.append(1)
    assert (
        run(node, to).copied == ()
    )  # an open piece stays what it is until the segment is closed, or asked for again
    assert copied(run(node, to, include_active=True)) == [("000007.log", 7, 10)]
    node.roll()
    (entry,) = run(node, to).copied
    assert (entry.base_offset, entry.end_offset, entry.is_open) == (7, 10, False)
    assert findings(to) == []


def test_an_uncommitted_tail_that_was_archived_while_open_is_replaced_and_reported(
    node: NodeLog, to: Path
) -> None:
    run(node, to, include_active=True)
    node.active.write_bytes(b"")
    node.next_offset = 7
    node.append(2, seed=99)
    node.roll()
    report = run(node, to)
    assert copied(report) == [("000007.log", 7, 9)]
    assert ["not committed" in note for note in report.notes] == [True]
    assert findings(to) == []


def test_members_of_one_quorum_stay_apart(node: NodeLog, to: Path, tmp_path: Path) -> None:
    other = NodeLog(tmp_path / "elsewhere" / "metadata", node_id=2).fill(2, 2)
    archive([node.folder, other.folder], to)
    assert archived_names(to) == [
        ("node-1", "00000000000000000000.log"),
        ("node-1", "00000000000000000003.log"),
        ("node-2", "00000000000000000000.log"),
    ]


def test_the_disk_that_a_node_got_in_place_of_a_lost_one_begins_another_log(to: Path, tmp_path: Path) -> None:
    run(NodeLog(tmp_path / "old", directory_id="old").fill(3, 4, 2), to)
    new = NodeLog(tmp_path / "new", directory_id="new").fill(5, 5)
    assert run(new, to).folder == "node-1.2"
    assert run(new, to).folder == "node-1.2"
    assert findings(to) == []


def test_a_log_that_says_nothing_of_its_node_is_known_by_its_place(
    node: NodeLog, to: Path, tmp_path: Path
) -> None:
    (node.folder / "meta.properties").unlink()
    (tmp_path / "racks" / "one").mkdir(parents=True)
    moved = node.folder.rename(tmp_path / "racks" / "one" / "data")
    archive([tmp_path / "racks"], to)
    for root in (tmp_path / "racks" / "one", moved):
        (report,) = archive([root], to).members
        assert (report.folder, report.unchanged) == ("one-data", 2)


def test_a_directory_id_that_an_upgrade_wrote_is_of_the_same_disk(node: NodeLog, to: Path) -> None:
    run(node, to)
    with (node.folder / "meta.properties").open("a") as file:
        file.write("directory.id=given\n")
    report = run(node, to)
    assert (report.folder, report.directory_id, report.unchanged) == ("node-1", "given", 2)
    assert findings(to) == []


def test_a_gap_is_archived_noted_once_and_reported_with_its_offsets(node: NodeLog, to: Path) -> None:
    run(node, to)
    node.roll()
    node.append(4)
    node.roll()
    node.append(1)
    node.roll()
    node.remove(0, 3, 7, 9)
    first = archive([node.folder], to)
    (report,) = first.members
    assert [(gap.from_offset, gap.to_offset, gap.is_new, gap.others) for gap in report.gaps] == [
        (7, 13, True, ())
    ]
    assert copied(report) == [("000013.log", 13, 14)]
    assert first.is_troubled
    again = archive([node.folder], to)
    assert [gap.is_new for gap in again.members[0].gaps] == [False]
    assert not again.is_troubled
    verified = verify_archive(to)
    assert verified.findings == ()
    assert [(gap.from_offset, gap.to_offset) for gap in verified.members[0].gaps] == [(7, 13)]


def test_what_one_member_lost_another_may_have(node: NodeLog, to: Path, tmp_path: Path) -> None:
    other = NodeLog(tmp_path / "node-2", node_id=2).fill(5, 5, 1)
    run(node, to)
    node.roll()
    node.roll(at=9)
    node.remove(7)
    node.append(1)
    node.roll()
    gaps = archive([node.folder, other.folder], to).members[0].gaps
    assert [(gap.from_offset, gap.to_offset, gap.others) for gap in gaps] == [(7, 9, ("node-2",))]


def test_a_gap_before_the_active_segment_is_known_before_that_is_closed(node: NodeLog, to: Path) -> None:
    run(node, to)
    node.roll()
    node.remove(7)
    (gap,) = run(node, to).gaps
    assert (gap.from_offset, gap.to_offset) == (7, 9)


def test_a_damaged_segment_is_archived_unchanged_and_reported(node: NodeLog, to: Path) -> None:
    flip(node.segment(3), 100)
    result = archive([node.folder], to)
    damaged = [entry for entry in result.members[0].copied if entry.damaged_places]
    assert [(entry.base_offset, entry.damaged_places) for entry in damaged] == [(3, 1)]
    assert damaged[0].damage[0].startswith("position 72: ")
    assert result.is_troubled
    assert findings(to) == []
    assert [each.name for each in verify_archive(to).members[0].damaged] == ["00000000000000000003.log"]


class NodeAtWork(ArchiveFiles):
    """Does something to the source the moment a copy of `name` begins."""

    def __init__(self, name: str, act: Callable[[], object]) -> None:
        self._name = name
        self._act = act

    def copy(self, source: Path, target: Path, limit: int | None = None) -> Digest:
        if source.name == self._name:
            self._act()
        return super().copy(source, target, limit)


def test_a_segment_that_is_removed_while_it_is_copied_becomes_a_gap(node: NodeLog, to: Path) -> None:
    disk = NodeAtWork("00000000000000000003.log", lambda: node.remove(3))
    (report,) = archive([node.folder], to, files=disk).members
    assert copied(report) == [("000000.log", 0, 3)]
    assert ["removed or changed" in note for note in report.notes] == [True]
    assert [(gap.from_offset, gap.to_offset) for gap in report.gaps] == [(3, 7)]
    assert findings(to) == []


def test_a_segment_that_changes_while_it_is_copied_is_for_the_next_run(node: NodeLog, to: Path) -> None:
    """A follower that cuts its log back, and writes on: the half of it that was read is of no use."""

    class CutBack(ArchiveFiles):
        def write(self, descriptor: int, piece: bytes) -> None:
            super().write(descriptor, piece)
            if piece == before:
                node.segment(3).write_bytes(before[:72])

    before = node.segment(3).read_bytes()
    (report,) = archive([node.folder], to, files=CutBack()).members
    assert copied(report) == [("000000.log", 0, 3)]
    assert ["removed or changed" in note for note in report.notes] == [True]
    node.segment(3).write_bytes(before)
    assert copied(run(node, to)) == [("000003.log", 3, 7)]


def test_a_base_offset_that_is_damaged_does_not_count_as_the_end(node: NodeLog, to: Path) -> None:
    """It is outside the checksum; the segment ends with the batch before it."""
    flip(node.segment(3), 3 * 72 + 6)
    (report,) = archive([node.folder], to).members
    assert copied(report) == [("000000.log", 0, 3), ("000003.log", 3, 6)]
    assert [(gap.from_offset, gap.to_offset) for gap in report.gaps] == [(6, 7)]


def test_a_segment_that_the_node_rolls_meanwhile_is_for_the_next_run(node: NodeLog, to: Path) -> None:
    disk = NodeAtWork("00000000000000000003.log", lambda: node.fill(1, 1, 1))
    (report,) = archive([node.folder], to, files=disk).members
    assert copied(report) == [("000000.log", 0, 3), ("000003.log", 3, 7)]
    assert report.not_archived_from == 7
    assert copied(run(node, to)) == [("000007.log", 7, 10), ("000010.log", 10, 11)]


def test_what_a_node_is_about_to_remove_or_notes_of_producers_is_not_archived(
    node: NodeLog, to: Path
) -> None:
    for name in ("00000000000000000001.log.deleted", "00000000000000000001.log.cleaned"):
        (node.log / name).write_bytes(b"gone")
    for name in ("00000000000000000003.snapshot", "00000000000000000001.log.swap", "leader-epoch-checkpoint"):
        (node.log / name).write_bytes(b"other")
    run(node, to)
    found = sorted(path.name for path in (to / "node-1" / "__cluster_metadata-0").iterdir())
    assert found == ["00000000000000000000.log", "00000000000000000003.log", "quorum-state"]


def test_an_index_goes_along_and_the_run_notes_what_the_node_knew(node: NodeLog, to: Path) -> None:
    node.segment(0).with_suffix(".index").write_bytes(b"12345678")
    run(node, to)
    index = to / "node-1" / "__cluster_metadata-0" / "00000000000000000000.index"
    assert index.read_bytes() == b"12345678"
    manifest = read_manifest(to)
    (entry,) = (entry for entry in manifest.entries if isinstance(entry, RunEntry))
    assert (entry.log_start_offset, entry.active_base_offset, entry.leader_epoch, entry.leader_id) == (
        *(0, 7, 7, 2),
    )
    index.write_bytes(b"12345679")
    assert findings(to) == [("changed", "node-1/__cluster_metadata-0/00000000000000000000.index")]


def test_the_manifest_is_lines_of_json_that_name_ranges_epochs_and_times(node: NodeLog, to: Path) -> None:
    run(node, to)
    lines = [json.loads(line) for line in (to / "archive.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["archive", "member", "file", "file", "run"]
    told = {key: lines[3][key] for key in ("base_offset", "end_offset", "first_epoch", "batches", "records")}
    assert told == {"base_offset": 3, "end_offset": 7, "first_epoch": 1, "batches": 4, "records": 4}
    assert (lines[3]["first_timestamp_ms"], lines[3]["last_timestamp_ms"]) == (1_000_003, 1_000_006)


def test_a_full_disk_leaves_no_half_copied_file_behind(node: NodeLog, to: Path) -> None:
    class Full(ArchiveFiles):
        def write(self, descriptor: int, piece: bytes) -> None:
            super().write(descriptor, piece[:20])
            if Path(f"/proc/self/fd/{descriptor}").readlink().name.endswith("3.log.part"):
                raise OSError(28, "No space left on device")

        def write_whole(self, path: Path, content: bytes) -> None:
            ArchiveFiles().write_whole(path, content)

    with pytest.raises(OSError, match="No space"):
        archive([node.folder], to, files=Full())
    assert not list(to.rglob("*.part"))
