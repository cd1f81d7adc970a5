"""`kquorum audit check`: does what an audit holds keep the rules, and do the logs of one quorum agree?"""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cli.audit.options import LOCAL, AuditOrLog, Master


class Group(StrEnum):
    """The groups of `spark_replay.checks.checking`, which is too heavy for `--help`."""

    TABLES = "tables"
    REPLAY = "replay"
    REPLICAS = "replicas"


def check(
    path: AuditOrLog,
    source: Annotated[
        list[str] | None, typer.Option("--source", help="Only this log; may be given several times.")
    ] = None,
    only: Annotated[
        list[Group] | None,
        typer.Option("--only", help="Only this group of checks; may be given several times."),
    ] = None,
    replicas_only: Annotated[
        bool, typer.Option("--replicas-only", help="Only compare the logs of each cluster: --only replicas.")
    ] = False,
    same_cluster: Annotated[
        bool,
        typer.Option("--same-cluster", help="All logs are of one cluster, whatever is known of them."),
    ] = False,
    state_hash: Annotated[
        list[str] | None,
        typer.Option(
            "--state-hash",
            metavar="[LOG=]OFFSET:HASH",
            help="A hash that a node told of its state, as `quorum status` shows it; may be given several times.",
        ),
    ] = None,
    state_hashes: Annotated[
        list[Path] | None,
        typer.Option(
            "--state-hashes",
            metavar="FILE",
            help="Such hashes as `quorum status --json` or `log state-hash --json` printed them.",
        ),
    ] = None,
    keep: Annotated[int, typer.Option(min=0, help="How many findings of each log and check are shown.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as one JSON object.")] = False,
    master: Master = LOCAL,
) -> None:
    """Check an audit, or a log: that nothing is damaged, no rule of Kafka is broken, and the voters' logs agree.

    Each finding names the offsets that prove it. Exit status 1 where a rule is violated; what is lawful but worth
    knowing is a note.
    """
    from cli.audit.check_run import CheckWish, run_check

    groups = (*(only or ()), *((Group.REPLICAS,) if replicas_only else ()))
    status = run_check(
        CheckWish(
            path=path,
            sources=tuple(source or ()),
            only=tuple(str(each) for each in groups),
            state_hashes=tuple(state_hash or ()),
            hash_files=tuple(state_hashes or ()),
            same_cluster=same_cluster,
            keep=keep,
            as_json=as_json,
            master=master,
        )
    )
    sys.stdout.flush()
    raise typer.Exit(status)
