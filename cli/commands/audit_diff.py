"""`kquorum audit diff`: what changed between two moments of a log."""

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
    Source,
    output_of,
)

_MOMENT = "an offset, a time (ISO 8601, or ms since 1970), start or end"


def diff(
    path: AuditOrLog,
    first: Annotated[str, typer.Argument(metavar="A", help=f"From behind this moment: {_MOMENT}.")],
    last: Annotated[str, typer.Argument(metavar="B", help=f"To this moment, included: {_MOMENT}.")] = "end",
    topic: Annotated[str | None, typer.Option("--topic", help="Only the topic of this name.")] = None,
    broker: Annotated[
        int | None, typer.Option("--broker", min=0, help="Only this broker and the partitions it has.")
    ] = None,
    source: Source = None,
    limit: Limit = 20,
    table: OneTable = None,
    as_json: AsJson = False,
    csv: CsvTarget = None,
    parquet: ParquetFolder = None,
    master: Master = LOCAL,
) -> None:
    """Show what was added, removed and changed between two moments, and by whom where an audit note tells."""
    output = output_of(as_json=as_json, csv=csv, parquet=parquet, table=table, limit=limit)
    from cli.audit.answers import give
    from cli.audit.moment import asked_by_word
    from cli.audit.question import asking
    from cli.audit.question_diff import Diff, answer_diff
    from spark_replay.questions.entities import Narrowing

    request = Diff(
        first=asked_by_word("A", first),
        last=asked_by_word("B", last),
        narrowing=Narrowing(topic=topic, broker=broker),
    )
    with asking(path, source=source, master=master) as question:
        give(answer_diff(question, request), output, question.tables.progress)
