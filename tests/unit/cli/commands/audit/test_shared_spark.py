"""Several commands on one Spark, as the demo runs them."""

import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkRuntimeError

from kquorum.cli.commands.audit.spark import SMALL_BYTES, quiet_spark, shared_spark
from kquorum.cli.failures import CliError

MASTER = "local[1]"


class Sparks:
    """What was started, how, and whether it was stopped."""

    def __init__(self) -> None:
        self.started: list[dict[str, Any]] = []
        self.stopped = 0
        self.may_start = threading.Event()
        self.may_start.set()
        self.failure: Exception | None = None

    def start_session(self, work_folder: Path, **options: Any) -> "Sparks":
        self.may_start.wait()
        self.started.append(options)
        if self.failure is not None:
            (work_folder / "spark.log").write_text("no room for a heap")
            raise self.failure
        return self

    def stop(self) -> None:
        self.stopped += 1


@pytest.fixture
def sparks(monkeypatch: pytest.MonkeyPatch) -> Sparks:
    made = Sparks()
    monkeypatch.setattr("kquorum.cli.commands.audit.spark.start_session", made.start_session)
    monkeypatch.setattr("kquorum.cli.commands.audit.spark.check_java", lambda: None)
    return made


def ask(tmp_path: Path) -> Any:
    with quiet_spark(master=MASTER, size_in_bytes=1, keep_log_in=tmp_path) as spark:
        return spark.session


def test_each_command_has_a_spark_of_its_own(sparks: Sparks, tmp_path: Path) -> None:
    ask(tmp_path)
    ask(tmp_path)
    assert (len(sparks.started), sparks.stopped) == (2, 2)


@pytest.mark.parametrize(("size_in_bytes", "is_small"), [(0, True), (SMALL_BYTES, False)])
def test_commands_share_one_and_leave_it_running(
    sparks: Sparks, tmp_path: Path, size_in_bytes: int, is_small: bool
) -> None:
    with shared_spark(master=MASTER, size_in_bytes=size_in_bytes):
        assert ask(tmp_path) is ask(tmp_path) is sparks
        assert sparks.stopped == 0
    assert sparks.started == [{"master": MASTER, "small": is_small}]
    assert sparks.stopped == 1
    ask(tmp_path)
    assert (len(sparks.started), sparks.stopped) == (2, 2), "what comes later has its own again"


def test_it_starts_while_something_else_is_done(sparks: Sparks, tmp_path: Path) -> None:
    sparks.may_start.clear()
    with shared_spark(master=MASTER, size_in_bytes=0):
        assert sparks.started == []
        sparks.may_start.set()
        assert ask(tmp_path) is sparks


def test_a_command_fails_with_the_start(sparks: Sparks, tmp_path: Path) -> None:
    sparks.failure = PySparkRuntimeError("JAVA_GATEWAY_EXITED: it ended")
    with (
        pytest.raises(CliError, match=r"Spark failed: JAVA_GATEWAY_EXITED: it ended; its log is"),
        shared_spark(master=MASTER, size_in_bytes=0),
    ):
        ask(tmp_path)
    assert (tmp_path / "spark.log").read_text() == "no room for a heap"


def test_the_first_failure_is_the_one_reported(sparks: Sparks) -> None:
    sparks.failure = PySparkRuntimeError("it ended")
    with pytest.raises(ValueError, match="a broker"), shared_spark(master=MASTER, size_in_bytes=0):
        raise ValueError("a broker")


def test_one_whose_java_an_interrupt_has_ended_is_not_asked_to_stop(
    sparks: Sparks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyspark would warn of a process that has crashed, and fail with an AssertionError in place of the interrupt."""
    ended: list[str] = []
    monkeypatch.setattr("kquorum.cli.commands.audit.spark.end_java", lambda: ended.append("Java"))
    with (
        pytest.raises(KeyboardInterrupt),
        shared_spark(master=MASTER, size_in_bytes=0),
        quiet_spark(master=MASTER, size_in_bytes=1, keep_log_in=tmp_path),
    ):
        raise KeyboardInterrupt
    assert (ended, sparks.stopped) == (["Java"], 0)
