"""`verify` finds every change that is planted in an archive, and names the file or the line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kquorum.spark_replay.archive.archiving import archive
from kquorum.spark_replay.archive.manifest import ArchiveManifest, FileEntry, read_manifest
from kquorum.spark_replay.archive.verify import NoArchive, Verified, verify_archive
from tests.support.node_logs import NodeLog, flip

FIRST, SECOND = (f"node-1/__cluster_metadata-0/{base:020d}.log" for base in (0, 3))


@pytest.fixture
def to(tmp_path: Path) -> Path:
    """Segments [0, 3), [3, 7) and [7, 9), a snapshot at 10, and an open piece."""
    node = NodeLog(tmp_path / "node-1").fill(3, 4, 2, 1)
    node.take_snapshot()
    archive([node.folder], tmp_path / "archive", include_active=True)
    return tmp_path / "archive"


def found(to: Path, head: str | None = None) -> list[tuple[str, str]]:
    return [(finding.kind, finding.path) for finding in verify_archive(to, head=head).findings]


def test_an_archive_as_it_was_made_has_nothing_to_find(to: Path) -> None:
    verified = verify_archive(to)
    assert verified.findings == ()
    (member,) = verified.members
    assert (member.segments, member.snapshots) == (4, 1)
    assert (member.archived_from, member.archived_to) == (0, 10)
    assert (member.first_timestamp_ms, member.last_timestamp_ms) == (1_000_000, 1_000_009)


@pytest.mark.parametrize("position", [0, 30, 100, -1])
def test_a_flipped_byte_wherever_it_is(to: Path, position: int) -> None:
    flip(to / SECOND, position)
    assert found(to) == [("changed", SECOND)]


def test_a_flipped_byte_in_a_snapshot_and_in_the_open_piece(to: Path) -> None:
    snapshot = "node-1/__cluster_metadata-0/00000000000000000010-0000000001.checkpoint"
    piece = "node-1/__cluster_metadata-0/00000000000000000009.log"
    flip(to / snapshot, 90)
    flip(to / piece, 60)
    assert sorted(found(to)) == [("changed", piece), ("changed", snapshot)]


def test_a_missing_file_a_shorter_one_and_one_that_was_not_archived(to: Path) -> None:
    (to / FIRST).unlink()
    (to / SECOND).write_bytes((to / SECOND).read_bytes()[:-20])
    planted = to / "node-1" / "__cluster_metadata-0" / "00000000000000000099.log"
    planted.write_bytes(b"anything")
    assert found(to) == [
        ("missing", FIRST),
        ("changed", SECOND),
        ("unlisted", "node-1/__cluster_metadata-0/00000000000000000099.log"),
    ]


def test_a_log_that_was_put_beside_the_members(to: Path, tmp_path: Path) -> None:
    NodeLog(to / "node-9").fill(1, 1)
    assert ("unlisted", "node-9/__cluster_metadata-0/00000000000000000000.log") in found(to)


def test_a_member_that_was_renamed_into_another_node(to: Path) -> None:
    properties = to / "node-1" / "meta.properties"
    properties.write_text(properties.read_text().replace("node.id=1", "node.id=4"))
    assert found(to) == [("member", "node-1")]


def edit_line(line: str) -> str:
    return line.replace('"size_in_bytes": 216', '"size_in_bytes": 217')


def rehash_line(line: str) -> str:
    """An edit by someone who puts the line's own hash right."""
    content = json.loads(line)
    content["records"] += 1
    manifest = ArchiveManifest()
    names = ("line", "previous", "kind", "hash")
    manifest.hashes.append(content["previous"])
    manifest.lines += [""] * (content["line"] - 1)
    manifest.add(FileEntry(**{key: value for key, value in content.items() if key not in names}))
    return manifest.lines[-1]


def manifest_finding(to: Path) -> str:
    (finding,) = verify_archive(to).findings
    assert (finding.kind, finding.path) == ("manifest", "archive.jsonl")
    return finding.message


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda lines: [*lines[:2], edit_line(lines[2]), *lines[3:]], "line 3: was changed"),
        (lambda lines: [*lines[:2], rehash_line(lines[2]), *lines[3:]], "line 4: does not follow"),
        (lambda lines: [*lines[:3], *lines[4:]], "line 4: does not follow"),
        (lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]], "line 3: does not follow"),
        (lambda lines: lines[1:], "line 1: does not follow"),
        (lambda lines: [*lines[:-1], lines[-1][:-30]], "cannot be read"),
        (lambda lines: [*lines, "{}"], "line 9: cannot be read"),
        (lambda lines: [*lines, "[1]"], "line 9: cannot be read"),
        (lambda lines: [], "is empty"),
    ],
)
def test_every_edit_of_the_manifest(to: Path, edit: Callable[[list[str]], list[str]], message: str) -> None:
    path = to / "archive.jsonl"
    path.write_text("".join(f"{line}\n" for line in edit(path.read_text().splitlines())))
    assert message in manifest_finding(to)


def test_a_manifest_that_ends_within_a_line_or_is_no_text(to: Path) -> None:
    path = to / "archive.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert "ends within a line" in manifest_finding(to)
    path.write_bytes(whole + b"\xff\n")
    assert "is not text" in manifest_finding(to)


def test_lines_cut_off_the_end_leave_files_that_no_line_tells_of(to: Path) -> None:
    path = to / "archive.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{line}\n" for line in lines[:3]))
    assert {kind for kind, _ in found(to)} == {"unlisted"}


def rewritten(to: Path, change: Callable[[FileEntry], dict[str, object]]) -> Verified:
    """A manifest written again by someone who knows how, with the entry of the second segment changed."""
    old, new = read_manifest(to), ArchiveManifest()
    for entry in old.entries:
        is_second = isinstance(entry, FileEntry) and entry.base_offset == 3
        if is_second and not (changes := change(entry)):  # type: ignore[arg-type]
            continue
        new.add(type(entry)(**{**_fields(entry), **changes}) if is_second else entry)  # type: ignore[arg-type]
    (to / "archive.jsonl").write_bytes(new.encode())
    return verify_archive(to, head=old.head)


def _fields(entry: object) -> dict[str, object]:
    return {name: getattr(entry, name) for name in type(entry).__slots__}  # type: ignore[attr-defined]


def test_a_manifest_written_again_is_held_to_the_files_and_to_a_head_noted_before(to: Path) -> None:
    verified = rewritten(to, lambda entry: {"records": entry.records + 1})
    assert [(finding.kind, finding.path) for finding in verified.findings] == [
        ("head", "archive.jsonl"),
        ("range", SECOND),
    ]
    assert "records" in verified.findings[1].message


def test_a_segment_that_was_removed_with_its_entry_is_a_gap_that_was_not_noted(to: Path) -> None:
    (to / SECOND).unlink()
    verified = rewritten(to, lambda entry: {})
    assert [(finding.kind, finding.path) for finding in verified.findings] == [
        ("head", "archive.jsonl"),
        ("gap", "node-1"),
    ]
    assert "offsets 3 to 6 are missing" in verified.findings[1].message


def test_a_head_noted_before_is_led_over_by_all_that_came_later(to: Path, tmp_path: Path) -> None:
    head = verify_archive(to).head
    assert head is not None
    node = NodeLog(tmp_path / "node-2", node_id=2).fill(2, 2)
    archive([node.folder], to)
    assert verify_archive(to).head != head
    assert found(to, head=head) == []
    assert found(to, head=head[:12].upper()) == []
    assert found(to, head="0123456789") == [("head", "archive.jsonl")]


def test_a_folder_without_a_manifest_is_no_archive(tmp_path: Path) -> None:
    with pytest.raises(NoArchive, match=r"there is no archive\.jsonl in it"):
        verify_archive(tmp_path)
