"""The text of a config file, or of what stands in for one."""

import errno
import io
import os
from pathlib import Path
from typing import BinaryIO, Final

from kquorum.regular_files import open_regular

# A config of a thousand nodes takes a tenth of it.
MOST_BYTES: Final = 1 << 20
# What the shell opens, as for `-c <(make-config)`: the other end has a writer, so the text ends.
_STREAMS = ("/dev/fd/", "/proc/self/fd/")
_STANDARD_STREAMS = ("/dev/stdin", "/dev/null")


def why_unreadable(error: OSError | UnicodeDecodeError) -> str:
    """What was wrong with the file, without its name."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return error.strerror or str(error)


def read_config_text(path: Path) -> str:
    """Links are followed. Raises OSError, for a pipe or a device and for more than `MOST_BYTES` too, and
    UnicodeDecodeError.

    A read of a named pipe without a writer would never return, and a device may never end.
    """
    name = str(path)
    if name in _STANDARD_STREAMS or name.startswith(_STREAMS):
        with path.open("rb") as stream:
            return _text(stream)
    with os.fdopen(open_regular(path, follows_links=True), "rb") as file:
        return _text(file)


def _text(file: BinaryIO) -> str:
    data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES:,} bytes, which no config needs")
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8").read()
