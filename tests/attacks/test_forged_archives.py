"""The manifest of an archive from elsewhere must not lead a command out of the archive, nor end it in a traceback.

Each line has the hash of the line before and its own. A forger can compute both, so they show a change only to a reader
with a copy of the head.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from kquorum.spark_replay.archive.archiving import NotAnArchive, archive
from kquorum.spark_replay.archive.manifest import (
    MANIFEST,
    ArchiveEntry,
    ArchiveManifest,
    Entry,
    FileEntry,
    ManifestBroken,
    MemberEntry,
    read_manifest,
)
from kquorum.spark_replay.archive.verify import verify_archive
from kquorum.spark_replay.decode.sources import METADATA_FOLDER
from tests.support.sample_logs import write_sample

PROGRAM = Path(sys.executable).with_name("kquorum")
OUTSIDE = [
    "../outside",
    "node-1/../../outside",
    "/tmp/kquorum-outside",
    "..",
    ".",
    "",
    "a\0b",
    "node-1/",
    "ü/x",
]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """An archive of one log that has no meta.properties, so that it is known by its place alone."""
    write_sample(tmp_path / "node", torn=False)
    (tmp_path / "node" / "meta.properties").unlink(missing_ok=True)
    archive([tmp_path / "node"], tmp_path / "archive", include_active=True)
    return tmp_path / "archive"


def forge(made: Path, change: Callable[[Entry], Entry]) -> None:
    forged = ArchiveManifest()
    for entry in read_manifest(made).entries:
        forged.add(change(entry))
    (made / MANIFEST).write_bytes(forged.encode())


def with_folder(folder: str) -> Callable[[Entry], Entry]:
    def change(entry: Entry) -> Entry:
        if isinstance(entry, MemberEntry):
            return replace(entry, folder=folder)
        return entry if isinstance(entry, ArchiveEntry) else replace(entry, member=folder)

    return change


def with_value(field: str, value: object, entry: Entry) -> Entry:
    if isinstance(entry, FileEntry):
        object.__setattr__(entry, field, value)
    return entry


def all_files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def told_of(made: Path, *command: str) -> str:
    done = subprocess.run(
        [PROGRAM, "audit", *command, str(made)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode in (1, 2, 3, 74), done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def test_a_member_outside_of_the_archive_is_neither_written_nor_read(made: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    original = (made / MANIFEST).read_bytes()
    for folder in OUTSIDE:
        (made / MANIFEST).write_bytes(original)
        forge(made, with_folder(folder))
        (finding,) = verify_archive(made).findings
        assert finding.kind == "manifest", folder
        assert "line 2" in finding.message
        with pytest.raises(ManifestBroken, match=rf"{MANIFEST}, line 2"):
            archive([tmp_path / "node"], made, include_active=True)
        assert all_files(tmp_path / "outside") == {}


@pytest.mark.parametrize("name", ["/etc/passwd", "../../../etc/passwd", "..", "", "a/b", "x\0"])
def test_no_file_outside_of_the_archive_is_looked_at(made: Path, name: str) -> None:
    forge(made, lambda entry: replace(entry, name=name) if isinstance(entry, FileEntry) else entry)
    (finding,) = verify_archive(made).findings
    assert finding.kind == "manifest"


WRONG = ["text", -2, 1.5, None, [], {}, True, 2**70]


def test_a_line_with_wrong_values_is_reported_and_is_no_traceback(made: Path) -> None:
    """Some of them are lawful, and show as wrong or not when the file is read."""
    original = (made / MANIFEST).read_bytes()
    refused = 0
    for field, value in product((each.name for each in fields(FileEntry)), WRONG):
        (made / MANIFEST).write_bytes(original)
        forge(made, partial(with_value, field, value))
        findings = verify_archive(made).findings
        refused += any(finding.kind == "manifest" for finding in findings)
        assert findings or value is None or isinstance(value, str | bool) or (field, value) == ("damage", [])
    assert refused > len(fields(FileEntry)) * 4


def test_deep_json_is_reported(made: Path) -> None:
    (made / MANIFEST).write_bytes(b'{"kind":' + b"[" * 100_000 + b"\n")
    (finding,) = verify_archive(made).findings
    assert finding.kind == "manifest"


@pytest.mark.parametrize("place", ["member", "log"])
def test_a_link_in_the_archive_is_not_followed(made: Path, tmp_path: Path, place: str) -> None:
    """`audit archive` wrote where it led, and verification read there."""
    (member,) = (path for path in made.iterdir() if path.is_dir())
    linked = member if place == "member" else member / METADATA_FOLDER
    linked.rename(tmp_path / "elsewhere")
    linked.symlink_to(tmp_path / "elsewhere")
    before = all_files(tmp_path / "elsewhere")
    with pytest.raises(NotAnArchive, match="symbolic link"):
        archive([tmp_path / "node"], made, include_active=True)
    assert all_files(tmp_path / "elsewhere") == before
    assert any("symbolic link" in finding.message for finding in verify_archive(made).findings)


def test_a_link_at_a_member_of_another_run_is_not_followed_either(made: Path, tmp_path: Path) -> None:
    (member,) = (path for path in made.iterdir() if path.is_dir())
    member.rename(tmp_path / "elsewhere")
    member.symlink_to(tmp_path / "elsewhere")
    other = write_sample(tmp_path / "other")
    with pytest.raises(NotAnArchive, match="symbolic link"):
        archive([other], made)


def test_a_link_in_the_place_of_a_new_member_is_not_followed(made: Path, tmp_path: Path) -> None:
    (member,) = (path for path in made.iterdir() if path.is_dir())
    (tmp_path / "elsewhere").mkdir()
    other = tmp_path / "another archive"
    archive([write_sample(tmp_path / "first")], other)
    (other / member.name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotAnArchive, match="symbolic link"):
        archive([tmp_path / "node"], other)
    assert all_files(tmp_path / "elsewhere") == {}


@pytest.mark.slow
def test_a_pipe_as_the_lock_keeps_no_reader_waiting(made: Path) -> None:
    (made / ".archive.lock").unlink(missing_ok=True)
    os.mkfifo(made / ".archive.lock")
    assert "lock" in told_of(made, "archive", "--verify")


@pytest.mark.slow
def test_a_command_tells_of_a_forged_manifest_in_a_line(made: Path) -> None:
    forge(made, with_folder("/tmp/kquorum-outside"))
    assert f"{MANIFEST}, line 2" in told_of(made, "archive", "--verify").replace("\n", " ")
