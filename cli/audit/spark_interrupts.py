"""Ctrl-C while Spark starts or works: Java ends too, and neither py4j nor Spark says anything.

An interrupt may come in the middle of an answer of Java. The connection cannot be used any more after that, so nothing
is asked of Java, not even to stop.
"""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from spark_replay.java_process import end_java


class SparkInterrupts:
    """Made by `spark_interrupts`; `came` says that an interrupt is why something failed. A process that its parent
    started with SIGINT ignored goes on ignoring it."""

    def __init__(self) -> None:
        self.came = False
        self._is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN

    def take(self) -> None:
        """Again after Spark's start, which puts a handler of its own in place that asks Java to stop its jobs."""
        if _is_main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN if self._is_ignored else self._raise)

    def _raise(self, _number: int, _frame: FrameType | None) -> NoReturn:
        self.came = True
        raise KeyboardInterrupt


@contextmanager
def spark_interrupts() -> Iterator[SparkInterrupts]:
    """When the block ends by an interrupt, Java is ended. Raises KeyboardInterrupt then, whatever failed of it."""
    interrupts = SparkInterrupts()
    before = signal.getsignal(signal.SIGINT)
    interrupts.take()
    try:
        yield interrupts
    except BaseException as error:
        if interrupts.came or isinstance(error, KeyboardInterrupt):
            # Python objects that stand for Java's are collected later, which py4j would tell Java.
            logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
            end_java()
            raise KeyboardInterrupt from None
        raise
    finally:
        if _is_main_thread():
            signal.signal(signal.SIGINT, before)


def _is_main_thread() -> bool:
    """Python has signal handlers in the main thread only."""
    return threading.current_thread() is threading.main_thread()
