"""What `kquorum audit stream` refuses before it starts Spark, and `audit build` in a stream's folder."""

from pathlib import Path

import pytest

from kquorum.cli.main import run
from kquorum.spark_replay.stream.state import StreamState, stream_folder, write_state
from tests.support.sample_logs import write_sample


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return write_sample(tmp_path / "sample")


@pytest.fixture
def streamed(tmp_path: Path, sample: Path) -> Path:
    """A folder that a stream of the sample has begun."""
    out = tmp_path / "streamed"
    stream_folder(out).mkdir(parents=True)
    write_state(out, StreamState(input=str(sample.resolve())))
    return out


def refused(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    status = run(["audit", *map(str, args)])
    captured = capsys.readouterr()
    assert (status, captured.out) == (2, "")
    assert "Traceback" not in captured.err
    return " ".join(captured.err.split())


def test_a_stream_does_not_go_on_with_the_tables_of_a_build(
    capsys: pytest.CaptureFixture[str], sample: Path, tmp_path: Path
) -> None:
    out = tmp_path / "built"
    (out / "records").mkdir(parents=True)
    assert "no stream has begun it" in refused(capsys, "stream", sample, "--out", out)


@pytest.mark.parametrize("options", [(), ("--overwrite",)])
def test_a_build_does_not_replace_the_tables_of_a_stream(
    capsys: pytest.CaptureFixture[str], sample: Path, streamed: Path, options: tuple[str, ...]
) -> None:
    assert "has the tables of `audit stream`" in refused(capsys, "build", sample, "--out", streamed, *options)
    assert (stream_folder(streamed) / "state.json").is_file()


def test_a_stream_of_another_log_is_refused_with_the_tables_log(
    capsys: pytest.CaptureFixture[str], sample: Path, streamed: Path, tmp_path: Path
) -> None:
    other = write_sample(tmp_path / "other")
    message = refused(capsys, "stream", other, "--out", streamed)
    assert f"are streamed from {sample}, not from {other}" in message


def test_the_state_of_a_later_version_is_left_alone(
    capsys: pytest.CaptureFixture[str], sample: Path, streamed: Path
) -> None:
    (stream_folder(streamed) / "state.json").write_text('{"format": 99}')
    assert "is of format 99" in refused(capsys, "stream", sample, "--out", streamed)
    (stream_folder(streamed) / "state.json").write_text("{")
    assert "cannot be read" in refused(capsys, "stream", sample, "--out", streamed)


def test_a_log_that_is_not_there_and_an_address_that_is_none(
    capsys: pytest.CaptureFixture[str], sample: Path, tmp_path: Path
) -> None:
    assert "does not exist" in refused(capsys, "stream", tmp_path / "nowhere", "--out", tmp_path / "out")
    assert "grpc://localhost" in refused(capsys, "stream", "grpc://localhost", "--out", tmp_path / "out")
    inside = sample / "__cluster_metadata-0" / "tables"
    assert "inside the log" in refused(capsys, "stream", sample, "--out", inside)
