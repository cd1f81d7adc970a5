"""`kquorum audit archive`: keep closed segments and snapshots beyond the log's retention. No Spark, no Java."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def archive(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG...",
            help="Metadata folders, or folders of several (the voters of one quorum); with --verify the archive.",
            show_default=False,
        ),
    ],
    to: Annotated[
        Path | None, typer.Option("--to", help="The archive: a folder, made where there is none.")
    ] = None,
    include_active: Annotated[
        bool,
        typer.Option(
            "--include-active",
            help="Also the whole batches of the segment being written; later runs replace that piece.",
        ),
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Archive nothing: check that an archive is what was archived.")
    ] = False,
    head: Annotated[
        str | None,
        typer.Option(
            "--head", help="With --verify: a head noted earlier, which the manifest must lead over."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON.")] = False,
) -> None:
    """Copy closed segments and snapshots into an archive, which keeps them when the node removes its own.

    Each run copies what is new. Exit status 1: source and archive contradict each other, and nothing was archived;
    with --verify: the archive is not what was archived. 3: archived, but a gap or damage was found.
    """
    from cli.audit import archive_output, archive_run
    from cli.output import print_json

    if verify:
        if to is not None or include_active or len(paths) != 1:
            raise typer.BadParameter("--verify takes one archive, and no --to or --include-active")
        verified = archive_run.run_verify(Path(paths[0]), head=head)
        status = archive_run.status_of_verified(verified)
        if as_json:
            print_json(archive_run.as_json(verified))
        else:
            archive_output.print_verified(verified)
    else:
        if to is None or head is not None:
            raise typer.BadParameter("name the archive with --to" if to is None else "--head needs --verify")
        report = archive_run.run_archive(paths, to, include_active=include_active)
        status = archive_run.status_of_run(report)
        if as_json:
            print_json(archive_run.as_json(report))
        else:
            archive_output.print_report(report)
    sys.stdout.flush()
    raise typer.Exit(status)
