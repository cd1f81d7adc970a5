"""Apache Kafka's programs as child processes: tools that end by themselves, and servers that are always ended.

kafka = Kafka(find_release(), folder)
kafka.run("org.apache.kafka.tools.DumpLogSegments", "--files", path)
with kafka.server(properties_path) as server:
    server.wait_for("Kafka Server started")
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from kquorum.cli.processes import wait_until
from tests.interop.kafka_release import KafkaRelease

PROJECT_ROOT = Path(__file__).parents[2]
TOOL_TIMEOUT_S = 60.0
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
_STARTED = "Kafka Server started"

# Started quickly rather than fast in the long run, and small.
_JVM = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-Xlog:disable",
    "-Djava.awt.headless=true",
)
_LOGGING = ("-Dorg.slf4j.simpleLogger.showDateTime=true",)


class ToolFailed(Exception):
    """A tool of Kafka's ended with another status than 0; the message carries what it printed."""


class ToolHangs(ToolFailed):
    """A tool of Kafka's did not end in time, and was killed."""


class ServerFailed(Exception):
    """A Kafka server ended, or did not say what was waited for; the message carries its last lines."""


class Kafka:
    """Runs classes of one release; servers write their output into `folder`. `jvm` has the options of the JVMs, in
    place of those that suit tests."""

    def __init__(self, release: KafkaRelease, folder: Path, jvm: Sequence[str] = _JVM) -> None:
        self._release = release
        self._folder = folder
        self._jvm = jvm
        self._servers = 0

    def run(self, class_name: str, *arguments: str, timeout_s: float = TOOL_TIMEOUT_S) -> str:
        """Standard output of a tool. Raises ToolFailed, and ToolHangs after `timeout_s`."""
        command = self._command(class_name, "warn", self._shared_classes(), *arguments)
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
                stdin=subprocess.DEVNULL,
                cwd=PROJECT_ROOT,
            )
        except subprocess.TimeoutExpired as error:
            raise ToolHangs(f"{class_name} {arguments}: no end within {timeout_s:.0f} s") from error
        if done.returncode:
            raise ToolFailed(
                f"{class_name} {arguments}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
            )
        return done.stdout

    def server(self, properties: Path) -> "KafkaServer":
        """A Kafka node of this config, not started yet."""
        self._servers += 1
        output = self._folder / f"kafka-{self._servers}-{properties.stem}.out"
        archive = self._release.archive
        if archive.exists() or self._jvm is not _JVM:
            return KafkaServer(
                self._command("kafka.Kafka", "info", self._shared_classes(), str(properties)), output
            )
        fresh = output.with_suffix(".jsa")
        option = f"-XX:ArchiveClassesAtExit={fresh}"
        command = self._command("kafka.Kafka", "info", [option], str(properties))
        return KafkaServer(command, output, at_end=lambda: keep(fresh, archive))

    def _shared_classes(self) -> list[str]:
        archive = self._release.archive
        # A JVM takes no archive of one with other options.
        return [f"-XX:SharedArchiveFile={archive}"] if archive.exists() and self._jvm is _JVM else []

    def _command(self, class_name: str, log_level: str, options: Sequence[str], *arguments: str) -> list[str]:
        level = f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}"
        java = [self._release.java, *self._jvm, *_LOGGING, *options, level, "-cp", self._release.classpath]
        return [sys.executable, "-P", "-S", str(_GUARD), *java, class_name, *arguments]


def keep(fresh: Path, archive: Path) -> None:
    """The archive that a JVM wrote at its end becomes the one for all; whole or not at all."""
    if fresh.exists() and not archive.exists():
        part = archive.with_name(f"{archive.name}.{os.getpid()}")
        shutil.copyfile(fresh, part)
        part.replace(archive)


_GUARD = Path(__file__).with_name("die_with_parent.py")


class KafkaServer:
    """The same words as cli.processes.NodeProcess has, for a process of Kafka's."""

    def __init__(
        self, command: list[str], output: Path, *, at_end: Callable[[], None] = lambda: None
    ) -> None:
        """`at_end` is called after an orderly end."""
        self._command = command
        self._output_path = output
        self._at_end = at_end
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        with self._output_path.open("wb") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def exit_status(self) -> int | None:
        return None if self._process is None else self._process.poll()

    def output(self) -> str:
        return self._output_path.read_text(errors="replace") if self._output_path.exists() else ""

    def tail(self, lines: int = 30) -> str:
        return "\n".join(self.output().splitlines()[-lines:])

    def wait_started(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Raises ServerFailed when the server ends, or is not ready in time."""
        wait_until(lambda: _STARTED in self.output() or not self.is_running, timeout_s, 0.05)
        if _STARTED not in self.output():
            state = "runs" if self.is_running else "ended"
            raise ServerFailed(f"Kafka {state} and has not said {_STARTED!r}:\n{self.tail()}")

    def terminate(self) -> None:
        """SIGTERM: ask for an orderly stop, without waiting."""
        if self._process is not None:
            self._process.terminate()

    def wait_stopped(self, timeout_s: float = STOP_TIMEOUT_S) -> bool:
        """Whether it stopped by itself in time; it is killed if not."""
        assert self._process is not None
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        self._at_end()
        return True

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
