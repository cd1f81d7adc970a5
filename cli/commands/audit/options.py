"""The options that the commands of `audit` share; light, as `--help` imports them."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kquorum.cli.failures import CliError, ExitStatus

DEFAULT_LIMIT = 20
AuditOrLog = Annotated[
    Path,
    typer.Argument(
        metavar="AUDIT|LOG",
        help="The folder of a finished audit, or a log; temporary tables are built for a log.",
    ),
]
Source = Annotated[
    str | None,
    typer.Option("--source", help="The log to ask, if the audit holds several (see `audit build`)."),
]
Master = Annotated[str, typer.Option(help="The Spark master to run on.")]


class Engine(StrEnum):
    DUCKDB = "duckdb"
    SPARK = "spark"


WhichEngine = Annotated[
    Engine | None,
    typer.Option(
        "--engine",
        help="What answers: DuckDB in this process, or Spark, for tables larger than a machine. By default DuckDB; "
        "Spark with --master and for Delta tables.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")]
CsvTarget = Annotated[
    str | None,
    typer.Option(
        "--csv",
        metavar="FILE|DIR|-",
        help="Write everything as CSV, a file for each table; - is standard output.",
    ),
]
ParquetFolder = Annotated[
    Path | None,
    typer.Option("--parquet", metavar="DIR", help="Write everything as Parquet, a folder for each table."),
]
OneTable = Annotated[str | None, typer.Option("--table", help="Show only this table of the answer.")]
Since = Annotated[
    str | None,
    typer.Option("--since", help="Start at this time: ISO 8601 (UTC by default) or ms."),
]
Until = Annotated[str | None, typer.Option("--until", help="End before this time.")]
Limit = Annotated[int, typer.Option(min=0, help="Rows to show of each table; 0 shows all.")]
LOCAL = "local[*]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """How the answer is wanted. `csv` is a file, a folder or `-`."""

    as_json: bool = False
    csv: str | None = None
    parquet: Path | None = None
    table: str | None = None
    limit: int = DEFAULT_LIMIT


def output_of(
    *, as_json: bool, csv: str | None, parquet: Path | None, table: str | None, limit: int
) -> Output:
    """Raises CliError where JSON and CSV would both go to standard output."""
    if as_json and csv == "-":
        raise CliError("--json and --csv - both write to the output: choose one", status=ExitStatus.USAGE)
    return Output(as_json=as_json, csv=csv, parquet=parquet, table=table, limit=limit)
