"""The shim, compiled where it is needed: once for each state of its sources."""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
# Fortified headers would define the very functions that are defined here.
_OPTIONS = ("-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-U_FORTIFY_SOURCE")
_LIBRARIES = ("-ldl", "-lpthread")
_COMPILE_TIMEOUT_S = 60.0


class ShimUnavailable(Exception):
    """There can be no shim here; the message says why in one line."""


class Shim:
    @staticmethod
    def build(cache_dir: Path) -> Path:
        """The shared object; raises ShimUnavailable."""
        if not sys.platform.startswith("linux") or platform.libc_ver()[0] != "glibc":
            raise ShimUnavailable("a faulty disk needs Linux and glibc")
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise ShimUnavailable("a faulty disk needs a C compiler (cc or gcc)")
        target = cache_dir / f"faulty-disk-{_state_of_sources()}.so"
        if not target.exists():
            cache_dir.mkdir(parents=True, exist_ok=True)
            _compile(compiler, target)
        return target


def _sources() -> list[Path]:
    return sorted(_FOLDER.glob("*.c"))


def _state_of_sources() -> str:
    state = hashlib.sha256(platform.machine().encode() + "".join(_OPTIONS).encode())
    for path in (*_sources(), _FOLDER / "shim.h"):
        state.update(path.read_bytes())
    return state.hexdigest()[:16]


def _compile(compiler: str, target: Path) -> None:
    """Under another name first: several processes may be at it."""
    unfinished = target.with_suffix(f".{os.getpid()}.tmp")
    command = [compiler, *_OPTIONS, "-o", str(unfinished), *map(str, _sources()), *_LIBRARIES]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_COMPILE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ShimUnavailable(f"{compiler} does not work: {error}") from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or ["it said nothing"]
        raise ShimUnavailable(f"{compiler} does not compile the faulty disk: {lines[0]}")
    unfinished.replace(target)
