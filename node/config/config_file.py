"""The text of a config file, or of what stands in for one."""

import os
from pathlib import Path

from storage.file_system import open_regular

# What the shell hands over, as in `-c <(make-config)`: whoever writes it is there, and it ends.
_STREAMS = ("/dev/fd/", "/proc/self/fd/")
_STANDARD_STREAMS = ("/dev/stdin", "/dev/null")


def read_config_text(path: Path) -> str:
    """Links are followed. Raises OSError, for a pipe or a device too, and UnicodeDecodeError.

    A named pipe without a writer would hold up the command for good, and a device may never end.
    """
    name = str(path)
    if name in _STANDARD_STREAMS or name.startswith(_STREAMS):
        return path.read_text("utf-8")
    with os.fdopen(open_regular(path, follows_links=True), encoding="utf-8") as file:
        return file.read()
