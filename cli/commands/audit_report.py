"""`kquorum audit report`: what happened to a cluster, on one page of HTML."""

from pathlib import Path
from typing import Annotated

import typer

from cli.audit.options import LOCAL, AuditOrLog, Master, Source


def report(
    path: AuditOrLog,
    out: Annotated[
        Path, typer.Option("--out", help="The file to write; another report there is replaced.")
    ] = Path("report.html"),
    since: Annotated[
        str | None,
        typer.Option(
            "--since", help="From this time on: ISO 8601 (UTC unless it says otherwise) or ms since 1970."
        ),
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="Up to this time, inclusive.")] = None,
    source: Source = None,
    with_checks: Annotated[
        bool, typer.Option("--checks/--no-checks", help="Whether to run the checks of audit check for it.")
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="The page and its first sentences as JSON.")
    ] = False,
    master: Master = LOCAL,
) -> None:
    """Write what happened to a cluster as one HTML page: controllers, brokers, leaders, outages, large changes, checks.

    The page needs nothing else: no network, no other file. Made from a log with damaged places, its exit
    status is 3; from a finished audit it is not, as `audit build` said so.
    """
    from cli.audit.report_run import ReportRequest, write_report
    from cli.commands.log_filters import parse_time
    from cli.output import print_json, say
    from spark_replay.report.highlights import highlights
    from spark_replay.report.words import size
    from wire.safe_text import safe_text

    request = ReportRequest(
        path=path,
        out=out,
        source=source,
        since_ms=parse_time("--since", since),
        until_ms=parse_time("--until", until),
        with_checks=with_checks,
        master=master,
    )
    written = write_report(request)
    if as_json:
        print_json(written.as_json())
    else:
        say(f"{written.out}: {size(written.size_in_bytes)}", style="bold")
        for each in highlights(written.facts):
            say(f"- {safe_text(each.text)}")
    raise typer.Exit(3 if written.is_damaged else 0)
