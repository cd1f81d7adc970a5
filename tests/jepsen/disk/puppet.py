"""A process under the shim that carries out commands, call by call, until it is killed; for the shim's own tests."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.jepsen.disk.faulty_disk import FaultyDisk

_END_TIMEOUT_S = 20.0
# Each line names a function and its arguments; the answer is its result, or the error's number.
_SCRIPT = """
import json, os, sys, threading, time
os.chdir(sys.argv[1])

def write(descriptor, text, times=1):
    return os.write(descriptor, text.encode("latin-1") * times)

def pwrite(descriptor, text, position):
    return os.pwrite(descriptor, text.encode("latin-1"), position)

def sync_folder(name="."):
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

def space():
    found = os.statvfs(".")
    return found.f_bavail * found.f_frsize

def timed_fsync(descriptor):
    began = time.monotonic()
    os.fsync(descriptor)
    return time.monotonic() - began

def begin_fsync(descriptor):
    global flush
    flush = threading.Thread(target=os.fsync, args=(descriptor,))
    flush.start()

def end_fsync():
    flush.join()

def evaluate(text):
    return eval(text)

while line := sys.stdin.readline():
    name, *arguments = json.loads(line)
    call = globals().get(name) or getattr(os, name)
    try:
        answer = [call(*arguments), None]
    except OSError as error:
        answer = [None, error.errno]
    print(json.dumps(answer), flush=True)
"""


class Puppet:
    """`call("open", "name", flags)` and the like of os, and the functions of the script."""

    def __init__(self, disk: FaultyDisk, folder: Path) -> None:
        environment = {**os.environ, **disk.environment()}
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", _SCRIPT, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()

    def call(self, name: str, *arguments: Any) -> Any:
        """The result; raises OSError as the puppet's call did."""
        result, number = self.ask(name, *arguments)
        if number is not None:
            raise OSError(number, os.strerror(number))
        return result

    def ask(self, name: str, *arguments: Any) -> tuple[Any, int | None]:
        """Result and error number."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, *arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the puppet has ended"
        result, number = json.loads(line)
        return result, number

    def put(self, name: str, text: str, *, flush: bool = False) -> None:
        """Write a file again."""
        descriptor = self.call("open", name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self.call("write", descriptor, text)
        if flush:
            self.call("fsync", descriptor)
        self.call("close", descriptor)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._process.kill()
        self._process.communicate(timeout=_END_TIMEOUT_S)
