"""The writer of a folder puts a link in the place of one inside it, after a command has looked at it."""

import os
from pathlib import Path

import pytest

from kquorum.cli.commands.log.files import find_logs
from kquorum.cli.commands.log.verification import SideFiles, verify_log
from kquorum.metadata.log_check.findings import Findings
from kquorum.metadata.log_check.log_checker import LogFacts
from kquorum.regular_files import NotRegular
from kquorum.spark_replay.archive.archiving import archive
from kquorum.spark_replay.archive.files import ArchiveFiles, Digest
from kquorum.spark_replay.decode import sources
from kquorum.spark_replay.decode.files import is_regular, map_listed, open_resolved, scan_resolved
from kquorum.spark_replay.decode.members import member_of
from kquorum.spark_replay.decode.sources import find_log_files
from kquorum.spark_replay.source import read_split, splits_of
from tests.support.sample_logs import write_sample

LOG = "__cluster_metadata-0"
SEGMENT = "00000000000000000000.log"
OPERATORS = b"the operator's own words"


class Swap:
    """`do` puts a link to the operator's log, which has the same names, in the place of the log in `folder`."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = write_sample(tmp_path / "hostile" / "node", torn=False)
        self.operators = write_sample(tmp_path / "operator", torn=False) / LOG
        for path in self.operators.iterdir():
            path.write_bytes(OPERATORS)

    def do(self) -> None:
        log = self.folder / LOG
        if not log.is_symlink():
            log.rename(self.folder / "away")
            log.symlink_to(self.operators)


@pytest.fixture
def swap(tmp_path: Path) -> Swap:
    return Swap(tmp_path)


class SwappingFiles(ArchiveFiles):
    def __init__(self, swap: Swap) -> None:
        self._swap = swap

    def copy(self, source: Path, target: Path, limit: int | None = None) -> Digest:
        self._swap.do()
        return super().copy(source, target, limit)


def test_nothing_is_archived_through_a_link_that_came_before_the_copying(swap: Swap, tmp_path: Path) -> None:
    to = tmp_path / "archive"
    with pytest.raises(NotRegular, match="symbolic link") as refused:
        archive([swap.folder], to, include_active=True, files=SwappingFiles(swap))
    assert refused.value.filename == str(swap.folder / LOG)
    assert OPERATORS not in b"".join(path.read_bytes() for path in to.rglob("*") if path.is_file())


def test_nothing_is_mapped_through_a_link_that_came_after_the_listing(swap: Swap) -> None:
    files = find_log_files(swap.folder)
    swap.do()
    for file in files:
        with pytest.raises(NotRegular, match="symbolic link"):
            map_listed(file.path)
    assert member_of(swap.folder / LOG).leader_epoch is None


def test_no_split_is_read_through_a_link(swap: Swap) -> None:
    (first, *_) = splits_of(find_log_files(swap.folder), 1 << 20)
    swap.do()
    with pytest.raises(NotRegular, match="symbolic link"):
        list(read_split(first, {}, show_secrets=False))


def test_a_link_that_comes_during_the_listing_leads_nowhere(
    swap: Swap, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked_at(path: Path) -> bool:
        swap.do()
        return is_regular(path)

    monkeypatch.setattr(sources, "is_regular", looked_at)
    assert not [file for file in find_log_files(swap.folder) if str(swap.operators) in file.path]


def test_log_verify_reads_nothing_through_a_link(swap: Swap) -> None:
    (log,) = find_logs(swap.folder)
    swap.do()
    verified = verify_log(log, lambda _: None, keep=3)
    reasons = [finding.reason for result in verified.findings.results() for finding in result.first]
    assert any("symbolic link" in reason for reason in reasons), reasons
    assert not verified.facts.epochs


def test_the_files_beside_a_log_are_not_read_through_a_link(swap: Swap) -> None:
    (log,) = find_logs(swap.folder)
    (swap.operators / "recovery-point").write_text("0\n1\n7\n")
    swap.do()
    findings = Findings(1)
    SideFiles(log, swap.folder / LOG, LogFacts(), findings).check()
    reasons = [finding.reason for result in findings.results() for finding in result.first]
    assert any("symbolic link" in reason for reason in reasons), reasons


def test_a_folder_is_listed_and_opened_without_links_on_the_way(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "real" / "inner" / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with scan_resolved(tmp_path / "real" / "inner") as entries:
        assert [entry.name for entry in entries] == ["file"]
    with os.fdopen(open_resolved(tmp_path / "real" / "inner" / "file"), "rb") as file:
        assert file.read() == b"x"
    with pytest.raises(NotRegular, match="symbolic link") as file_refused:
        open_resolved(tmp_path / "link" / "inner" / "file")
    with pytest.raises(NotRegular, match="symbolic link") as folder_refused, scan_resolved(tmp_path / "link"):
        pass
    assert {file_refused.value.filename, folder_refused.value.filename} == {str(tmp_path / "link")}
    with pytest.raises(FileNotFoundError) as missing:
        open_resolved(tmp_path / "real" / "none" / "file")
    assert missing.value.filename == str(tmp_path / "real" / "none")
