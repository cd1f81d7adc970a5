"""Secrets that a command needs: from a file, from standard input, or typed without an echo.

None is an argument of the command line: every user of the machine may read those, and the shell keeps them.
"""

import os
import stat
import sys
from pathlib import Path
from typing import Final

from kquorum.cli.failures import CliError, usage_error

_STANDARD_INPUT: Final = "-"
_MAX_BYTES: Final = 64 * 1024


def read_secret(path: str | None, what: str, option: str, *, is_new: bool) -> str:
    """The text of a file (`-`: of standard input) without the line break at its end; without one it is asked for at a
    terminal, twice if `is_new`. Raises CliError."""
    if path is None:
        return _typed(what, option, is_new=is_new)
    place = "standard input" if path == _STANDARD_INPUT else path
    data = sys.stdin.buffer.read(_MAX_BYTES + 1) if path == _STANDARD_INPUT else _file(Path(path), what)
    if len(data) > _MAX_BYTES:
        raise usage_error(f"{place} holds more than {_MAX_BYTES:,} bytes: is it the file with the {what}?")
    try:
        text = data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise usage_error(f"the {what} in {place} is not UTF-8") from None
    return _checked(text, what, place)


def _file(path: Path, what: str) -> bytes:
    from kquorum.cli.output import complain

    with path.open("rb") as opened:
        if stat.S_IMODE(os.fstat(opened.fileno()).st_mode) & (stat.S_IRGRP | stat.S_IROTH):
            complain(
                f"other users can read the {what} in {path}: `chmod 600 {path}`",
                style="yellow",
                label="warning",
            )
        return opened.read(_MAX_BYTES + 1)


def _typed(what: str, option: str, *, is_new: bool) -> str:
    from getpass import getpass

    if not sys.stdin.isatty():
        raise usage_error(
            f"there is no terminal to ask for the {what}: give {option} FILE, or {option} - to pipe it in"
        )
    text = getpass(f"{what}: ")
    if is_new and getpass(f"{what}, once more: ") != text:
        raise CliError(f"the two are not the same {what}; nothing was changed")
    return _checked(text, what, "what was typed")


def _checked(text: str, what: str, place: str) -> str:
    if not text:
        raise usage_error(f"there is no {what} in {place}")
    if "\n" in text or "\r" in text:
        raise usage_error(f"the {what} in {place} has more than one line")
    return text


def check_new_file(path: Path) -> None:
    """Before a secret is made that is to be written there. Raises CliError if the file exists, or has no folder."""
    if path.exists():
        raise _exists(path)
    if not path.absolute().parent.is_dir():
        raise CliError(f"there is no folder {path.absolute().parent} for {path.name}: create it first")


def _exists(path: Path) -> CliError:
    return CliError(f"{path} exists and is not overwritten: name another file, or remove it")


def write_secret(path: Path, text: str) -> None:
    """A new file that only this user can read. Raises CliError if it exists, OSError."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise _exists(path) from None
    with os.fdopen(descriptor, "w") as opened:
        opened.write(text + "\n")
