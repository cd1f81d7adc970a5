"""`kquorum audit`: the group, and the commands that build, follow, archive, check and report an audit; on Spark."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kquorum.cli.commands.audit.options import LOCAL, AuditOrLog, Engine, Master, Source, WhichEngine
from kquorum.cli.commands.audit.question_commands import (
    as_of,
    churn,
    diff,
    partitions,
    sql,
    timeline,
    unavailable,
    who,
)
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.wire.near_names import near_names


class TableFormat(StrEnum):
    PARQUET = "parquet"
    DELTA = "delta"


def build(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG...",
            help="Metadata folders, folders of several (the voters of one quorum), archives, single files, "
            "addresses that Spark's Hadoop reads (s3a://bucket/archive), or running nodes (grpc://host:port).",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for the tables, one Parquet folder for each.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the tables of an earlier audit in --out.")
    ] = False,
    table_format: Annotated[
        TableFormat,
        typer.Option("--format", help="The format of the tables; delta needs the package delta-spark."),
    ] = TableFormat.PARQUET,
    fetch_jars: Annotated[
        bool,
        typer.Option(
            "--fetch-jars",
            help="Fetch missing Delta jars from Maven Central, and check each.",
        ),
    ] = False,
    master: Annotated[str, typer.Option(help="The Spark master to run on.")] = "local[*]",
) -> None:
    """Replay a metadata log into tables: records, brokers, topics, partition history, leader changes and more.

    What is damaged goes into the table `damage`, the rest is audited all the same, and the exit status is then 3.
    """
    from kquorum.cli.commands.audit.build import AuditRequest, run_audit
    from kquorum.cli.output import console, print_json

    summary = run_audit(
        AuditRequest(
            inputs=tuple(paths),
            out=out,
            overwrite=overwrite,
            master=master,
            table_format=table_format.value,
            fetch_jars=fetch_jars,
        )
    )
    if as_json:
        print_json(summary)
    else:
        from kquorum.cli.commands.audit.build import print_summary

        print_summary(console(), summary)
    sys.stdout.flush()
    raise typer.Exit(3 if summary["tables"]["damage"]["rows"] else 0)


def data(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOGDIR...",
            help="Log directories of brokers (log.dirs), or folders of several, such as the replicas of one cluster.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", help="Folder for the tables: a finished audit, which gets them too, or a new one."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    master: Master = LOCAL,
) -> None:
    """Read the partitions of any Kafka into tables: batches, producers, transactions, groups' offsets and members.

    Records' keys and values are not stored. Exit status 3 where a segment is damaged.
    """
    from kquorum.cli.commands.audit.data import DataRequest, print_data, run_data
    from kquorum.cli.commands.audit.data import as_json as summary_of
    from kquorum.cli.output import print_json

    found = run_data(DataRequest(inputs=tuple(paths), out=out, master=master))
    if as_json:
        print_json(summary_of(found))
    else:
        print_data(found)
    sys.stdout.flush()
    raise typer.Exit(3 if found.damaged_places else 0)


def stream(
    log: Annotated[
        str,
        typer.Argument(
            metavar="LOG",
            help="A metadata folder, or a folder of several; or grpc://HOST:PORT, the log of a running node.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for the tables; a second run continues there.")],
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="Read what the log holds now, then end.")
    ] = False,
    every: Annotated[
        float, typer.Option("--every", min=0.1, help="Seconds between two reads of the log.")
    ] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the final summary as JSON.")] = False,
    master: Annotated[str, typer.Option(help="The Spark master to run on.")] = "local[*]",
) -> None:
    """Follow a metadata log into the tables of `audit build`, until Ctrl-C; each record once, across restarts too.

    What is damaged goes into the table `damage`; the exit status is then 3.
    """
    from kquorum.cli.commands.audit.stream import StreamRequest, run_stream
    from kquorum.cli.output import console, print_json

    request = StreamRequest(
        log=log, out=out, until_caught_up=until_caught_up, every_seconds=every, master=master
    )
    summary = run_stream(request)
    if as_json:
        print_json(summary)
    elif summary:
        from kquorum.cli.commands.audit.build import print_summary

        print_summary(console(), summary)
    sys.stdout.flush()
    raise typer.Exit(3 if summary and summary["tables"]["damage"]["rows"] else 0)


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
        Path | None, typer.Option("--to", help="The archive: a folder, created if it is missing.")
    ] = None,
    include_active: Annotated[
        bool,
        typer.Option(
            "--include-active",
            help="Also copy the whole batches of the active segment; later runs replace that piece.",
        ),
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Archive nothing; check that the archive is unchanged.")
    ] = False,
    head: Annotated[
        str | None,
        typer.Option("--head", help="With --verify: an earlier head, which the manifest must contain."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Copy closed segments and snapshots into an archive, which keeps them when the node removes its own.

    Each run copies what is new. Exit status 1: source and archive contradict each other, and nothing was archived;
    with --verify: the archive is not what was archived. 3: archived, but a gap or damage was found.
    """
    from kquorum.cli.commands.audit import archive as archiving
    from kquorum.cli.output import print_json

    if verify:
        if to is not None or include_active or len(paths) != 1:
            raise typer.BadParameter("--verify takes one archive, and no --to or --include-active")
        verified = archiving.run_verify(Path(paths[0]), head=head)
        status = archiving.status_of_verified(verified)
        if as_json:
            print_json(archiving.as_json(verified))
        else:
            archiving.print_verified(verified)
    else:
        if to is None or head is not None:
            raise typer.BadParameter("name the archive with --to" if to is None else "--head needs --verify")
        report = archiving.run_archive(paths, to, include_active=include_active)
        status = archiving.status_of_run(report)
        if as_json:
            print_json(archiving.as_json(report))
        else:
            archiving.print_report(report)
    sys.stdout.flush()
    raise typer.Exit(status)


class Group(StrEnum):
    """The groups of `spark_replay.checks.checking`, which is too heavy for `--help`."""

    TABLES = "tables"
    REPLAY = "replay"
    REPLICAS = "replicas"


def check(
    path: AuditOrLog,
    source: Annotated[
        list[str] | None, typer.Option("--source", help="Check only this log; may be repeated.")
    ] = None,
    only: Annotated[
        list[Group] | None,
        typer.Option("--only", help="Run only this group of checks; may be repeated."),
    ] = None,
    replicas_only: Annotated[
        bool,
        typer.Option(
            "--replicas-only", help="Only compare the logs of each cluster; short for --only replicas."
        ),
    ] = False,
    same_cluster: Annotated[
        bool,
        typer.Option("--same-cluster", help="Treat all logs as logs of one cluster."),
    ] = False,
    state_hash: Annotated[
        list[str] | None,
        typer.Option(
            "--state-hash",
            metavar="[LOG=]OFFSET:HASH",
            help="A state hash of a node, as `quorum status` shows it; may be repeated.",
        ),
    ] = None,
    state_hashes: Annotated[
        list[Path] | None,
        typer.Option(
            "--state-hashes",
            metavar="FILE",
            help="A file of state hashes, from `quorum status --json` or `log state-hash --json`.",
        ),
    ] = None,
    keep: Annotated[int, typer.Option(min=0, help="Findings to show for each log and check.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")] = False,
    master: Master = LOCAL,
) -> None:
    """Check an audit, or a log: that nothing is damaged, no rule of Kafka is broken, and the voters' logs agree.

    Each finding names the offsets that prove it. Exit status 1 where a rule is violated; what is lawful but worth
    knowing is a note.
    """
    from kquorum.cli.commands.audit.check import CheckWish, run_check

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


def report(
    path: AuditOrLog,
    out: Annotated[
        Path, typer.Option("--out", help="The file to write; an earlier report is replaced.")
    ] = Path("report.html"),
    since: Annotated[
        str | None,
        typer.Option("--since", help="Start at this time: ISO 8601 (UTC by default) or ms since 1970."),
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="End at this time, inclusive.")] = None,
    source: Source = None,
    with_checks: Annotated[
        bool,
        typer.Option(
            "--checks/--no-checks", help="Whether to run the checks of `audit check` too, which takes Spark."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the page's path and first sentences as JSON.")
    ] = False,
    engine: WhichEngine = None,
    master: Master = LOCAL,
) -> None:
    """Write what happened to a cluster as one HTML page: controllers, brokers, leaders, outages, large changes, checks.

    The page needs nothing else: no network, no other file. Made from a log with damaged places, its exit
    status is 3; from a finished audit it is not, as `audit build` said so.
    """
    from kquorum.cli.commands.audit.report import ReportRequest, write_report
    from kquorum.cli.commands.log.dump_filters import parse_time
    from kquorum.cli.output import print_json, say
    from kquorum.spark_replay.report.highlights import highlights
    from kquorum.spark_replay.report.words import size
    from kquorum.wire.safe_text import safe_text

    request = ReportRequest(
        path=path,
        out=out,
        source=source,
        since_ms=parse_time("--since", since),
        until_ms=parse_time("--until", until),
        with_checks=with_checks,
        engine=_engine_of_report(engine, with_checks=with_checks),
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


def _engine_of_report(engine: Engine | None, *, with_checks: bool) -> Engine | None:
    """Raises CliError for checks without Spark."""
    if with_checks and engine is Engine.DUCKDB:
        raise CliError(
            "the checks replay the log on Spark: leave out --checks or --engine duckdb",
            status=ExitStatus.USAGE,
        )
    return Engine.SPARK if with_checks else engine


class AuditGroup(TyperGroup):
    """Names the command that is meant where a log stands in the place of one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in self.commands and self._is_no_slip(name):
            from kquorum.spark_replay.decode.sources import printable

            ctx.fail(
                f"audit has no command {printable(name)}; to build tables of a log: "
                f"kquorum audit build {printable(name)} --out FOLDER"
            )
        return super().resolve_command(ctx, args)

    def _is_no_slip(self, name: str) -> bool:
        """Whether it cannot be a command with a letter wrong, for which click names the nearest."""
        return "/" in name or Path(name).exists() or not near_names(name, self.commands)


audit_app = typer.Typer(
    cls=AuditGroup,
    help="Replay a metadata log into tables that answer questions (Spark).",
    no_args_is_help=True,
    add_completion=False,
)


@audit_app.callback()
def _audit() -> None:
    """Replay a metadata log into tables that answer questions."""


audit_app.command("build")(build)


audit_app.command("data")(data)


audit_app.command("as-of")(as_of)


audit_app.command("stream")(stream)


audit_app.command("archive")(archive)


audit_app.command("diff")(diff)


audit_app.command("timeline")(timeline)


audit_app.command("who")(who)


audit_app.command("report")(report)


audit_app.command("check")(check)


audit_app.command("unavailable")(unavailable)


audit_app.command("churn")(churn)


audit_app.command("partitions")(partitions)


audit_app.command("sql")(sql)
