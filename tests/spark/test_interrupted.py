"""Ctrl-C while `audit build` starts Spark or makes tables: one line, exit status 130, and no Java is left."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kquorum.cli.processes import wait_until
from tests.support.sample_logs import write_sample

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.slow]

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("moment", ["starting Spark", "reading", "making the table"])
def test_one_line_and_no_java_is_left(tmp_path: Path, moment: str) -> None:
    log, out, said = write_sample(tmp_path / "log"), tmp_path / "out", tmp_path / "said"
    with said.open("wb") as stream:
        build = subprocess.Popen(
            [sys.executable, "-m", "kquorum.cli.entry", "audit", "build", str(log), "--out", str(out)],
            cwd=PROJECT,
            env={**os.environ, "TMPDIR": str(tmp_path)},
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    assert wait_until(lambda: moment in said.read_text() or build.poll() is not None, 180)
    assert wait_until(lambda: bool(children(build.pid)) or build.poll() is not None, 60)
    java = children(build.pid)
    assert java, said.read_text()
    os.killpg(build.pid, signal.SIGINT)
    assert build.wait(60) == 130, said.read_text()
    lines = said.read_text().splitlines()
    assert lines[-1] == "interrupted"
    assert all(line.endswith(" ...") for line in lines[:-1]), lines
    assert not any(Path(f"/proc/{pid}").exists() for pid in java)
    assert not list(tmp_path.glob("kquorum-audit-*"))


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
