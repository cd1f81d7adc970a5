"""The work of `audit build`: check everything that can be wrong first, then start Spark."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.audit.spark import quiet_spark
from cli.commands.log_dump import refuse_what_is_no_log
from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.java import check_java
from spark_replay.audit import build
from spark_replay.sources import LogFile, NoLogFound, find_log_files
from spark_replay.summary import summarize


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest:
    """What to audit, and where the tables go."""

    path: Path
    out: Path
    overwrite: bool
    master: str


def run_audit(request: AuditRequest) -> dict[str, Any]:
    """Audit and sum up (see `spark_replay.summary`). Raises CliError for everything a user can put right."""
    files = files_to_audit(request.path)
    _check_out(request.out, files, overwrite=request.overwrite)
    check_java()
    request.out.mkdir(parents=True, exist_ok=True)
    out, size_in_bytes = request.out.resolve(), total_bytes(files)
    with quiet_spark(master=request.master, size_in_bytes=size_in_bytes, keep_log_in=request.out) as spark:
        spark.progress(f"reading {len(files)} files of {size_in_bytes / 1e6:,.1f} MB")
        result = build(
            spark.session,
            request.path,
            out,
            progress=lambda table: spark.progress(f"making the table {table}"),
        )
        spark.progress("summing up")
        return summarize(spark.session, out, result)


def total_bytes(files: Iterable[LogFile]) -> int:
    return sum(file.size_in_bytes for file in files)


def files_to_audit(path: Path) -> tuple[LogFile, ...]:
    """The files of the log at `path`; raises CliError."""
    try:
        files = find_log_files(path)
    except NoLogFound as error:
        raise CliError(str(error), status=ExitStatus.USAGE) from None
    except OSError as error:
        raise CliError(f"cannot read {error.filename}: {error.strerror}", status=ExitStatus.USAGE) from None
    if path.is_file():
        refuse_what_is_no_log(path)
    return files


def _check_out(out: Path, files: tuple[LogFile, ...], *, overwrite: bool) -> None:
    if out.exists() and not out.is_dir():
        raise CliError(f"--out {out} is a file; name a folder", status=ExitStatus.USAGE)
    folders = {Path(file.path).parent for file in files}
    if any(out.resolve().is_relative_to(folder) for folder in folders):
        raise CliError(
            f"--out {out} is inside the log that is audited; name another folder", status=ExitStatus.USAGE
        )
    if out.is_dir() and any(out.iterdir()) and not overwrite:
        raise CliError(
            f"--out {out} is not empty; name another folder, or add --overwrite to replace the tables in it",
            status=ExitStatus.USAGE,
        )
