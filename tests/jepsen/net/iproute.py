"""The command `ip`, and threads that change over to another network namespace."""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAMESPACES = Path("/run/netns")
_CLONE_NEWNET = 0x40000000
_COMMAND_TIMEOUT_S = 20.0


def ip(*arguments: str, script: str | None = None) -> str:
    """Raises OSError with the words of `ip`."""
    return run_tool("ip", *arguments, script=script)


def run_tool(*words: str, script: str | None = None) -> str:
    """What it printed. Raises OSError with what it complained of."""
    done = subprocess.run(
        words,
        input=script,
        stdin=subprocess.DEVNULL if script is None else None,
        capture_output=True,
        text=True,
        timeout=_COMMAND_TIMEOUT_S,
        check=False,
        start_new_session=True,
    )
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def inside_namespace(name: str) -> Iterator[None]:
    """This thread is in the namespace; processes that it starts begin there too."""
    with back_at_the_end():
        enter_namespace(name)
        yield


@contextmanager
def back_at_the_end() -> Iterator[None]:
    """Whatever namespace this thread enters within the block, it leaves again."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        yield
    finally:
        _set_namespace(home)
        os.close(home)


def enter_namespace(name: str) -> None:
    """This thread, and for good."""
    handle = os.open(NAMESPACES / name, os.O_RDONLY)
    try:
        _set_namespace(handle)
    finally:
        os.close(handle)


def _set_namespace(handle: int) -> None:
    """setns(2); the standard library has it from Python 3.12 on."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(handle, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"setns: {os.strerror(number)}")
