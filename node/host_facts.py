"""What a node tells of its machine: clock, version, open files, and the space in its folders."""

import os
import resource
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kquorum.metadata.grpc.quorum.service import FolderSpace, HostFacts

_COMMIT_FILE: Final = "_commit.txt"


def _commit() -> str:
    """Of a wheel; read when the module is imported, for the files of the wheel may be replaced while the node runs."""
    import kquorum

    try:
        return (Path(kquorum.__file__).parent / _COMMIT_FILE).read_text().strip()
    except OSError:
        return ""


_COMMIT: Final = _commit()


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


def host_facts(folders: Iterable[Path]) -> HostFacts:
    """Asks the file systems, which may take long: in a thread."""
    return HostFacts(
        now_ms=wall_clock_ms(),
        version=_version(),
        open_files=_open_files(),
        max_open_files=_max_open_files(),
        folders=tuple(_space(folder) for folder in folders),
    )


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("kquorum")
    except PackageNotFoundError:
        found = "unknown"
    return f"{found} ({_COMMIT})" if _COMMIT else found


def _open_files() -> int:
    """-1 where the system has no /proc."""
    try:
        # One of them is the listing itself.
        return len(os.listdir("/proc/self/fd")) - 1  # noqa: PTH208 - names only
    except OSError:
        return -1


def _max_open_files() -> int:
    """-1 without a limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return -1 if soft == resource.RLIM_INFINITY else soft


def _space(folder: Path) -> FolderSpace:
    try:
        found = os.statvfs(folder)
    except OSError as error:
        return FolderSpace(path=str(folder), fault=error.strerror or str(error))
    return FolderSpace(
        path=str(folder),
        total_bytes=found.f_blocks * found.f_frsize,
        usable_bytes=found.f_bavail * found.f_frsize,
        total_inodes=found.f_files,
        usable_inodes=found.f_favail,
    )
