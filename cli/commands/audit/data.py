"""The work of `audit data`: the tables of the partitions' logs, beside those of a metadata log or alone."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kquorum.cli.commands.audit.build import MARKER, alone_in
from kquorum.cli.commands.audit.inputs import check_name
from kquorum.cli.commands.audit.java import check_java
from kquorum.cli.commands.audit.spark import quiet_spark
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import print_table
from kquorum.spark_replay.audit_manifest import NoAudit, is_audit
from kquorum.spark_replay.data.building import UNFINISHED, DataAudit, build_data
from kquorum.spark_replay.data.log_dirs import LogDir, NoLogDir, find_log_dirs
from kquorum.spark_replay.data.registry import DATA_TABLES
from kquorum.spark_replay.stream.state import is_stream
from kquorum.wire.safe_text import safe_text


@dataclass(frozen=True, slots=True, kw_only=True)
class DataRequest:
    """Which folders, and where the tables go: a finished audit, or a folder without anything in it."""

    inputs: tuple[Path, ...]
    out: Path
    master: str


def run_data(request: DataRequest) -> DataAudit:
    """Raises CliError for everything that a user can put right."""
    log_dirs = _found(request.inputs)
    _check_out(request.out, log_dirs)
    check_java()
    request.out.mkdir(parents=True, exist_ok=True)
    size = sum(
        (Path(folder.path) / name).lstat().st_size
        for log_dir in log_dirs
        for folder in log_dir.partitions
        for name in folder.segments
    )
    with (
        alone_in(request.out),
        quiet_spark(master=request.master, size_in_bytes=size, keep_log_in=request.out) as spark,
    ):
        spark.progress("reading partitions")
        try:
            return build_data(
                spark.session,
                log_dirs,
                request.out.resolve(),
                progress=lambda done, total: spark.progress(_told(done, total)),
            )
        except NoAudit as error:
            raise CliError(str(error), status=ExitStatus.USAGE) from None
        except OSError as error:
            raise CliError(f"{error.filename}: {error.strerror}", status=ExitStatus.IO_ERROR) from None


def _told(done: int, total: int) -> str:
    """Of many partitions not each: a line for each would fill the screen where progress is written in lines."""
    steps = max(total // 20, 1)
    return f"{done:,} of {total:,} partitions" if done % steps == 0 or done == total else ""


def _found(inputs: tuple[Path, ...]) -> tuple[LogDir, ...]:
    try:
        return find_log_dirs(inputs)
    except NoLogDir as error:
        raise CliError(str(error), status=ExitStatus.USAGE) from None
    except OSError as error:
        raise CliError(f"cannot read {error.filename}: {error.strerror}", status=ExitStatus.USAGE) from None


def _check_out(out: Path, log_dirs: tuple[LogDir, ...]) -> None:
    if out.exists() and not out.is_dir():
        raise CliError(f"--out {out} is a file; name a folder", status=ExitStatus.USAGE)
    check_name(out)
    if any(out.resolve().is_relative_to(each.path) for each in log_dirs):
        raise CliError(f"--out {out} is inside a log directory; name another folder", status=ExitStatus.USAGE)
    if is_stream(out):
        raise CliError(
            f"--out {out} has the tables of `audit stream`; name another folder", status=ExitStatus.USAGE
        )
    is_free = not out.is_dir() or all(path.name in (MARKER, UNFINISHED) for path in out.iterdir())
    if not is_free and not is_audit(out):
        raise CliError(
            f"--out {out} is not empty, and is no finished audit; name a new folder, or that of an audit",
            status=ExitStatus.USAGE,
        )


def print_data(found: DataAudit) -> None:
    """What was read, and the rows of each table."""
    print_table(
        "",
        ("log directory", "#partitions", "#segments"),
        [
            (safe_text(each.source), len(each.partitions), sum(len(one.segments) for one in each.partitions))
            for each in found.log_dirs
        ],
    )
    print_table("", ("table", "#rows"), [(name, found.rows[name]) for name in DATA_TABLES])


def as_json(found: DataAudit) -> dict[str, Any]:
    return {
        "log_dirs": [
            {"source": each.source, "path": each.path, "partitions": len(each.partitions)}
            for each in found.log_dirs
        ],
        "tables": {name: {"rows": rows} for name, rows in found.rows.items()},
    }
