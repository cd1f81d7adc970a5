"""Whether an interrupt reaches a command at work with Spark."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from kquorum.cli.commands.audit.spark import spark_interrupts


@pytest.fixture(autouse=True)
def handler_of_before() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_ends_java_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    monkeypatch.setattr("kquorum.cli.commands.audit.spark.end_java", lambda: ended.append("Java"))
    with pytest.raises(KeyboardInterrupt), spark_interrupts() as interrupts:
        interrupt()
    assert interrupts.came
    assert ended == ["Java"]


def test_a_process_that_was_started_to_ignore_interrupts_goes_on_ignoring_them() -> None:
    """A shell's background job, say, whose group has the interrupt of the terminal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with spark_interrupts() as interrupts:
        interrupt()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as Spark's start does
        interrupts.take()
        interrupt()
    assert not interrupts.came
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_what_py4j_logs_after_an_interrupt_is_not_printed() -> None:
    """py4j also logs with the functions of `logging`, which print while the root logger has no handler."""
    program = """
import logging, os, signal
from kquorum.cli.commands.audit.spark import spark_interrupts
try:
    with spark_interrupts():
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            logging.exception("Exception while sending command.")
except KeyboardInterrupt:
    logging.getLogger("py4j.clientserver").error("cannot send")
    logging.exception("Exception while sending command.")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
