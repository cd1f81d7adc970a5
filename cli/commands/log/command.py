"""`kquorum log`: read a metadata log, of this project or of Apache Kafka, from its files."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson

if TYPE_CHECKING:
    from kquorum.cli.commands.log.dump import DumpRequest
    from kquorum.cli.commands.log.partition_log import PartitionDump
    from kquorum.cli.commands.log.states import Moment

log_app = typer.Typer(help="Read a metadata log from its files.", no_args_is_help=True, add_completion=False)


@log_app.callback()
def _log() -> None:
    """Read a metadata log from its files."""


@log_app.command()
def dump(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|DIR",
            help="A segment or snapshot, a metadata or partition folder, or a folder of several.",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
    batches: Annotated[bool, typer.Option("--batches", help="Show batches instead of records.")] = False,
    snapshots: Annotated[
        bool, typer.Option("--snapshots", help="Show the snapshots of a folder too.")
    ] = False,
    record_types: Annotated[
        list[str] | None, typer.Option("--type", help="Only records of this type; may be repeated.")
    ] = None,
    no_noop: Annotated[
        bool, typer.Option("--no-noop", help="Leave out NoOpRecords without an audit note.")
    ] = False,
    from_offset: Annotated[int | None, typer.Option(help="The first offset to show.")] = None,
    to_offset: Annotated[int | None, typer.Option(help="Stop before this offset.")] = None,
    from_time: Annotated[
        str | None, typer.Option(help="Start at this time: ISO 8601 (UTC) or milliseconds since 1970.")
    ] = None,
    to_time: Annotated[str | None, typer.Option(help="Stop before this time.")] = None,
    topic: Annotated[str | None, typer.Option(help="Only records about the topic of this name.")] = None,
    show_secrets: Annotated[
        bool, typer.Option("--show-secrets", help="Show passwords and credentials in clear.")
    ] = False,
    offsets: Annotated[
        str | None, typer.Option(metavar="FROM..TO", help="Offsets to show; TO is the first one behind them.")
    ] = None,
    values: Annotated[
        bool, typer.Option("--values", help="Show the values of a partition's records, not their lengths.")
    ] = False,
) -> None:
    """Show the records of a log, one line each (`less -S` cuts long lines).

    The command reports each torn or corrupt part with its place on standard error, shows the rest, and exits with 3.
    With --from-offset or --to-offset it reads only that part of a metadata segment that has an offset index. Of a
    partition's folder it shows keys, markers and producers; with --snapshots its index and snapshot files too.
    """
    from kquorum.cli.commands.log.partition_log import PartitionDump, is_of_partition

    if offsets is not None:
        from_offset, to_offset = _offsets(offsets)
    if is_of_partition(path):
        of_metadata = {
            "--type": record_types,
            "--topic": topic,
            "--no-noop": no_noop,
            "--from-time": from_time,
            "--to-time": to_time,
        }
        _refuse_for_partition(path, of_metadata)
        partition_dump = PartitionDump(
            path=path,
            from_offset=from_offset,
            to_offset=to_offset,
            batches=batches,
            files=snapshots,
            as_json=as_json,
            values=values,
        )
        raise typer.Exit(_dump_partition(partition_dump))
    from kquorum.cli.commands.log.dump import DumpRequest
    from kquorum.cli.commands.log.dump_filters import DumpFilter, parse_time, parse_types

    _check_metadata_dump(
        path, chooses_batches=batches, chooses_records=bool(record_types or topic is not None)
    )
    request = DumpRequest(
        path=path,
        filter=DumpFilter(
            types=parse_types(record_types or ()),
            from_offset=from_offset,
            to_offset=to_offset,
            from_ms=parse_time("--from-time", from_time),
            to_ms=parse_time("--to-time", to_time),
            topic=topic,
            shows_noop=not no_noop,
        ),
        batches=batches,
        snapshots=snapshots,
        as_json=as_json,
        colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ,
        show_secrets=show_secrets,
    )
    raise typer.Exit(_dump_metadata(request))


@log_app.command()
def verify(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|DIR",
            help="A metadata or partition folder, a log directory, a folder of several, or one file.",
        ),
    ],
    as_json: AsJson = False,
    keep: Annotated[int, typer.Option("--findings", min=1, help="Findings to show for each check.")] = 5,
) -> None:
    """Check every batch, index, checkpoint and snapshot of a metadata log, of a partition's folder, or of all
    partitions of a log directory.

    Exit status 0: sound; 1: readable, but a rule is broken; 3: something cannot be read.
    """
    from kquorum.cli.commands.log.log_directory import verify_log_directory
    from kquorum.cli.commands.log.partition_log import is_of_partition, partition_folders, verify_partition
    from kquorum.cli.commands.log.verify import verify as run

    if is_of_partition(path):
        raise typer.Exit(int(verify_partition(path, as_json=as_json, keep=keep)))
    if folders := partition_folders(path):
        raise typer.Exit(int(verify_log_directory(path, folders, as_json=as_json, keep=keep)))
    raise typer.Exit(int(run(path, as_json=as_json, keep=keep)))


@log_app.command()
def diff(
    path: Annotated[Path, typer.Argument(metavar="FILE|DIR", help="A metadata folder, or one segment.")],
    from_offset: Annotated[
        int | None,
        typer.Option("--from", min=0, help="The state before this offset; the oldest one by default."),
    ] = None,
    to_offset: Annotated[
        int | None,
        typer.Option("--to", min=0, help="The state before this offset; the newest one by default."),
    ] = None,
    from_time: Annotated[
        str | None, typer.Option(help="Instead of --from: ISO 8601 (UTC) or milliseconds since 1970.")
    ] = None,
    to_time: Annotated[str | None, typer.Option(help="Instead of --to.")] = None,
    as_json: AsJson = False,
    limit: Annotated[int, typer.Option(min=0, help="Rows to show of each table; 0 shows all.")] = 50,
) -> None:
    """Show what changed in the state between two offsets or times of a metadata log."""
    from kquorum.cli.commands.log.diff import DiffRequest
    from kquorum.cli.commands.log.diff import diff as run

    since = _moment("from", from_offset, from_time)
    until = _moment("to", to_offset, to_time)
    request = DiffRequest(path=path, since=since, until=until, as_json=as_json, limit=limit)
    raise typer.Exit(int(run(request)))


@log_app.command("state-hash")
def state_hash(
    path: Annotated[Path, typer.Argument(metavar="FILE|DIR", help="A metadata folder, or one segment.")],
    offset: Annotated[
        int | None, typer.Option(min=0, help="The last offset of the state; the newest state by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the hash of the state that a log leads to; `quorum status` shows it for running nodes.

    Equal hashes at equal offsets mean equal metadata, even if the files differ.
    """
    from kquorum.cli.commands.log.state_hash import state_hash as run

    raise typer.Exit(int(run(path, offset, as_json=as_json)))


def _moment(side: str, offset: int | None, time: str | None) -> "Moment | None":
    from kquorum.cli.commands.log.dump_filters import parse_time
    from kquorum.cli.commands.log.states import Moment

    if offset is not None and time is not None:
        raise typer.BadParameter(f"--{side} and --{side}-time exclude each other")
    time_ms = parse_time(f"--{side}-time", time)
    return None if offset is None and time_ms is None else Moment(offset, time_ms)


def _offsets(text: str) -> tuple[int | None, int | None]:
    start, dots, end = text.partition("..")
    if not dots or not all(each == "" or each.isdecimal() for each in (start, end)):
        raise typer.BadParameter(
            f"--offsets {text}: two offsets with .. between them were due, as 10..20 or 10.."
        )
    return int(start) if start else None, int(end) if end else None


def _refuse_for_partition(path: Path, of_metadata: Mapping[str, object]) -> None:
    """`of_metadata` has the values of the options that a partition's log does not know."""
    if wrong := [name for name, value in of_metadata.items() if value]:
        raise typer.BadParameter(
            f"{path} is a partition's log; {', '.join(wrong)} only choose metadata records"
        )


def _check_metadata_dump(path: Path, *, chooses_batches: bool, chooses_records: bool) -> None:
    from kquorum.cli.commands.log.log_directory import refuse_several
    from kquorum.cli.commands.log.partition_log import partition_folders

    refuse_several(path, partition_folders(path))
    if chooses_batches and chooses_records:
        raise typer.BadParameter("--type and --topic choose records; they do not go with --batches")


def _dump_partition(request: "PartitionDump") -> int:
    from kquorum.cli.commands.log.partition_log import dump_partition as run

    return _to_standard_output(lambda write: int(run(request, write)))


def _dump_metadata(request: "DumpRequest") -> int:
    from kquorum.cli.commands.log.dump import dump as run

    return _to_standard_output(lambda write: int(run(request, write)))


def _to_standard_output(run: Callable[[Callable[[str], object]], int]) -> int:
    """Run a dump; a reader that goes away early, as `head` does, is no error."""
    try:
        status = run(sys.stdout.write)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes standard output once more at its end; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


COMMAND = Command(
    run=log_app,
    summary="Read, check and compare metadata logs.",
    panel=Panel.READ,
    place=1,
    examples={
        "dump": (
            "kquorum log dump kquorum-data/node-1 --topic orders",
            "kquorum log dump kquorum-data/node-1 --type KRaftVoters --json",
            "kquorum log dump /var/lib/kafka/__cluster_metadata-0 --no-noop",
            "kquorum log dump /var/lib/kafka/orders-0 --offsets 100..200",
        ),
        "verify": (
            "kquorum log verify kquorum-data/node-1",
            "kquorum log verify /var/lib/kafka/__cluster_metadata-0 --json",
            "kquorum log verify /var/lib/kafka/orders-0",
        ),
        "state-hash": ("kquorum log state-hash kquorum-data/node-1 --offset 180",),
        "diff": ("kquorum log diff kquorum-data/node-1 --from 120 --to 180",),
    },
)
