"""What `kquorum audit` refuses before it starts Spark: each told in one line, with its exit status."""

from pathlib import Path

import pytest

from kquorum.cli.commands.audit.java import major_version
from kquorum.cli.main import run
from tests.support.sample_logs import write_sample


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return write_sample(tmp_path / "sample")


def refused(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str]:
    status = run(["audit", "build", *map(str, args)])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return status, captured.err


def fake_java(folder: Path, output: str) -> Path:
    """A JAVA_HOME whose java says `output`."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{output}' >&2\n")
    java.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("command not found", None),
    ],
)
def test_the_major_version_of_java_is_read(text: str, version: int | None) -> None:
    assert major_version(text) == version


def test_no_java_is_reported_with_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, sample: Path, tmp_path: Path
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    status, message = refused(capsys, sample, "--out", tmp_path / "out")
    assert status == 7
    assert "no Java found" in message
    assert "apt install openjdk-17-jre-headless" in message
    assert not (tmp_path / "out").exists()


def test_a_java_home_without_java_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, sample: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    status, message = refused(capsys, sample, "--out", tmp_path / "out")
    assert status == 7
    assert f"JAVA_HOME is {tmp_path / 'nowhere'}" in message


def test_a_java_too_old_is_reported_with_its_version(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, sample: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", 'java version "1.8.0_392"')))
    status, message = refused(capsys, sample, "--out", tmp_path / "out")
    assert status == 7
    assert "is Java 8" in message


def test_a_folder_without_a_log_is_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    status, message = refused(capsys, tmp_path / "empty", "--out", tmp_path / "out")
    assert status == 2
    assert f"{tmp_path / 'empty'} holds no metadata log" in message


def test_a_file_that_is_no_log_is_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no log at all")
    status, message = refused(capsys, tmp_path / "notes.txt", "--out", tmp_path / "out")
    assert status == 2
    assert "is not a Kafka log segment or snapshot" in message


def test_a_folder_for_tables_that_is_not_empty_is_left_alone(
    capsys: pytest.CaptureFixture[str], sample: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("keep")
    status, message = refused(capsys, sample, "--out", out)
    assert status == 2
    assert "is not empty, and what is in it is no audit" in message
    assert refused(capsys, sample, "--out", out, "--overwrite") == (status, message)
    assert (out / "mine.txt").read_text() == "keep"


def test_tables_are_not_written_into_the_log(capsys: pytest.CaptureFixture[str], sample: Path) -> None:
    status, message = refused(capsys, sample, "--out", sample / "__cluster_metadata-0" / "tables")
    assert status == 2
    assert "inside the log" in message


@pytest.mark.parametrize(
    "command", [("audit", "churn"), ("audit", "check"), ("log", "dump"), ("log", "verify")]
)
@pytest.mark.parametrize(
    ("inside", "said"),
    [
        (".kquorum-audit", "holds an audit that is not finished"),
        (".stream/state.json", "holds tables of `audit stream` that are not finished"),
    ],
)
def test_an_audit_that_is_not_finished_is_reported_as_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: tuple[str, str], inside: str, said: str
) -> None:
    marker = tmp_path / "out" / inside
    marker.parent.mkdir(parents=True)
    marker.touch()
    (tmp_path / "out" / "records").mkdir()
    assert run([*command, str(tmp_path / "out")]) == 2
    message = capsys.readouterr().err
    assert said in message
    assert "run it again with" in message


@pytest.mark.parametrize("command", ["dump", "verify"])
def test_the_tables_of_an_audit_are_no_log(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    (tmp_path / "audit.json").write_text("{}")
    assert run(["log", command, str(tmp_path)]) == 2
    assert "holds the tables of an audit, not a log" in capsys.readouterr().err
