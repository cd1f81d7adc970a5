"""`kquorum audit as-of`: the whole cluster as it stood at one moment."""

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


def as_of(
    path: AuditOrLog,
    offset: Annotated[
        int | None,
        typer.Option("--offset", help="Right behind the record at this offset; without it, the end."),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            "--time", help="At this time: ISO 8601 (UTC unless it says otherwise) or ms since 1970."
        ),
    ] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="Only the topic of this name.")] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, help="Only this partition of the topic.")
    ] = None,
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
    """Show the cluster at a moment: leader and voters, features, brokers, topics, partitions, configs and ACLs."""
    output = output_of(as_json=as_json, csv=csv, parquet=parquet, table=table, limit=limit)
    from cli.audit.answers import give
    from cli.audit.moment import asked_by_options
    from cli.audit.question import asking, check_partition
    from cli.audit.question_as_of import AsOf, answer_as_of
    from spark_replay.questions.entities import Narrowing

    check_partition(topic, partition)
    request = AsOf(
        asked=asked_by_options(offset, time),
        narrowing=Narrowing(topic=topic, partition=partition, broker=broker),
    )
    with asking(path, source=source, master=master) as question:
        give(answer_as_of(question, request), output, question.tables.progress)
