"""`kquorum audit unavailable`: when partitions could not serve, and when the quorum may have had no leader."""

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
    ParquetFolder,
    Source,
    output_of,
)
from cli.errors import CliError
from cli.exit_status import ExitStatus


class Kind(StrEnum):
    NO_LEADER = "no-leader"
    UNDER_MIN_ISR = "under-min-isr"


def unavailable(
    path: AuditOrLog,
    topic: Annotated[
        str | None, typer.Option("--topic", help="Only partitions of the topic of this name.")
    ] = None,
    kind: Annotated[Kind | None, typer.Option("--kind", help="Only intervals of this kind.")] = None,
    min_ms: Annotated[
        int | None,
        typer.Option("--min-ms", min=0, help="Only what lasted so long (with --quorum 2000, else 0)."),
    ] = None,
    quorum: Annotated[
        bool, typer.Option("--quorum", help="When the quorum of the controllers may have had no leader.")
    ] = False,
    each: Annotated[
        bool, typer.Option("--each", help="A row for each partition, also of many that fared alike.")
    ] = False,
    source: Source = None,
    limit: Limit = 20,
    as_json: AsJson = False,
    csv: CsvTarget = None,
    parquet: ParquetFolder = None,
    master: Master = LOCAL,
) -> None:
    """Show when partitions had no leader or fewer in-sync replicas than min.insync.replicas, longest first."""
    output = output_of(as_json=as_json, csv=csv, parquet=parquet, table=None, limit=limit)
    if quorum and (topic is not None or kind is not None):
        raise CliError(
            "--quorum is about the controllers: leave out --topic and --kind", status=ExitStatus.USAGE
        )
    from cli.audit.answers import give
    from cli.audit.question import asking
    from cli.audit.question_unavailable import QUORUM_MIN_MS, Unavailable, answer_quorum, answer_unavailable

    with asking(path, source=source, master=master) as question:
        if quorum:
            answer = answer_quorum(question, QUORUM_MIN_MS if min_ms is None else min_ms)
        else:
            name = None if kind is None else kind.value.replace("-", "_")
            request = Unavailable(topic=topic, kind=name, min_ms=min_ms or 0, is_each=each)
            answer = answer_unavailable(question, request)
        give(answer, output, question.tables.progress)
