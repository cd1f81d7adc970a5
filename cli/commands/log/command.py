"""`kquorum log`: read a metadata log, of this project or of Apache Kafka, from its files."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson

if TYPE_CHECKING:
    from kquorum.cli.commands.log.dump import DumpRequest
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
            metavar="FILE|DIR", help="A segment, a snapshot, a metadata folder, or a folder of several."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    batches: Annotated[bool, typer.Option("--batches", help="Batches instead of records.")] = False,
    snapshots: Annotated[
        bool, typer.Option("--snapshots", help="Of a folder, show its snapshots too.")
    ] = False,
    record_types: Annotated[
        list[str] | None, typer.Option("--type", help="Only records of this type; may be repeated.")
    ] = None,
    no_noop: Annotated[
        bool, typer.Option("--no-noop", help="Without NoOpRecords that hold no note.")
    ] = False,
    from_offset: Annotated[int | None, typer.Option(help="First offset shown.")] = None,
    to_offset: Annotated[int | None, typer.Option(help="First offset not shown any more.")] = None,
    from_time: Annotated[
        str | None, typer.Option(help="First time shown: ISO 8601 (UTC) or milliseconds since 1970.")
    ] = None,
    to_time: Annotated[str | None, typer.Option(help="First time not shown any more.")] = None,
    topic: Annotated[str | None, typer.Option(help="Only records about the topic of this name.")] = None,
    show_secrets: Annotated[
        bool, typer.Option("--show-secrets", help="Show passwords and credentials in clear.")
    ] = False,
) -> None:
    """Show the records of a metadata log, one line each, however long it is (`less -S` shows the beginnings).

    What is torn or corrupt is reported on standard error with its place, the rest is shown all the same, and the exit
    status is then 3. Of a segment with an offset index, only what --from-offset and --to-offset leave is read.
    """
    from kquorum.cli.commands.log.dump import DumpRequest
    from kquorum.cli.commands.log.dump_filters import DumpFilter, parse_time, parse_types

    if batches and (record_types or topic is not None):
        raise typer.BadParameter("--type and --topic choose records; they do not go with --batches")
    chosen = DumpFilter(
        types=parse_types(record_types or ()),
        from_offset=from_offset,
        to_offset=to_offset,
        from_ms=parse_time("--from-time", from_time),
        to_ms=parse_time("--to-time", to_time),
        topic=topic,
        shows_noop=not no_noop,
    )
    request = DumpRequest(
        path=path,
        filter=chosen,
        batches=batches,
        snapshots=snapshots,
        as_json=as_json,
        colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ,
        show_secrets=show_secrets,
    )
    raise typer.Exit(_dump_to_standard_output(request))


@log_app.command()
def verify(
    path: Annotated[
        Path,
        typer.Argument(metavar="FILE|DIR", help="A metadata folder, a folder of several, or one file."),
    ],
    as_json: AsJson = False,
    keep: Annotated[
        int, typer.Option("--findings", min=1, help="How many findings of each check are shown.")
    ] = 5,
) -> None:
    """Check every batch, index, checkpoint and snapshot of a metadata log.

    Exit status 0: sound; 1: readable, but a rule is broken; 3: something cannot be read.
    """
    from kquorum.cli.commands.log.verify import verify as run

    raise typer.Exit(int(run(path, as_json=as_json, keep=keep)))


@log_app.command()
def diff(
    path: Annotated[Path, typer.Argument(metavar="FILE|DIR", help="A metadata folder, or one segment.")],
    from_offset: Annotated[
        int | None,
        typer.Option("--from", min=0, help="The state before this offset; the oldest there is without it."),
    ] = None,
    to_offset: Annotated[
        int | None, typer.Option("--to", min=0, help="The state before this offset; the newest without it.")
    ] = None,
    from_time: Annotated[
        str | None, typer.Option(help="Instead of --from: ISO 8601 (UTC) or milliseconds since 1970.")
    ] = None,
    to_time: Annotated[str | None, typer.Option(help="Instead of --to.")] = None,
    as_json: AsJson = False,
    limit: Annotated[int, typer.Option(min=0, help="Rows of each table; 0 for all.")] = 50,
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
        int | None, typer.Option(min=0, help="The state whose last offset is this; the newest without it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the hash of the state that a log leads to, as `quorum status` shows it of running nodes.

    Equal hashes at equal offsets mean equal metadata, whatever the files look like.
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


def _dump_to_standard_output(request: "DumpRequest") -> int:
    """Run the dump; a reader that goes away early, as `head` does, is no error."""
    from kquorum.cli.commands.log.dump import dump as run

    try:
        status = run(request, sys.stdout.write)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes standard output once more at its end; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return int(status)


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
        ),
        "verify": (
            "kquorum log verify kquorum-data/node-1",
            "kquorum log verify /var/lib/kafka/__cluster_metadata-0 --json",
        ),
        "state-hash": ("kquorum log state-hash kquorum-data/node-1 --offset 180",),
        "diff": ("kquorum log diff kquorum-data/node-1 --from 120 --to 180",),
    },
)
