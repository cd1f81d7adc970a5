"""`kquorum audit timeline` and `audit who`: what happened to a topic or a broker, and who asked for it."""

from typing import TYPE_CHECKING, Annotated

import typer

from cli.audit.options import (
    LOCAL,
    AsJson,
    AuditOrLog,
    CsvTarget,
    Limit,
    Master,
    ParquetFolder,
    Since,
    Source,
    Until,
    output_of,
)

if TYPE_CHECKING:
    from cli.audit.question_timeline import History

Topic = Annotated[str | None, typer.Option("--topic", help="About the topic of this name.")]
Partition = Annotated[
    int | None, typer.Option("--partition", min=0, help="Only this partition of the topic.")
]
Broker = Annotated[int | None, typer.Option("--broker", min=0, help="About the broker of this id.")]


def timeline(
    path: AuditOrLog,
    topic: Topic = None,
    partition: Partition = None,
    broker: Broker = None,
    since: Since = None,
    until: Until = None,
    source: Source = None,
    limit: Limit = 50,
    as_json: AsJson = False,
    csv: CsvTarget = None,
    parquet: ParquetFolder = None,
    master: Master = LOCAL,
) -> None:
    """Show what happened to a topic, a partition or a broker, in order; of many events the last."""
    output = output_of(as_json=as_json, csv=csv, parquet=parquet, table=None, limit=limit)
    from cli.audit.answers import give
    from cli.audit.question import asking
    from cli.audit.question_timeline import answer_timeline

    request = _history(topic, partition, broker, since, until)
    with asking(path, source=source, master=master) as question:
        give(answer_timeline(question, request), output, question.tables.progress)


def who(
    path: AuditOrLog,
    topic: Topic = None,
    partition: Partition = None,
    broker: Broker = None,
    since: Since = None,
    until: Until = None,
    source: Source = None,
    limit: Limit = 50,
    as_json: AsJson = False,
    csv: CsvTarget = None,
    parquet: ParquetFolder = None,
    master: Master = LOCAL,
) -> None:
    """Show who asked for each change of a topic or a broker: principal, client, address and why."""
    output = output_of(as_json=as_json, csv=csv, parquet=parquet, table=None, limit=limit)
    from cli.audit.answers import give
    from cli.audit.question import asking
    from cli.audit.question_timeline import answer_who

    request = _history(topic, partition, broker, since, until)
    with asking(path, source=source, master=master) as question:
        give(answer_who(question, request), output, question.tables.progress)


def _history(
    topic: str | None, partition: int | None, broker: int | None, since: str | None, until: str | None
) -> "History":
    """What both commands are asked about. Raises CliError."""
    from cli.audit.moment import maybe_time_of
    from cli.audit.question import check_partition
    from cli.audit.question_timeline import History, check_about

    check_about(topic, broker)
    check_partition(topic, partition)
    return History(
        topic=topic,
        partition=partition,
        broker=broker,
        since_ms=maybe_time_of("--since", since),
        until_ms=maybe_time_of("--until", until),
    )
