"""`kquorum audit sql`: a query on the tables of an audit."""

from typing import Annotated

import typer

from cli.audit.options import LOCAL, AsJson, AuditOrLog, CsvTarget, Limit, Master, ParquetFolder, output_of


def sql(
    path: AuditOrLog,
    query: Annotated[
        str,
        typer.Argument(metavar="QUERY", help="A query in Spark SQL; the tables are in docs/audit-tables.md."),
    ],
    source: Annotated[str | None, typer.Option("--source", help="Only the rows of this log.")] = None,
    limit: Limit = 100,
    as_json: AsJson = False,
    csv: CsvTarget = None,
    parquet: ParquetFolder = None,
    master: Master = LOCAL,
) -> None:
    """Ask the tables by SQL: every table is a view. Nothing but queries is carried out."""
    output = output_of(as_json=as_json, csv=csv, parquet=parquet, table=None, limit=limit)
    from pyspark.errors import PySparkException

    from cli.audit.answers import give
    from cli.audit.opened import chosen_source, opened
    from cli.audit.question_sql import answer_sql, failed_sql

    with opened(path, master=master) as tables:
        chosen = None if source is None else chosen_source(tables.manifest, source)
        try:
            give(answer_sql(tables, chosen, query), output, tables.progress)
        except PySparkException as error:
            raise failed_sql(error) from None
