"""A sound metadata folder, for the tests of commands that read one."""

from pathlib import Path

import pytest

from tests.support.metadata_folders import write_folder


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    made = write_folder(tmp_path / "node")
    capsys.readouterr()
    return made
