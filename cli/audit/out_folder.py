"""The folder `--out` of `audit build`: whether it may be written, and to be written by one build alone."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cli.errors import CliError
from cli.exit_status import ExitStatus
from spark_replay.audit_folder import MANIFEST
from spark_replay.folder_lock import FolderTaken, locked
from spark_replay.several_sources import is_remote
from spark_replay.sources import BUILD_MARKER, LogFile, printable
from spark_replay.stream.state import is_stream

MARKER: Final = BUILD_MARKER  # and the build's lock
_PATTERN: Final = re.compile(r"[\\*?\[\]{}]")


def check_out(out: Path, files: Sequence[LogFile], *, overwrite: bool) -> None:
    """Raises CliError where the tables of these files cannot go into `out`."""
    if out.exists() and not out.is_dir():
        raise CliError(f"--out {out} is a file; name a folder", status=ExitStatus.USAGE)
    check_name(out)
    if is_stream(out):
        raise CliError(
            f"--out {out} has the tables of `audit stream`, which goes on with them; name another folder",
            status=ExitStatus.USAGE,
        )
    _check_apart(out, files)
    if not out.is_dir() or all(path.name == MARKER for path in out.iterdir()):
        return
    if not _is_of_a_build(out):
        raise CliError(
            f"--out {out} is not empty, and what is in it is no audit; name another folder",
            status=ExitStatus.USAGE,
        )
    if not overwrite:
        raise CliError(
            f"--out {out} is not empty; name another folder, or add --overwrite to replace the tables in it",
            status=ExitStatus.USAGE,
        )


def check_addresses(out: Path, inputs: Sequence[str]) -> None:
    """Raises CliError where an address is of this machine (`file:`) and lies in `out`."""
    for each in inputs:
        scheme, _, rest = each.partition(":")
        place = Path("/" + rest.lstrip("/")).resolve()
        if is_remote(each) and scheme == "file" and place.is_relative_to(out.resolve()):
            raise CliError(
                f"--out {out} holds {printable(each)} that is audited; name another folder",
                status=ExitStatus.USAGE,
            )


def check_name(folder: Path) -> None:
    """Hadoop, which reads the tables, takes a part of a path with signs of a pattern and a colon for an address.

    Raises CliError.
    """
    for part in folder.resolve().parts:
        if ":" in part and _PATTERN.search(part):
            raise CliError(
                f"Spark cannot read in the folder {printable(part)}: its name has a colon and one of \\ * ? [ ] {{ }}; "
                "name another folder",
                status=ExitStatus.USAGE,
            )


@contextmanager
def alone_in(out: Path) -> Iterator[None]:
    """The folder marked as a build's, and no other build in it. Raises CliError."""
    with _told(out), locked(out / MARKER):
        yield


@contextmanager
def _told(out: Path) -> Iterator[None]:
    try:
        yield
    except FolderTaken:
        raise CliError(
            f"another `audit build` is at work in {out}; run this again when it is done",
            status=ExitStatus.FOLDER_REFUSED,
        ) from None


def _check_apart(out: Path, files: Sequence[LogFile]) -> None:
    place = out.resolve()
    for folder in {Path(file.path).resolve().parent for file in files}:
        if place.is_relative_to(folder):
            raise CliError(
                f"--out {out} is inside the log that is audited; name another folder", status=ExitStatus.USAGE
            )
        if folder.is_relative_to(place):
            raise CliError(
                f"--out {out} holds the log {printable(str(folder))} that is audited; name another folder",
                status=ExitStatus.USAGE,
            )


def _is_of_a_build(out: Path) -> bool:
    if (out / MARKER).is_file():
        return True
    try:
        content = json.loads((out / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and {"format", "sources", "rows"} <= content.keys()
