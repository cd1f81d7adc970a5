"""`kquorum audit stream`: the tables of an audit, kept up to date as a log grows."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def stream(
    log: Annotated[
        str,
        typer.Argument(
            metavar="LOG",
            help="A metadata folder, or a folder of several; or grpc://HOST:PORT, the log of a running node.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for the tables; go on there with a second run.")],
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="Read what there is now, then end.")
    ] = False,
    every: Annotated[
        float, typer.Option("--every", min=0.1, help="Seconds from one look at the log to the next.")
    ] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="The summary at the end as JSON.")] = False,
    master: Annotated[str, typer.Option(help="The Spark master to run on.")] = "local[*]",
) -> None:
    """Follow a metadata log into the tables of `audit build`, until Ctrl-C; each record once, across restarts too.

    What is damaged goes into the table `damage`; the exit status is then 3.
    """
    from cli.audit.stream_run import StreamRequest, run_stream
    from cli.output import console, print_json

    request = StreamRequest(
        log=log, out=out, until_caught_up=until_caught_up, every_seconds=every, master=master
    )
    summary = run_stream(request)
    if as_json:
        print_json(summary)
    elif summary:
        from cli.audit.summary_tables import print_summary

        print_summary(console(), summary)
    sys.stdout.flush()
    raise typer.Exit(3 if summary and summary["tables"]["damage"]["rows"] else 0)
