"""What a node tells of its machine."""

import os
import time
from pathlib import Path

from kquorum.node.host_facts import host_facts


def test_clock_files_and_space_are_those_of_this_process(tmp_path: Path) -> None:
    before_ms = time.time_ns() // 1_000_000
    facts = host_facts([tmp_path])
    assert before_ms <= facts.now_ms <= time.time_ns() // 1_000_000
    assert facts.version
    [space] = facts.folders
    assert (space.path, space.fault) == (str(tmp_path), "")
    assert 0 < space.usable_bytes <= space.total_bytes
    assert facts.max_open_files == -1 or 0 < facts.open_files < facts.max_open_files


def test_a_file_that_is_opened_counts(tmp_path: Path) -> None:
    before = host_facts([]).open_files
    with (tmp_path / "file").open("w"):
        assert host_facts([]).open_files == before + 1
    assert host_facts([]).open_files == before


def test_a_folder_that_is_gone_has_its_fault(tmp_path: Path) -> None:
    [space] = host_facts([tmp_path / "gone"]).folders
    assert space.fault == os.strerror(2)
