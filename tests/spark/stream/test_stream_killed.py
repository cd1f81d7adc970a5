"""`kquorum audit stream` killed with SIGKILL while a log grows: nothing is lost, and nothing is there twice."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from kquorum.cli.processes import wait_until
from kquorum.spark_replay.audit_manifest import read_manifest
from kquorum.spark_replay.stream.log_stream import LogStream
from tests.support.spark.growing_log import GrowingLog
from tests.support.spark.random_history import write_random_trimmed_history
from tests.support.spark.whole_rows import rows_of_whole, sorted_rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.slow]

PROJECT = Path(__file__).resolve().parents[3]
# Spark starts in ten seconds on a machine at rest, and took more than 180 s on one with a load of 19.
LONG_S = 900


class Stream:
    """A process of `audit stream` in a group of its own, so that Spark's Java dies with it."""

    def __init__(self, log: Path, out: Path) -> None:
        command = [sys.executable, "-m", "kquorum.cli.entry", "audit", "stream", str(log), "--out", str(out)]
        self._said = out.parent / "said"
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [*command, "--every", "0.2", "--master", "local[1]"],
                cwd=PROJECT,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def said(self) -> str:
        return self._said.read_text()

    def wait_for(self, text: str) -> None:
        def is_said() -> bool:
            return text in self.said() or self._process.poll() is not None

        assert wait_until(is_said, LONG_S), self.said()
        assert self._process.poll() is None, self.said()

    def live_on(self, seconds: float) -> None:
        with pytest.raises(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def kill(self) -> None:
        """With its Java, which has a process group of its own; a stream that has ended took it along."""
        if self._process.poll() is not None:
            return
        java = self._children()
        for group in (self._process.pid, *java):
            os.killpg(group, signal.SIGKILL)
        self._process.wait()

    def _children(self) -> list[int]:
        pid = self._process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def interrupt(self) -> int:
        """As Ctrl-C does; answers the exit status."""
        os.killpg(self._process.pid, signal.SIGINT)
        return self._process.wait(LONG_S)


def killed_at_random(tmp_path: Path, random: Random, rounds: int) -> tuple[Path, Path]:
    """The whole log, and the tables of the part that streams have seen which were killed."""
    whole = write_random_trimmed_history(tmp_path / "whole" / "node-1", seed=rounds, operations=90)
    log, out = GrowingLog(whole, tmp_path / "shown" / "node-1", random), tmp_path / "out"
    made = 0
    while made < rounds and not log.is_whole:
        grow_by_a_batch(log)
        made += 1
        stream = Stream(log.shown, out)
        try:
            stream.wait_for("batch")
            for _ in range(random.randint(1, 4)):
                log.grow()
                stream.live_on(random.random())
        finally:
            stream.kill()
    assert made > rounds // 2, "the log was whole too soon"
    while not log.is_whole:
        log.grow()
    return whole, out


def grow_by_a_batch(log: GrowingLog) -> None:
    """A stream says nothing before there is one that it has not taken up yet."""
    seen = batches_of(log)
    while batches_of(log) == seen and not log.is_whole:
        log.grow()


def batches_of(log: GrowingLog) -> int:
    return len(rows_of_whole(log.shown)["batch"]) if log.is_begun else 0


def check_tables(spark: Any, tmp_path: Path, whole: Path, out: Path) -> None:
    LogStream(spark, tmp_path / "shown" / "node-1", out).read()
    expected = rows_of_whole(whole)
    for kind, name in (("record", "records"), ("batch", "batches")):
        found = pq.read_table(out / name).to_pylist()
        assert len(found) == len(expected[kind]), name
        assert sorted_rows(found) == expected[kind], name


def test_after_a_kill_each_record_is_there_once(spark: Any, tmp_path: Path) -> None:
    check_tables(spark, tmp_path, *killed_at_random(tmp_path, Random(7), rounds=1))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_after_many_kills_each_record_is_there_once(spark: Any, tmp_path: Path, seed: int) -> None:
    check_tables(spark, tmp_path, *killed_at_random(tmp_path, Random(seed), rounds=6))


@pytest.mark.slow
def test_ctrl_c_ends_a_stream_in_order_with_the_tables_of_all_that_was_read(tmp_path: Path) -> None:
    whole = write_random_trimmed_history(tmp_path / "node-1", seed=1, operations=30)
    stream = Stream(whole, tmp_path / "out")
    try:
        stream.wait_for("batch 0")
        assert stream.interrupt() == 0, stream.said()
    finally:
        stream.kill()
    manifest = read_manifest(tmp_path / "out")
    assert manifest.rows["records"] == len(rows_of_whole(whole)["record"])
    assert manifest.rows["partition_history"] > 0
