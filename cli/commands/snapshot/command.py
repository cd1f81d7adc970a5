"""`kquorum snapshot`: list, check, compare and take snapshots of a metadata log, from its files."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson


class Compression(StrEnum):
    """The codecs that a node writes, too."""

    NONE = "none"
    LZ4 = "lz4"


snapshot_app = typer.Typer(
    help="List, check, compare and take snapshots.", no_args_is_help=True, add_completion=False
)


@snapshot_app.callback()
def _snapshot() -> None:
    """List, check, compare and take snapshots of a metadata log, from its files."""


@snapshot_app.command("list")
def list_command(
    path: Annotated[Path, typer.Argument(metavar="DIR", help="A metadata folder, or one of several.")],
    as_json: AsJson = False,
) -> None:
    """Show the snapshots of a metadata log, even partly written or partly deleted ones."""
    from kquorum.cli.commands.snapshot.list import list_snapshots

    raise typer.Exit(int(list_snapshots(path, as_json=as_json)))


@snapshot_app.command()
def verify(
    path: Annotated[Path, typer.Argument(metavar="FILE|DIR", help="A snapshot, or a metadata folder.")],
    as_json: AsJson = False,
    keep: Annotated[int, typer.Option("--findings", min=1, help="Findings to show for each check.")] = 5,
) -> None:
    """Check a snapshot's header, footer, checksums, number of records, and that its records give a state.

    `kquorum log verify` also compares them with the log. Exit status 0: sound; 1: a rule is broken; 3: damaged.
    """
    from kquorum.cli.commands.snapshot.verify import verify as run

    raise typer.Exit(int(run(path, as_json=as_json, keep=keep)))


@snapshot_app.command()
def diff(
    before: Annotated[Path, typer.Argument(metavar="A", help="The first snapshot.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="The second snapshot.")],
    as_json: AsJson = False,
    limit: Annotated[int, typer.Option(min=0, help="Rows to show of each table; 0 shows all.")] = 50,
) -> None:
    """Show what differs between the states that two snapshots hold."""
    from kquorum.cli.commands.snapshot.verify import diff as run

    raise typer.Exit(int(run(before, after, as_json=as_json, limit=limit)))


@snapshot_app.command()
def take(
    path: Annotated[
        Path, typer.Argument(metavar="DIR", help="A metadata folder; its node may run only with --output.")
    ],
    offset: Annotated[
        int | None,
        typer.Option(min=1, help="The first offset that is not in the snapshot; the log's end by default."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="A folder, or a file to write (NAME.checkpoint); the metadata folder by default."),
    ] = None,
    is_committed: Annotated[
        bool,
        typer.Option(
            "--committed",
            help="I know that all records below the offset are committed: the high watermark of `kquorum quorum "
            "status` is not below it.",
        ),
    ] = False,
    compression: Annotated[
        Compression, typer.Option(help="The compression of the batches; the nodes' own by default.")
    ] = Compression.LZ4,
) -> None:
    """Replay a log up to an offset and write the state as a snapshot.

    The snapshot gets its name only after it was written, flushed, read back and compared.
    """
    from kquorum.cli.commands.snapshot.take import TakeRequest
    from kquorum.cli.commands.snapshot.take import take as run
    from kquorum.wire.compression import CompressionCodec

    request = TakeRequest(
        path=path,
        offset=offset,
        output=output,
        is_committed=is_committed,
        codec=CompressionCodec[compression.name],
    )
    raise typer.Exit(int(run(request)))


COMMAND = Command(
    run=snapshot_app,
    summary="List, check, compare and take snapshots.",
    panel=Panel.READ,
    place=2,
    examples={
        "list": ("kquorum snapshot list kquorum-data/node-1",),
        "verify": ("kquorum snapshot verify kquorum-data/node-1",),
        "diff": ("kquorum snapshot diff old.checkpoint new.checkpoint",),
        "take": (
            "kquorum snapshot take kquorum-data/node-1 --output .",
            "kquorum snapshot take kquorum-data/node-1 --committed",
        ),
    },
)
