"""The questions of `kquorum audit` as typed: options, and the answer that each asks for. `--help` imports this file."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.commands.audit.options import (
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
    WhichEngine,
    output_of,
)
from kquorum.cli.failures import CliError, ExitStatus

if TYPE_CHECKING:
    from kquorum.cli.commands.audit.questions.timeline import History


def as_of(
    path: AuditOrLog,
    offset: Annotated[
        int | None,
        typer.Option(
            "--offset", help="The state after the record at this offset; the end of the log by default."
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option("--time", help="The state at this time: ISO 8601 (UTC by default) or ms since 1970."),
    ] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="Only this topic.")] = None,
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
    engine: WhichEngine = None,
    master: Master = LOCAL,
) -> None:
    """Show the cluster at a moment: leader and voters, features, brokers, topics, partitions, configs and ACLs."""
    output = output_of(as_json=as_json, csv=csv, parquet=parquet, table=table, limit=limit)
    from kquorum.cli.commands.audit.answers import give
    from kquorum.cli.commands.audit.query import asked_by_options, asking, check_partition
    from kquorum.cli.commands.audit.questions.as_of import AsOf, answer_as_of
    from kquorum.spark_replay.questions.entities import Narrowing

    check_partition(topic, partition)
    request = AsOf(
        asked=asked_by_options(offset, time),
        narrowing=Narrowing(topic=topic, partition=partition, broker=broker),
    )
    with asking(path, source=source, engine=engine, master=master) as question:
        give(answer_as_of(question, request), output, question.tables.progress)


_MOMENT = "an offset, a time (ISO 8601, or ms since 1970), start or end"


def diff(
    path: AuditOrLog,
    first: Annotated[str, typer.Argument(metavar="A", help=f"From behind this moment: {_MOMENT}.")],
    last: Annotated[str, typer.Argument(metavar="B", help=f"To this moment, included: {_MOMENT}.")] = "end",
    topic: Annotated[str | None, typer.Option("--topic", help="Only this topic.")] = None,
    broker: Annotated[
        int | None, typer.Option("--broker", min=0, help="Only this broker and the partitions it has.")
    ] = None,
    source: Source = None,
    limit: Limit = 20,
    table: OneTable = None,
    as_json: AsJson = False,
    csv: CsvTarget = None,
    parquet: ParquetFolder = None,
    engine: WhichEngine = None,
    master: Master = LOCAL,
) -> None:
    """Show what was added, removed and changed between two moments, and the author where an audit note names one."""
    output = output_of(as_json=as_json, csv=csv, parquet=parquet, table=table, limit=limit)
    from kquorum.cli.commands.audit.answers import give
    from kquorum.cli.commands.audit.query import asked_by_word, asking
    from kquorum.cli.commands.audit.questions.diff import Diff, answer_diff
    from kquorum.spark_replay.questions.entities import Narrowing

    request = Diff(
        first=asked_by_word("A", first),
        last=asked_by_word("B", last),
        narrowing=Narrowing(topic=topic, broker=broker),
    )
    with asking(path, source=source, engine=engine, master=master) as question:
        give(answer_diff(question, request), output, question.tables.progress)


Topic = Annotated[str | None, typer.Option("--topic", help="The name of the topic.")]
Partition = Annotated[
    int | None, typer.Option("--partition", min=0, help="Only this partition of the topic.")
]
Broker = Annotated[int | None, typer.Option("--broker", min=0, help="The id of the broker.")]


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
    engine: WhichEngine = None,
    master: Master = LOCAL,
) -> None:
    """Show what happened to a topic, a partition or a broker, in order; of many events the last."""
    output = output_of(as_json=as_json, csv=csv, parquet=parquet, table=None, limit=limit)
    from kquorum.cli.commands.audit.answers import give
    from kquorum.cli.commands.audit.query import asking
    from kquorum.cli.commands.audit.questions.timeline import answer_timeline

    request = _history(topic, partition, broker, since, until)
    with asking(path, source=source, engine=engine, master=master) as question:
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
    engine: WhichEngine = None,
    master: Master = LOCAL,
) -> None:
    """Show who asked for each change of a topic or a broker: principal, client, address and why."""
    output = output_of(as_json=as_json, csv=csv, parquet=parquet, table=None, limit=limit)
    from kquorum.cli.commands.audit.answers import give
    from kquorum.cli.commands.audit.query import asking
    from kquorum.cli.commands.audit.questions.timeline import answer_who

    request = _history(topic, partition, broker, since, until)
    with asking(path, source=source, engine=engine, master=master) as question:
        give(answer_who(question, request), output, question.tables.progress)


def _history(
    topic: str | None, partition: int | None, broker: int | None, since: str | None, until: str | None
) -> "History":
    """What both commands are asked about. Raises CliError."""
    from kquorum.cli.commands.audit.query import check_partition, maybe_time_of
    from kquorum.cli.commands.audit.questions.timeline import History, check_about

    check_about(topic, broker)
    check_partition(topic, partition)
    return History(
        topic=topic,
        partition=partition,
        broker=broker,
        since_ms=maybe_time_of("--since", since),
        until_ms=maybe_time_of("--until", until),
    )


class Kind(StrEnum):
    NO_LEADER = "no-leader"
    UNDER_MIN_ISR = "under-min-isr"


def unavailable(
    path: AuditOrLog,
    topic: Annotated[str | None, typer.Option("--topic", help="Only partitions of this topic.")] = None,
    kind: Annotated[Kind | None, typer.Option("--kind", help="Only intervals of this kind.")] = None,
    min_ms: Annotated[
        int | None,
        typer.Option(
            "--min-ms",
            min=0,
            help="Only intervals of at least this length (default 2000 with --quorum, else 0).",
        ),
    ] = None,
    quorum: Annotated[
        bool, typer.Option("--quorum", help="Show when the controllers may have had no leader.")
    ] = False,
    each: Annotated[
        bool,
        typer.Option(
            "--each",
            help="Show a row for each partition; by default, partitions with equal intervals share one.",
        ),
    ] = False,
    source: Source = None,
    limit: Limit = 20,
    as_json: AsJson = False,
    csv: CsvTarget = None,
    parquet: ParquetFolder = None,
    engine: WhichEngine = None,
    master: Master = LOCAL,
) -> None:
    """Show when partitions had no leader or fewer in-sync replicas than min.insync.replicas, longest first."""
    output = output_of(as_json=as_json, csv=csv, parquet=parquet, table=None, limit=limit)
    if quorum and (topic is not None or kind is not None):
        raise CliError(
            "--quorum is about the controllers: leave out --topic and --kind", status=ExitStatus.USAGE
        )
    from kquorum.cli.commands.audit.answers import give
    from kquorum.cli.commands.audit.query import asking
    from kquorum.cli.commands.audit.questions.unavailable import (
        QUORUM_MIN_MS,
        Unavailable,
        answer_quorum,
        answer_unavailable,
    )

    with asking(path, source=source, engine=engine, master=master) as question:
        if quorum:
            answer = answer_quorum(question, QUORUM_MIN_MS if min_ms is None else min_ms)
        else:
            name = None if kind is None else kind.value.replace("-", "_")
            request = Unavailable(topic=topic, kind=name, min_ms=min_ms or 0, is_each=each)
            answer = answer_unavailable(question, request)
        give(answer, output, question.tables.progress)


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
    engine: WhichEngine = None,
    master: Master = LOCAL,
) -> None:
    """Show how restless the cluster was: elections, leader changes by cause, flapping brokers, hottest partitions."""
    output = output_of(as_json=as_json, csv=csv, parquet=parquet, table=table, limit=limit)
    from kquorum.cli.commands.audit.answers import give
    from kquorum.cli.commands.audit.query import asking, maybe_time_of
    from kquorum.cli.commands.audit.questions.churn import Churn, answer_churn
    from kquorum.spark_replay.questions.churn import Span

    span = Span(since_ms=maybe_time_of("--since", since), until_ms=maybe_time_of("--until", until))
    with asking(path, source=source, engine=engine, master=master) as question:
        give(answer_churn(question, Churn(span=span, unit=by.value)), output, question.tables.progress)


class PartitionQuestion(StrEnum):
    HANGING = "hanging"
    REPLICAS = "replicas"
    LAG = "lag"
    LEADERS = "leaders"
    SINGLE_REPLICA = "single-replica"


def partitions(
    path: Annotated[
        Path, typer.Argument(metavar="AUDIT", help="The folder of an audit with partitions (`audit data`).")
    ],
    question: Annotated[
        PartitionQuestion,
        typer.Argument(
            help="hanging: transactions without an end; replicas: where replicas differ; lag: of a group at each "
            "commit; leaders: who led when batches were written; single-replica: batches that a leader wrote while it "
            "alone was in sync."
        ),
    ],
    group: Annotated[str | None, typer.Option("--group", help="The group, for lag.")] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="Only this topic.")] = None,
    partition: Annotated[int | None, typer.Option("--partition", min=0, help="Only this partition.")] = None,
    source: Source = None,
    limit: Limit = 50,
    as_json: AsJson = False,
    csv: CsvTarget = None,
    parquet: ParquetFolder = None,
    engine: WhichEngine = None,
    master: Master = LOCAL,
) -> None:
    """Ask about the logs of partitions: hanging transactions, replicas that differ, lag, who led, single replicas."""
    output = output_of(as_json=as_json, csv=csv, parquet=parquet, table=None, limit=limit)
    from kquorum.cli.commands.audit.answers import give
    from kquorum.cli.commands.audit.query import check_is_audit, opened_for_questions
    from kquorum.cli.commands.audit.questions.partitions import Partitions, answer_partitions

    check_is_audit(path)
    request = Partitions(
        question=question.value, topic=topic, partition=partition, group=group, source=source
    )
    with opened_for_questions(path, source=None, engine=engine, master=master) as tables:
        give(answer_partitions(tables, request), output, tables.progress)


def sql(
    path: AuditOrLog,
    query: Annotated[
        str | None,
        typer.Argument(
            metavar="QUERY",
            help="A query in DuckDB's SQL (with --engine spark in Spark's); the tables are in docs/audit-tables.md. "
            "Without it queries are read from a prompt, or from the standard input.",
            show_default=False,
        ),
    ] = None,
    source: Annotated[str | None, typer.Option("--source", help="Only the rows of this log.")] = None,
    limit: Limit = 100,
    as_json: AsJson = False,
    csv: CsvTarget = None,
    parquet: ParquetFolder = None,
    engine: WhichEngine = None,
    master: Master = LOCAL,
) -> None:
    """Ask the tables by SQL: every table is a view. Nothing but queries is carried out."""
    output = output_of(as_json=as_json, csv=csv, parquet=parquet, table=None, limit=limit)
    from kquorum.cli.commands.audit.query import opened_for_questions
    from kquorum.cli.commands.audit.questions.sql import SqlSession

    with opened_for_questions(path, source=source, engine=engine, master=master) as tables:
        session = SqlSession(tables, source)
        if query is not None:
            session.give(query, output)
        else:
            from kquorum.cli.commands.audit.questions.sql_prompt import ask_queries

            ask_queries(session, output)
