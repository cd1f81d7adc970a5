"""`kquorum audit` from end to end, in the session of the tests."""

import json
from pathlib import Path

import pytest

from kquorum.cli.main import run
from tests.support.sample_logs import write_sample

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.usefixtures("shared_session")
@pytest.mark.slow
def test_a_damaged_log_is_audited_summed_up_and_sets_the_exit_status(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder, out = write_sample(tmp_path / "sample"), tmp_path / "out"
    assert run(["audit", "build", str(folder), "--out", str(out), "--json"]) == 3
    captured = capsys.readouterr()
    summary = json.loads(captured.out)
    (source,) = summary["sources"]
    assert {
        name: source[name] for name in ("source", "records", "first_offset", "last_offset", "epochs")
    } == {
        "source": "sample",
        "records": 29,
        "first_offset": 0,
        "last_offset": 28,
        "epochs": 2,
    }
    figures = (
        "brokers",
        "topics",
        "removed_topics",
        "partitions",
        "leader_changes",
        "unclean_leader_changes",
    )
    assert [source[name] for name in (*figures, "unknown_records", "damaged_places")] == [
        1,
        1,
        1,
        1,
        2,
        1,
        3,
        1,
    ]
    assert summary["tables"]["partition_history"] == {"rows": 5, "path": str(out / "partition_history")}
    assert [(row["kind"], row["offset"]) for row in summary["damage"]] == [("torn", 29)]
    assert "making the table partition_history" in captured.err


@pytest.mark.usefixtures("shared_session")
def test_a_failure_of_spark_is_one_line_that_names_its_log(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(*args: object, **options: object) -> None:
        from pyspark.errors import AnalysisException

        raise AnalysisException(
            "Job aborted\n Traceback ...\n  OSError: [Errno 5] disk on fire\n  at java.lang"
        )

    monkeypatch.setattr("kquorum.cli.commands.audit.build.build", build)
    out = tmp_path / "out"
    assert run(["audit", "build", str(write_sample(tmp_path / "sample")), "--out", str(out)]) == 1
    captured = capsys.readouterr()
    assert f"Spark failed: OSError: [Errno 5] disk on fire; its log is {out / 'spark.log'}" in captured.err
    assert "java.lang" not in captured.err
    assert (out / "spark.log").read_text() == "what Spark said\n"


def test_the_summary_fits_a_terminal_of_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    from kquorum.cli.commands.audit.build import print_summary

    figures = dict.fromkeys(
        ("epochs", "brokers", "topics", "partitions", "leader_changes", "unclean_leader_changes"), 12_345
    )
    source = {
        "source": "three-controllers-1",
        "records": 1_234_567,
        "first_offset": 0,
        "last_offset": 1_234_566,
        "first_ms": 1_737_526_000_000,
        "last_ms": 1_737_560_000_000,
        "damaged_places": 0,
        **figures,
    }
    damage = {
        "kind": "torn",
        "source": "a",
        "file": "f.log",
        "position": 1,
        "offset": None,
        "reason": "[cut]",
    }
    tables = {"damage": {"rows": 3, "path": "out/damage"}}
    summary = {"sources": [source], "record_types": {"NoOpRecord": 7}, "tables": tables, "damage": [damage]}
    print_summary(Console(width=80, highlight=False), summary)
    lines = capsys.readouterr().out.splitlines()
    assert any(
        "three-controllers-1" in line and "0..1234566" in line and "2025-01-22 06:06" in line
        for line in lines
    )
    assert "torn: a: f.log at byte 1: [cut]" in lines
    assert "and 2 more damaged places in the table damage" in lines
