"""`kquorum doctor`: check a whole cluster and its folders, and say what to do."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson, BootstrapServer, ConfigPath, DataDir

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kquorum.cli.commands.doctor.findings import Finding, Report


def doctor(
    config: ConfigPath = Path("quorum.toml"),
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Read every batch in the folders on this machine, as `log verify` does."),
    ] = False,
    offline: Annotated[
        bool,
        typer.Option("--offline", help="Ask no node: check the config and the folders on this machine only."),
    ] = False,
    data_dir: DataDir = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: Annotated[
        int, typer.Option("--timeout-ms", min=100, help="How long each node has to answer.")
    ] = 4_000,
    as_json: AsJson = False,
) -> None:
    """Check a whole cluster: config, nodes, quorum, clocks, versions, brokers, partitions, state hash, disks, open
    files, certificates, and the folders on this machine. Each finding has a severity, a place, and what to do.

    Brokers that the config does not have are asked with --bootstrap-server.

    Exit status 0: well; 1: warnings; 2: problems, or the command line is wrong. It changes nothing, and works while
    nodes are away.
    """
    from kquorum.cli.commands.doctor.examining import examine
    from kquorum.cli.output import print_json

    report = examine(config, data_dir, bootstrap_server, timeout_ms, deep=deep, offline=offline)
    if as_json:
        print_json(report.as_json())
    else:
        _show(report)
    if report.worst:
        raise typer.Exit(int(report.worst))


def _show(report: "Report") -> None:
    from rich.text import Text

    from kquorum.cli.commands.doctor.findings import VERDICTS, Check, Severity
    from kquorum.cli.output import print_table, say

    styles = {Severity.NOTE: "dim", Severity.WARNING: "yellow", Severity.PROBLEM: "bold red"}
    rows = []
    for check in Check:
        if check in report.done:
            found = report.of(check)
            worst = max((each.severity for each in found), default=None)
            verdict = Text("ok", "green") if worst is None else Text(_counts(found), styles[worst])
            rows.append((check.value, report.done[check], verdict, ""))
        elif check in report.skipped:
            rows.append((check.value, "", Text("not checked", "dim"), report.skipped[check]))
    print_table("", ("check", "looked at", "found", "~why not"), rows)
    for each in report.in_order:
        say(f"{each.severity.word}: {each.place}", style=styles[each.severity])
        say(f"    {each.found}")
        say(f"    -> {each.remedy}")
    say(VERDICTS[report.worst], style=styles[report.worst] if report.findings else "green")


def _counts(found: "Sequence[Finding]") -> str:
    """`1 problem, 2 warnings`."""
    from collections import Counter

    from kquorum.wire.wording import counted

    counts = Counter(each.severity for each in found)
    return ", ".join(counted(counts[severity], severity.word) for severity in sorted(counts, reverse=True))


COMMAND = Command(
    run=doctor,
    summary="Check a whole cluster and its folders, and say what to do.",
    panel=Panel.ASK,
    place=0,
    examples={
        "": (
            "kquorum doctor -c quorum.toml",
            "kquorum doctor -c quorum.toml --deep --json",
            "kquorum doctor -c quorum.toml --offline",
        ),
    },
)
