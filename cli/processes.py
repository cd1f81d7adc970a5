"""Nodes as child processes of this one: started, waited for, killed, and never left behind."""

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from kquorum.private_files import replace_whole
from kquorum.regular_files import open_regular

_WAITING = re.compile(r"[\d:]{8} (?:warning: )?(waiting .*)$")
READY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 15.0
# Of a node's output, which peers can make it write to. As much or a little more of what was before is kept.
MAX_OUTPUT_BYTES = 1024 * 1024
_APPENDED = os.O_WRONLY | os.O_CREAT | os.O_APPEND


class NodeFailed(Exception):
    """A node process ended, or did not become ready in time; the message carries its last lines."""


def wait_until(condition: Callable[[], bool], timeout_s: float, interval_s: float = 0.02) -> bool:
    """Poll `condition` until it holds; answers whether it did in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return False
        _pause(min(interval_s, remaining))
    return True


def _pause(seconds: float) -> None:
    """Let others run until the condition is looked at again; a signal ends it early."""
    select.select([], [], [], seconds)


class NodeProcess:
    """One `kquorum start` of the config, its output in a file, which grows until `limit_output` is called.

    The kernel kills it when its parent dies, so that not even a killed demo leaves nodes running (Linux).
    """

    def __init__(
        self,
        config_path: Path,
        node_id: int,
        output_path: Path,
        *,
        data_dir: Path | None = None,
        environment: Mapping[str, str] | None = None,
        python: str = sys.executable,
    ) -> None:
        """`environment` replaces this process's own, where given; `python` is the interpreter that runs the node."""
        self.node_id = node_id
        self.output_path = output_path
        self._config_path = config_path
        self._data_dir = data_dir
        self._environment = environment
        self._python = python
        self._process: subprocess.Popen[bytes] | None = None
        self._output_start = 0
        self._was_ready = False

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def is_ready(self) -> bool:
        """Whether it has printed its ready line."""
        self._was_ready = self._was_ready or self._ready_line in self.output()
        return self._was_ready

    @property
    def _ready_line(self) -> str:
        return f"kquorum node {self.node_id} ready"

    @property
    def waits(self) -> str:
        """What a node that is not ready says it is waiting for, if that is the last that it said: "waiting ..."."""
        last = self.tail(1)
        return "" if self.is_ready or (found := _WAITING.match(last)) is None else found[1]

    @property
    def exit_status(self) -> int | None:
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        self.output_path.parent.mkdir(parents=True, exist_ok=True)
        self._was_ready = False
        # The file keeps what earlier lives of the node printed: an old ready line must not count for this one.
        self._output_start = self.output_path.stat().st_size if self.output_path.exists() else 0
        command = [self._python, "-P", "-m", "kquorum.cli.child", "start"]
        command += ["--config", str(self._config_path), "--node", str(self.node_id)]
        if self._data_dir is not None:
            command += ["--data-dir", str(self._data_dir)]
        with os.fdopen(open_regular(self.output_path, _APPENDED), "ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C on the terminal goes to the whole session. The parent stops its nodes itself, brokers first.
                start_new_session=True,
                env=self._environment,
            )

    def wait_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait for the node's ready line; raises NodeFailed with what it said instead."""
        wait_until(lambda: self.is_ready or not self.is_running, timeout_s)
        if not self.is_running:
            raise NodeFailed(f"node {self.node_id} ended with exit status {self.exit_status}:\n{self.tail()}")
        if not self.is_ready:
            raise NodeFailed(f"node {self.node_id} was not ready within {timeout_s:.0f} s:\n{self.tail()}")

    def output(self) -> str:
        """What this life of the process has printed."""
        if not self.output_path.exists():
            return ""
        return self.output_path.read_bytes()[self._output_start :].decode(errors="replace")

    def limit_output(self) -> None:
        """Move what is in the file, once it is long, to a file beside it, in place of what was moved before.

        The process has the file open and appends, so it goes on at the beginning of the emptied one. What it writes
        in the moment between the two steps is lost; `kquorum.log` has it. A disk without room for the copy loses all.
        """
        if not self.output_path.exists() or self.output_path.stat().st_size <= MAX_OUTPUT_BYTES:
            return
        _ = self.is_ready  # remembers the line that is moved
        with suppress(OSError):
            content = self.output_path.read_bytes()
            replace_whole(self.output_path.with_name(f"{self.output_path.name}.1"), content)
        os.truncate(self.output_path, 0)
        self._output_start = 0

    def tail(self, lines: int = 8) -> str:
        return "\n".join(self.output().splitlines()[-lines:]) or "(it printed nothing)"

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def terminate(self) -> None:
        """SIGTERM: ask for an orderly stop, without waiting."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def wait_stopped(self, timeout_s: float = STOP_TIMEOUT_S) -> bool:
        """Whether it stopped by itself in time; it is killed if not."""
        if self._process is None:
            return True
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return True


class NodeGroup:
    """Nodes that stop together, brokers before controllers, when the `with` block ends."""

    def __init__(self, nodes: Iterable[NodeProcess], stop_first: Iterable[int] = ()) -> None:
        self.nodes = {node.node_id: node for node in nodes}
        self._stop_first = set(stop_first)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def __getitem__(self, node_id: int) -> NodeProcess:
        return self.nodes[node_id]

    def stop(self) -> None:
        first = [node for node in self.nodes.values() if node.node_id in self._stop_first]
        rest = [node for node in self.nodes.values() if node.node_id not in self._stop_first]
        # A second Ctrl-C interrupts the waiting; the nodes are killed even then.
        try:
            for wave in (first, rest):
                _stop_all(wave)
        finally:
            for node in self.nodes.values():
                node.kill()


def _stop_all(nodes: list[NodeProcess]) -> None:
    for node in nodes:
        node.terminate()
    for node in nodes:
        node.wait_stopped()
