"""The work of `audit build`: check everything that can be wrong first, then start Spark."""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from cli.audit.spark import SMALL_BYTES, QuietSpark, quiet_spark
from cli.commands.log_dump import refuse_what_is_no_log
from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.java import check_java
from spark_replay.audit import build
from spark_replay.delta import DELTA, convert, forget
from spark_replay.remote import RemoteFailed, stage
from spark_replay.several_sources import find_log_files_of, is_remote
from spark_replay.sources import LogFile, NoLogFound, printable
from spark_replay.stream.state import is_stream
from spark_replay.summary import summarize

INPUTS: Final = "_inputs"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest:
    """What to audit, paths or addresses that Hadoop reads, and where the tables go."""

    inputs: tuple[str, ...]
    out: Path
    overwrite: bool
    master: str
    table_format: str = "parquet"


def run_audit(request: AuditRequest) -> dict[str, Any]:
    """Audit and sum up (see `spark_replay.summary`). Raises CliError for everything a user can put right."""
    from cli.audit.live_log import local_copies  # gRPC is not everyone's

    with local_copies(request.inputs) as inputs:
        return _audited(replace(request, inputs=inputs), request.inputs)


def _audited(request: AuditRequest, told_inputs: tuple[str, ...]) -> dict[str, Any]:
    local = [Path(each) for each in request.inputs if not is_remote(each)]
    files = files_to_audit(local) if local else ()
    _check_out(request.out, files, overwrite=request.overwrite)
    check_java()
    request.out.mkdir(parents=True, exist_ok=True)
    out, size_in_bytes = request.out.resolve(), total_bytes(files)
    is_known = len(local) == len(request.inputs)  # of what lies elsewhere it is not
    with quiet_spark(
        master=request.master,
        size_in_bytes=size_in_bytes if is_known else SMALL_BYTES,
        keep_log_in=request.out,
        table_format=request.table_format,
    ) as spark:
        forget(out)
        roots = _staged(spark, request, out)
        files = files_to_audit(roots)
        spark.progress(f"reading {len(files)} files of {total_bytes(files) / 1e6:,.1f} MB")
        result = build(
            spark.session,
            roots,
            out,
            progress=lambda table: spark.progress(f"making the table {table}"),
            inputs=told_inputs,
        )
        spark.progress("summing up")
        summary = summarize(spark.session, out, result)
        if request.table_format == DELTA:
            convert(
                spark.session, out, progress=lambda table: spark.progress(f"making the table {table} Delta's")
            )
        return summary


def _staged(spark: QuietSpark, request: AuditRequest, out: Path) -> list[Path]:
    """The inputs as paths. What lies elsewhere is copied beside the tables and stays there: the executors of a cluster
    reach that folder, and `audit check` reads the logs again."""
    shutil.rmtree(out / INPUTS, ignore_errors=True)
    if any(is_remote(each) for each in request.inputs):
        spark.progress("copying the logs")
    try:
        return stage(spark.session, request.inputs, out / INPUTS)
    except (NoLogFound, RemoteFailed) as error:
        raise CliError(str(error), status=ExitStatus.USAGE) from None


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


def _check_out(out: Path, files: tuple[LogFile, ...], *, overwrite: bool) -> None:
    if out.exists() and not out.is_dir():
        raise CliError(f"--out {out} is a file; name a folder", status=ExitStatus.USAGE)
    if is_stream(out):
        raise CliError(
            f"--out {out} has the tables of `audit stream`, which goes on with them; name another folder",
            status=ExitStatus.USAGE,
        )
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
