"""`kquorum audit build`: replay a metadata log into tables, on Spark."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


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
    as_json: Annotated[bool, typer.Option("--json", help="The summary as JSON.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the tables of an earlier audit in --out.")
    ] = False,
    table_format: Annotated[
        TableFormat, typer.Option("--format", help="Of the tables; delta needs the package delta-spark.")
    ] = TableFormat.PARQUET,
    fetch_jars: Annotated[
        bool,
        typer.Option(
            "--fetch-jars",
            help="Fetch Delta's jars from Maven Central where they are missing; each is checked.",
        ),
    ] = False,
    master: Annotated[str, typer.Option(help="The Spark master to run on.")] = "local[*]",
) -> None:
    """Replay a metadata log into tables: records, brokers, topics, partition history, leader changes and more.

    What is damaged goes into the table `damage`, the rest is audited all the same, and the exit status is then 3.
    """
    from cli.audit.build_run import AuditRequest, run_audit
    from cli.output import console, print_json

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
        from cli.audit.summary_tables import print_summary

        print_summary(console(), summary)
    sys.stdout.flush()
    raise typer.Exit(3 if summary["tables"]["damage"]["rows"] else 0)
