"""The logs and folders that the commands of `audit` take; without Spark, as most questions need none."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from kquorum.cli.commands.log.files import refuse_what_is_no_log
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.spark_replay.audit_manifest import AuditManifest, NoAudit, read_manifest
from kquorum.spark_replay.decode.sources import LogFile, NoLogFound, find_log_files_of, printable

_PATTERN: Final = re.compile(r"[\\*?\[\]{}]")


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


def total_bytes(files: Iterable[LogFile]) -> int:
    return sum(file.size_in_bytes for file in files)


def files_to_audit(paths: Path | Sequence[Path]) -> tuple[LogFile, ...]:
    """The files of the logs at these paths; raises CliError."""
    roots = [paths] if isinstance(paths, Path) else list(paths)
    try:
        files = find_log_files_of(roots)
    except NoLogFound as error:
        raise CliError(str(error), status=ExitStatus.USAGE) from None
    except OSError as error:
        raise CliError(
            f"cannot read {printable(str(error.filename))}: {error.strerror}", status=ExitStatus.USAGE
        ) from None
    for path in roots:
        if path.is_file():
            refuse_what_is_no_log(path)
    return files


def manifest_of(path: Path) -> AuditManifest:
    """Raises CliError."""
    try:
        return read_manifest(path)
    except NoAudit as error:
        raise CliError(str(error), status=ExitStatus.USAGE) from None
