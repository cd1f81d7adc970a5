"""The text of a config file, or of what stands in for one."""

import os
from pathlib import Path

from kquorum.storage.file_system import open_regular

# What the shell opens, as for `-c <(make-config)`: the other end has a writer, so the text ends.
_STREAMS = ("/dev/fd/", "/proc/self/fd/")
_STANDARD_STREAMS = ("/dev/stdin", "/dev/null")


def why_unreadable(error: OSError | UnicodeDecodeError) -> str:
    """What was wrong with the file, without its name."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return error.strerror or str(error)


def read_config_text(path: Path) -> str:
    """Links are followed. Raises OSError, for a pipe or a device too, and UnicodeDecodeError.

    A read of a named pipe without a writer would never return, and a device may never end.
    """
    name = str(path)
    if name in _STANDARD_STREAMS or name.startswith(_STREAMS):
        return path.read_text("utf-8")
    with os.fdopen(open_regular(path, follows_links=True), encoding="utf-8") as file:
        return file.read()
