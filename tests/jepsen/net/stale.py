"""Namespaces of runs that died.

Their names hold the process that made them and when it began, so that a later run can tell which were left behind.
"""

import subprocess
from contextlib import suppress
from pathlib import Path

from tests.jepsen.net.iproute import NAMESPACES, ip

PREFIX = "kqj"


def namespaces_of(pid: int) -> str:
    """How the names of all namespaces of a process begin."""
    return f"{PREFIX}-{pid}-{start_of(pid)}"


def remove_stale_namespaces() -> list[str]:
    """Takes away what runs left behind that are no more; answers their names."""
    names = [path.name for path in NAMESPACES.glob(f"{PREFIX}-*")] if NAMESPACES.is_dir() else []
    stale = [name for name in names if not is_alive(name)]
    for name in stale:
        remove_namespace(name)
    return stale


def is_alive(name: str) -> bool:
    """Whether the process that made the namespace still runs."""
    match name.split("-"):
        case [_, pid, started, _] if pid.isdigit():
            return started == start_of(int(pid))
        case _:
            return False


def start_of(pid: int) -> str:
    """When a process began, in clock ticks since the machine did; empty when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


def remove_namespace(name: str) -> None:
    if (NAMESPACES / name).exists():
        with suppress(OSError, subprocess.SubprocessError):
            ip("netns", "del", name)
