"""The work of `audit build`: check everything that can be wrong first, then start Spark."""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from cli.audit.delta_jars import fetch_jars
from cli.audit.out_folder import alone_in, check_addresses, check_out
from cli.audit.spark import SMALL_BYTES, QuietSpark, quiet_spark
from cli.commands.log_dump import refuse_what_is_no_log
from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.java import check_java
from spark_replay.audit import build
from spark_replay.audit_folder import remove_manifest
from spark_replay.delta import DELTA, convert, forget
from spark_replay.remote import RemoteFailed, stage
from spark_replay.several_sources import find_log_files_of, is_remote
from spark_replay.sources import LogFile, NoLogFound, printable
from spark_replay.summary import summarize
from wire.wording import counted

INPUTS: Final = "_inputs"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest:
    """What to audit, paths or addresses that Hadoop reads, and where the tables go."""

    inputs: tuple[str, ...]
    out: Path
    overwrite: bool
    master: str
    table_format: str = "parquet"
    fetch_jars: bool = False


def run_audit(request: AuditRequest) -> dict[str, Any]:
    """Audit and sum up (see `spark_replay.summary`). Raises CliError for everything a user can put right."""
    if request.fetch_jars and request.table_format != DELTA:
        raise CliError(
            f"--fetch-jars is for --format {DELTA}: {request.table_format} needs no jars",
            status=ExitStatus.USAGE,
        )
    from cli.audit.live_log import local_copies  # gRPC is not everyone's

    with local_copies(request.inputs) as inputs:
        return _audited(replace(request, inputs=inputs), request.inputs)


def _audited(request: AuditRequest, told_inputs: tuple[str, ...]) -> dict[str, Any]:
    local = [Path(each) for each in request.inputs if not is_remote(each)]
    files = files_to_audit(local) if local else ()
    check_addresses(request.out, request.inputs)
    check_out(request.out, files, overwrite=request.overwrite)
    check_java()
    if request.fetch_jars:
        fetch_jars()
    request.out.mkdir(parents=True, exist_ok=True)
    with alone_in(request.out):
        check_out(request.out, files, overwrite=request.overwrite)  # another build may have been before us
        return _built(request, told_inputs, files, local)


def _built(
    request: AuditRequest, told_inputs: tuple[str, ...], files: tuple[LogFile, ...], local: list[Path]
) -> dict[str, Any]:
    out, size_in_bytes = request.out.resolve(), total_bytes(files)
    is_known = len(local) == len(request.inputs)  # of what lies elsewhere it is not
    with quiet_spark(
        master=request.master,
        size_in_bytes=size_in_bytes if is_known else SMALL_BYTES,
        keep_log_in=request.out,
        table_format=request.table_format,
    ) as spark:
        roots = _staged(spark, request, out)
        forget(out)
        files = files_to_audit(roots)
        spark.progress(f"reading {counted(len(files), 'file')} of {total_bytes(files) / 1e6:,.1f} MB")
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
    reach that folder, and `audit check` reads the logs again.
    Copies of an audit before go once these are there."""
    unfinished = out / f"{INPUTS}.new"
    shutil.rmtree(unfinished, ignore_errors=True)
    if any(is_remote(each) for each in request.inputs):
        spark.progress("copying the logs")
    try:
        roots = stage(spark.session, request.inputs, unfinished)
        files_to_audit(roots)
    except (NoLogFound, RemoteFailed, CliError) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise CliError(str(error), status=ExitStatus.USAGE) from None
    remove_manifest(out)  # which names the copies of the audit before
    shutil.rmtree(out / INPUTS, ignore_errors=True)
    if unfinished.exists():
        unfinished.rename(out / INPUTS)
    return [_swapped(root, unfinished, out / INPUTS) for root in roots]


def _swapped(root: Path, unfinished: Path, folder: Path) -> Path:
    return folder / root.relative_to(unfinished) if root.is_relative_to(unfinished) else root


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
