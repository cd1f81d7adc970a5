"""What the questions of `audit` have in common: the tables, the log in question, and what is asked about."""

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from cli.audit.answers import Answer
from cli.audit.opened import OpenedTables, check_source, chosen_source, opened
from cli.errors import CliError
from cli.exit_status import ExitStatus
from spark_replay.questions.entities import is_topic
from spark_replay.questions.holes import holes, limits, unknown_before
from spark_replay.questions.moments import time_text
from wire.safe_text import safe_text

_MOST_NAMES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """The tables and the log that a question is about."""

    tables: OpenedTables
    source: str


@contextmanager
def asking(path: Path, *, source: str | None, master: str) -> Iterator[AuditQuery]:
    """Raises CliError."""
    check_source(path, source)
    with opened(path, master=master) as tables:
        yield AuditQuery(tables=tables, source=chosen_source(tables.manifest, source))


def with_limits(question: AuditQuery, answer: Answer) -> Answer:
    """The answer with what it lacks because the log does: said first, and once."""
    notes = (*limits(question.tables, question.source), *answer.notes)
    return replace(answer, notes=tuple(dict.fromkeys(notes)))


def check_partition(topic: str | None, partition: int | None) -> None:
    if partition is not None and topic is None:
        raise CliError(
            "--partition needs --topic: partitions are numbered within a topic", status=ExitStatus.USAGE
        )


def lives_of_topic(question: AuditQuery, name: str) -> list[str]:
    """When topics of this name were there, in words. Raises CliError for a name that the log never had."""
    topics = question.tables.table("topics").where(F.col("source") == question.source)
    rows = topics.where(is_topic(name)).orderBy("valid_from_offset").limit(10).collect()
    if rows:
        return [_life(row) for row in rows]
    unknown = _unknown(question)
    if unknown and not _partitions_of(question, name).isEmpty():
        return [f"not known: {unknown}"]
    known = [row[0] for row in topics.select("topic_name").distinct().limit(_MOST_NAMES).collect() if row[0]]
    raise CliError(no_such_topic(question.source, name, known, unknown), status=ExitStatus.USAGE)


def no_such_topic(source: str, name: str, known: list[str], unknown: str) -> str:
    """`unknown`: why it may have been there all the same."""
    if not unknown:
        return f"{source} never had a topic {safe_text(name)}{_nearest(name, known)}"
    told = _nearest(name, known) if known else ""
    return f"{source}: whether there was a topic {safe_text(name)} is not known: {unknown}{told}"


def _unknown(question: AuditQuery) -> str:
    tables, source = question.tables, question.source
    return unknown_before(tables.source(source), holes(tables, source)[0])


def _partitions_of(question: AuditQuery, topic: str) -> DataFrame:
    history = question.tables.table("partition_history")
    return history.where((F.col("source") == question.source) & is_topic(topic))


def check_partition_known(question: AuditQuery, topic: str, partition: int) -> None:
    """Raises CliError for a partition that no topic of this name ever had."""
    history = _partitions_of(question, topic)
    row = history.agg(
        F.max("partition_id").alias("last"), F.count_if(F.col("partition_id") == partition).alias("rows")
    ).collect()[0]
    if not row["rows"]:
        held = "no partitions at all" if row["last"] is None else f"partitions 0 to {row['last']}"
        unknown = _unknown(question)
        never = (
            f"whether topic {safe_text(topic)} had a partition {partition} is not known: {unknown}"
            if unknown
            else f"topic {safe_text(topic)} never had a partition {partition}"
        )
        raise CliError(f"{never}; it had {held}", status=ExitStatus.USAGE)


def check_broker_known(question: AuditQuery, broker: int) -> None:
    """Raises CliError for a broker that never registered."""
    brokers = question.tables.table("brokers").where(F.col("source") == question.source)
    known = sorted(row[0] for row in brokers.select("broker_id").limit(_MOST_NAMES).collect())
    if broker not in known:
        named = ", ".join(map(str, known[:30])) or "none"
        unknown = _unknown(question)
        never = (
            f"whether broker {broker} registered is not known: {unknown}"
            if unknown
            else f"no broker {broker} ever registered"
        )
        raise CliError(f"{question.source}: {never}; those that did: {named}", status=ExitStatus.USAGE)


def _life(row: Row) -> str:
    begun = f"offset {row['valid_from_offset']}, {time_text(row['valid_from_ms'])}"
    begun = f"since before {begun}" if row["from_snapshot"] else f"from {begun}"
    if row["valid_to_offset"] is None:
        return begun
    return f"{begun}, to its removal at offset {row['valid_to_offset']}, {time_text(row['valid_to_ms'] or 0)}"


def _nearest(name: str, known: list[str]) -> str:
    if not known:
        return "; it has no topics"
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if near:
        return f"; did you mean {' or '.join(map(safe_text, near))}?"
    shown = ", ".join(map(safe_text, sorted(known)[:10]))
    return f"; it had {shown}" + (f" and {len(known) - 10:,} more" if len(known) > 10 else "")
