import os
from pathlib import Path

import pytest

from kquorum.storage.durable_files import replace_file, write_all
from kquorum.storage.errors import FsyncFailed, StorageFailed


def name_of(descriptor: int) -> str:
    return Path(f"/proc/self/fd/{descriptor}").readlink().name


def test_the_content_is_durable_before_the_name_and_the_name_on_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other way round, a crash can leave the new name with no content (KAFKA-15312)."""
    events: list[str] = []
    rename = Path.replace

    def recorded_rename(path: Path, target: Path) -> Path:
        events.append(f"rename {path.name} to {target.name}")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", lambda descriptor: events.append(f"fsync {name_of(descriptor)}"))
    monkeypatch.setattr(Path, "replace", recorded_rename)
    replace_file(tmp_path / "file", b"content")
    assert events == ["fsync file.tmp", "rename file.tmp to file", f"fsync {tmp_path.name}"]
    assert (tmp_path / "file").read_bytes() == b"content"
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208 - the names are all that matters


def test_a_temporary_file_left_by_a_crash_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "file.tmp").write_bytes(b"left over, and longer than what comes")
    replace_file(tmp_path / "file", b"content")
    assert (tmp_path / "file").read_bytes() == b"content"


def test_the_folder_failing_to_sync_is_fatal_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(descriptor: int) -> None:
        if name_of(descriptor) == tmp_path.name:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(FsyncFailed, match="Input/output error"):
        replace_file(tmp_path / "file", b"content")


def test_a_file_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match=r"cannot replace .*nowhere/file: No such file"):
        replace_file(tmp_path / "nowhere" / "file", b"content")


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    with (tmp_path / "file").open("wb") as file:
        write_all(file.fileno(), b"0123456789")
    assert (tmp_path / "file").read_bytes() == b"0123456789"
