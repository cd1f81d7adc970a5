"""The work of `audit`: check everything that can be wrong first, then start Spark, and let none of its noise out."""

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from cli.commands.log_dump import refuse_what_is_no_log
from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.java import check_java
from spark_replay.audit import Progress, build
from spark_replay.session import start_session
from spark_replay.sources import LogFile, NoLogFound, find_log_files
from spark_replay.summary import summarize

SPARK_LOG = "spark.log"
_EXCEPTION_LINE = re.compile(r"[\w.]*(Error|Exception|Found): ")
SMALL_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest:
    """What to audit, and where the tables go."""

    path: Path
    out: Path
    overwrite: bool
    master: str


def run_audit(request: AuditRequest) -> dict[str, Any]:
    """Audit and sum up (see `spark_replay.summary`). Raises CliError for everything a user can put right."""
    files = _files_to_audit(request.path)
    _check_out(request.out, files, overwrite=request.overwrite)
    check_java()
    request.out.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="kquorum-audit-", ignore_cleanup_errors=True) as work,
        _progress() as progress,
        _spark_failures_told(Path(work), request.out),
    ):
        return _audited(request, files, Path(work), progress)


def _audited(
    request: AuditRequest, files: tuple[LogFile, ...], work: Path, progress: Progress
) -> dict[str, Any]:
    size_in_bytes = sum(file.size_in_bytes for file in files)
    progress(f"starting Spark for {len(files)} files of {size_in_bytes / 1e6:,.1f} MB")
    spark = start_session(work, master=request.master, small=size_in_bytes < SMALL_BYTES)
    try:
        result = build(
            spark,
            request.path,
            request.out.resolve(),
            progress=lambda table: progress(f"making the table {table}"),
        )
        progress("summing up")
        return summarize(spark, request.out.resolve(), result)
    finally:
        spark.stop()


def _files_to_audit(path: Path) -> tuple[LogFile, ...]:
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


@contextmanager
def _progress() -> Iterator[Progress]:
    """Calls with what is being done: one changing line on a terminal, plain lines elsewhere; on standard error."""
    if not sys.stderr.isatty():
        yield lambda step: typer.echo(f"{step} ...", err=True)
        return
    from cli.output import error_console

    with error_console().status("") as status:
        yield status.update


@contextmanager
def _spark_failures_told(work: Path, out: Path) -> Iterator[None]:
    """Turns a failure of Spark into one line, and keeps Spark's own log where the line says."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        kept = out / SPARK_LOG
        if (work / SPARK_LOG).is_file():
            shutil.copyfile(work / SPARK_LOG, kept)
        raise CliError(
            f"Spark failed: {_reason(error)}; its log is {kept}", status=ExitStatus.FAILED
        ) from error


def _reason(error: Exception) -> str:
    """The line that says why: the last one of a Python traceback in it where there is one, else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    exceptions = [line for line in lines if _EXCEPTION_LINE.match(line)]
    return [type(error).__name__, *lines[:1], *exceptions[-1:]][-1]
