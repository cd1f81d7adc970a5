"""The Java process that pyspark starts, so that it can be ended while pyspark waits for it."""

import os
import signal
import subprocess
from typing import Any, ClassVar

from pyspark import SparkContext, java_gateway
from pyspark.sql import SparkSession


class JavaProcess(subprocess.Popen[bytes]):
    """In a process group of its own: Ctrl-C goes to the whole group of the terminal, and Java or a child of it that it
    reaches in the middle of the start may hang forever. Java ends when its standard input does, hence with this
    process.
    """

    newest: ClassVar["JavaProcess | None"] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # An interrupt between the start and `newest` would leave a process that is known nowhere.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            super().__init__(*args, process_group=0, **kwargs)
            JavaProcess.newest = self
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def end(self) -> None:
        """At once, with its children."""
        if self.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()


def start_java_as_group() -> None:
    """From now on pyspark starts Java as a JavaProcess."""
    java_gateway.Popen = JavaProcess


def end_java() -> None:
    """Ends the newest Java process and resets pyspark. For a connection that may be in the middle of a response: no
    request is sent to Java."""
    if JavaProcess.newest is not None:
        JavaProcess.newest.end()
        JavaProcess.newest = None
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
