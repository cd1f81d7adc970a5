"""Which folders `audit build` may write its tables into, and what it leaves alone there."""

import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kquorum.cli.commands.audit import build as build_run
from kquorum.cli.commands.audit.build import (
    MARKER,
    AuditRequest,
    _staged,
    alone_in,
    check_addresses,
    check_out,
)
from kquorum.cli.commands.audit.inputs import check_name, files_to_audit
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.main import run
from kquorum.regular_files import NotRegular
from kquorum.spark_replay.delta import forget
from kquorum.spark_replay.remote import RemoteFailed
from tests.support.sample_logs import write_sample


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return write_sample(tmp_path / "sample")


def built(folder: Path) -> Path:
    """A folder with what says that it is an audit's."""
    folder.mkdir(parents=True)
    (folder / "audit.json").write_text('{"format": 1, "sources": [], "rows": {}}')
    return folder


def refusal(out: Path, log: Path, *, overwrite: bool = True) -> str:
    with pytest.raises(CliError) as refused:
        check_out(out, files_to_audit(log), overwrite=overwrite)
    return str(refused.value)


def test_only_an_audit_is_replaced(tmp_path: Path, sample: Path) -> None:
    out = tmp_path / "out"
    (out / "topics").mkdir(parents=True)
    assert "is no audit" in refusal(out, sample)
    (out / "audit.json").write_text('{"auditReportVersion": 2}')  # npm has a file of this name too
    assert "is no audit" in refusal(out, sample)
    check_out(built(tmp_path / "built"), files_to_audit(sample), overwrite=True)
    assert "add --overwrite" in refusal(tmp_path / "built", sample, overwrite=False)


def test_a_link_in_the_place_of_the_lock_is_refused_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / MARKER).symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(CliError, match="cannot be this build's lock: it is a symbolic link"),
        alone_in(tmp_path),
    ):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_link_met_while_building_is_not_taken_for_the_lock(tmp_path: Path) -> None:
    with pytest.raises(NotRegular), alone_in(tmp_path):
        raise NotRegular(40, "it is a symbolic link", "log")


def test_what_a_killed_build_left_is_replaced(tmp_path: Path, sample: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with alone_in(out):
        pass
    check_out(out, files_to_audit(sample), overwrite=False)
    (out / "records").mkdir()
    check_out(out, files_to_audit(sample), overwrite=True)
    assert "add --overwrite" in refusal(out, sample, overwrite=False)


@pytest.mark.parametrize("inside", ["_inputs/00/node", "topics", "."])
def test_tables_do_not_go_where_a_log_lies_in(tmp_path: Path, inside: str) -> None:
    out = built(tmp_path / "out")
    log = write_sample(out / inside)
    assert "holds the log" in refusal(out, log)
    (tmp_path / "link").symlink_to(out)
    assert "holds the log" in refusal(tmp_path / "link", log)


def test_nor_where_an_address_of_this_machine_lies_in(tmp_path: Path) -> None:
    inputs = (str(tmp_path), "s3a://bucket/log", f"file://{tmp_path}/other")
    check_addresses(tmp_path / "out", inputs)
    with pytest.raises(CliError, match="holds file:"):
        check_addresses(tmp_path / "out", (*inputs, f"file://{tmp_path}/out/_inputs/00"))


def test_a_log_reached_through_a_link_is_seen_where_it_is(tmp_path: Path) -> None:
    out = built(tmp_path / "out")
    write_sample(out / "topics")
    (tmp_path / "link").symlink_to(out / "topics")
    assert "holds the log" in refusal(out, tmp_path / "link")


def test_names_that_hadoop_cannot_read(tmp_path: Path) -> None:
    for name in ("q[1]", "a:b", "a b%#{", "é\n"):
        check_name(tmp_path / name)
    with pytest.raises(CliError, match=r"a:\[1\]: its name has a colon"):
        check_name(tmp_path / "a:[1]" / "out")


def test_two_builds_do_not_write_into_one_folder(tmp_path: Path) -> None:
    with (
        alone_in(tmp_path),
        pytest.raises(CliError, match="another `audit build`") as refused,
        alone_in(tmp_path),
    ):
        pass
    assert refused.value.status == ExitStatus.FOLDER_REFUSED


def test_delta_logs_of_others_are_left(tmp_path: Path) -> None:
    for name in ("topics", "mine"):
        (tmp_path / name / "_delta_log").mkdir(parents=True)
    forget(tmp_path)
    assert not (tmp_path / "topics" / "_delta_log").exists()
    assert (tmp_path / "mine" / "_delta_log").exists()


def staging(out: Path, monkeypatch: pytest.MonkeyPatch, *, fails: bool) -> list[Path]:
    def stage(_: object, inputs: tuple[str, ...], folder: Path) -> list[Path]:
        if fails:
            raise RemoteFailed(f"{inputs[0]} cannot be read: it is away")
        return [write_sample(folder / "00" / "node")]

    monkeypatch.setattr(build_run, "stage", stage)
    spark = cast("Any", SimpleNamespace(session=None, progress=lambda step: None))
    request = AuditRequest(inputs=("s3a://b/a",), out=out, overwrite=True, master="local")
    return _staged(spark, request, out)


def test_the_copies_of_before_stay_until_there_are_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = built(tmp_path / "out")
    old = out / "_inputs" / "00" / "old"
    old.mkdir(parents=True)
    with pytest.raises(CliError, match="it is away"):
        staging(out, monkeypatch, fails=True)
    assert old.exists()
    assert not (out / "_inputs.new").exists()
    assert (out / "audit.json").exists()
    (root,) = staging(out, monkeypatch, fails=False)
    assert root.is_relative_to(out / "_inputs")
    assert files_to_audit(root)
    assert not old.exists()
    assert not (out / "audit.json").exists()
    assert not (out / "_inputs.new").exists()


@pytest.mark.parametrize("name", ["sample", "./sample", "nowhere/at/all", "zzz"])
def test_a_log_in_the_place_of_a_command(
    name: str, sample: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sample.parent)
    assert run(["audit", name]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert f"audit has no command {name}; to build tables of a log: kquorum audit build {name} --out" in told


def test_a_mistyped_command_gets_the_nearest_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "biuld"]) == 2
    assert "Did you mean 'build'" in capsys.readouterr().err


def test_an_archive_is_for_its_owner_alone(tmp_path: Path, sample: Path) -> None:
    from kquorum.spark_replay.archive.archiving import archive

    archive([sample], tmp_path / "archive", include_active=True)
    for path in [tmp_path / "archive", *(tmp_path / "archive").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
