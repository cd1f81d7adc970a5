"""The work of `audit build`: check everything that can be wrong first, then start Spark, and print the summary.

Only one build at a time writes a folder, and only a folder that is empty or holds an earlier audit.
"""

import itertools
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kquorum.cli.commands.audit.inputs import check_name, files_to_audit, total_bytes
from kquorum.cli.commands.audit.java import check_java
from kquorum.cli.commands.audit.spark import SMALL_BYTES, QuietSpark, fetch_jars, quiet_spark
from kquorum.cli.commands.log.dump_lines import iso_time
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.regular_files import NotRegular, read_regular
from kquorum.spark_replay.audit import build
from kquorum.spark_replay.audit_manifest import MANIFEST, remove_manifest
from kquorum.spark_replay.decode.sources import (
    BUILD_MARKER,
    LogFile,
    NoLogFound,
    is_remote,
    printable,
)
from kquorum.spark_replay.delta import DELTA, convert, forget
from kquorum.spark_replay.folder_lock import FolderTaken, locked
from kquorum.spark_replay.remote import RemoteFailed, stage
from kquorum.spark_replay.stream.state import is_stream
from kquorum.spark_replay.summary import summarize
from kquorum.spark_replay.tables.building.registry import SCANNED, TABLES
from kquorum.wire.wording import counted

MARKER: Final = BUILD_MARKER  # and the build's lock


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


@contextmanager
def alone_in(out: Path) -> Iterator[None]:
    """The folder marked as a build's, and no other build in it. Raises CliError."""
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(out / MARKER))
        except FolderTaken:
            raise CliError(
                f"another `audit build` is at work in {out}; run this again when it is done",
                status=ExitStatus.FOLDER_REFUSED,
            ) from None
        except NotRegular as error:
            raise CliError(
                f"{error.filename} cannot be this build's lock: {error.strerror}; remove it or name another folder",
                status=ExitStatus.FOLDER_REFUSED,
            ) from None
        yield


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
        content = json.loads(read_regular(out / MANIFEST))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and {"format", "sources", "rows"} <= content.keys()


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
    from kquorum.cli.commands.audit.live_log import local_copies  # gRPC is not everyone's

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
            progress=numbered(spark.progress),
            inputs=told_inputs,
        )
        spark.progress("summing up")
        summary = summarize(spark.session, out, result)
        if request.table_format == DELTA:
            convert(
                spark.session, out, progress=lambda table: spark.progress(f"making the table {table} Delta's")
            )
        return summary


def numbered(progress: Callable[[str], None]) -> Callable[[str], None]:
    """For `build`: the table that is being made, and its number. One pass over the files makes the first three."""
    total = len(TABLES) - len(SCANNED) + 1
    numbers = itertools.count(1)
    return lambda table: progress(f"making the table {table} ({next(numbers)} of {total})")


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


# Two narrow tables instead of a wide one: a terminal of 80 columns shows both without folding a number.
_EXTENT = (
    ("log", "source"),
    ("records", "records"),
    ("offsets", "offsets"),
    ("from (UTC)", "first_ms"),
    ("to", "last_ms"),
)
_CONTENT = (
    ("log", "source"),
    ("epochs", "epochs"),
    ("brokers", "brokers"),
    ("topics", "topics"),
    ("partitions", "partitions"),
    ("leader\nchanges", "leader_changes"),
    ("unclean", "unclean_leader_changes"),
    ("damaged", "damaged_places"),
)
_LEFT = ("log", "offsets")


def print_summary(console: Console, summary: dict[str, Any]) -> None:
    """What each log holds, records by type, the tables written, and what is damaged."""
    console.print(_sources(summary["sources"], _EXTENT))
    console.print(_sources(summary["sources"], _CONTENT))
    console.print(_counts("records by type", summary["record_types"]))
    console.print(_tables(summary["tables"]))
    for row in summary["damage"]:
        console.print(Text.assemble((row["kind"], "red"), f": {_place(row)}: {row['reason']}"))
    hidden = summary["tables"]["damage"]["rows"] - len(summary["damage"])
    if hidden > 0:
        console.print(f"and {hidden} more damaged places in the table damage")


def _sources(sources: list[dict[str, Any]], columns: tuple[tuple[str, str], ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    for title, _ in columns:
        justify: Literal["left", "right"] = "left" if title in _LEFT else "right"
        table.add_column(title, justify=justify, overflow="fold", no_wrap=title != "log", vertical="bottom")
    for source in sources:
        table.add_row(*(Text(_cell(source, name)) for _, name in columns))
    return table


def _cell(source: dict[str, Any], name: str) -> str:
    if name == "offsets":
        first, last = source.get("first_offset"), source.get("last_offset")
        return "" if first is None else f"{first}..{last}"
    value = source.get(name)
    if value is None:
        return ""
    if name.endswith("_ms"):
        return iso_time(value)[:16].replace("T", " ")
    return f"{value:,}" if isinstance(value, int) else str(value)


def _counts(title: str, counts: dict[str, int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(title)
    table.add_column("count", justify="right")
    for name, count in counts.items():
        table.add_row(name, f"{count:,}")
    return table


def _tables(tables: dict[str, dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("table")
    table.add_column("rows", justify="right")
    table.add_column("Parquet", overflow="fold")
    for name, facts in tables.items():
        table.add_row(name, f"{facts['rows']:,}", Text(facts["path"]))
    return table


def _place(row: dict[str, Any]) -> str:
    offset = "" if row["offset"] is None else f", offset {row['offset']}"
    return f"{row['source']}: {row['file']} at byte {row['position']}{offset}"
