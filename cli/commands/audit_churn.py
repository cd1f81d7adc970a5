"""`kquorum audit churn`: elections, flapping brokers and the partitions that changed most."""

from enum import StrEnum
from typing import Annotated

import typer

from cli.audit.options import (
    LOCAL,
    AsJson,
    AuditOrLog,
    CsvTarget,
    Limit,
    Master,
    OneTable,
    ParquetFolder,
    Since,
    Source,
    Until,
    output_of,
)


class Unit(StrEnum):
    HOUR = "hour"
    DAY = "day"


def churn(
    path: AuditOrLog,
    since: Since = None,
    until: Until = None,
    by: Annotated[Unit, typer.Option("--by", help="Elections per hour or per day.")] = Unit.HOUR,
    source: Source = None,
    limit: Limit = 10,
    table: OneTable = None,
    as_json: AsJson = False,
    csv: CsvTarget = None,
    parquet: ParquetFolder = None,
    master: Master = LOCAL,
) -> None:
    """Show how restless the cluster was: elections, leader changes by cause, flapping brokers, hottest partitions."""
    output = output_of(as_json=as_json, csv=csv, parquet=parquet, table=table, limit=limit)
    from cli.audit.answers import give
    from cli.audit.moment import maybe_time_of
    from cli.audit.question import asking
    from cli.audit.question_churn import Churn, answer_churn
    from spark_replay.questions.churn import Span

    span = Span(since_ms=maybe_time_of("--since", since), until_ms=maybe_time_of("--until", until))
    with asking(path, source=source, master=master) as question:
        give(answer_churn(question, Churn(span=span, unit=by.value)), output, question.tables.progress)
