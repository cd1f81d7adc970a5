"""Delta tables, for real: only where `delta-spark` is installed, made for this pyspark, and its jars lie there."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.commands.audit.spark import jars_folder
from kquorum.spark_replay.delta import DeltaMissing, delta_settings
from tests.support.sample_logs import write_sample

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def kquorum(*args: object) -> "subprocess.CompletedProcess[str]":
    """In a process of its own: Delta has to be there when its Java starts."""
    program = [sys.executable, "-m", "kquorum.cli.entry", "audit", *map(str, args)]
    return subprocess.run(program, capture_output=True, text=True, check=False)


def answers(audit: Path) -> Any:
    done = kquorum("as-of", audit, "--offset", 22, "--json", "--master", "local[1]")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_delta_tables_answer_as_parquet_does_and_can_be_replaced(tmp_path: Path) -> None:
    try:
        delta_settings(jars_folder())
    except DeltaMissing as error:
        pytest.skip(str(error))
    log, out = write_sample(tmp_path / "sample", torn=False), tmp_path / "out"
    build = ("build", log, "--out", out, "--master", "local[1]")
    assert kquorum(*build, "--format", "delta").returncode == 0
    assert json.loads((out / "audit.json").read_text())["table_format"] == "delta"
    assert (out / "partition_history" / "_delta_log").is_dir()
    from_delta = answers(out)
    assert kquorum(*build, "--format", "parquet", "--overwrite").returncode == 0
    assert not list(out.glob("*/_delta_log"))
    assert answers(out) == from_delta
