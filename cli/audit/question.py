"""What the questions of `audit` have in common: the tables, the log in question, and what is asked about."""

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import functions as F  # noqa: N812

from cli.audit.cells import safe
from cli.audit.opened import OpenedTables, chosen_source, opened
from cli.errors import CliError
from cli.exit_status import ExitStatus
from spark_replay.questions.moments import time_text

_MOST_NAMES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The tables and the log that a question is about."""

    tables: OpenedTables
    source: str


@contextmanager
def asking(path: Path, *, source: str | None, master: str) -> Iterator[Asking]:
    """Raises CliError."""
    with opened(path, master=master) as tables:
        yield Asking(tables=tables, source=chosen_source(tables.manifest, source))


def check_partition(topic: str | None, partition: int | None) -> None:
    if partition is not None and topic is None:
        raise CliError(
            "--partition needs --topic: partitions are numbered within a topic", status=ExitStatus.USAGE
        )


def lives_of_topic(question: Asking, name: str) -> list[str]:
    """When topics of this name were there, in words. Raises CliError for a name that the log never had."""
    topics = question.tables.table("topics").where(F.col("source") == question.source)
    rows = topics.where(F.col("topic_name") == F.lit(name)).orderBy("valid_from_offset").limit(10).collect()
    if rows:
        return [
            _life(row["valid_from_offset"], row["valid_from_ms"], row["valid_to_offset"], row["valid_to_ms"])
            for row in rows
        ]
    known = [row[0] for row in topics.select("topic_name").distinct().limit(_MOST_NAMES).collect() if row[0]]
    raise CliError(
        f"{question.source} never had a topic {safe(name)}{_nearest(name, known)}", status=ExitStatus.USAGE
    )


def check_partition_known(question: Asking, topic: str, partition: int) -> None:
    """Raises CliError for a partition that no topic of this name ever had."""
    of_topic = (F.col("source") == question.source) & (F.col("topic_name") == F.lit(topic))
    history = question.tables.table("partition_history").where(of_topic)
    row = history.agg(
        F.max("partition_id").alias("last"), F.count_if(F.col("partition_id") == partition).alias("rows")
    ).collect()[0]
    if not row["rows"]:
        held = "no partitions at all" if row["last"] is None else f"partitions 0 to {row['last']}"
        raise CliError(
            f"topic {safe(topic)} never had a partition {partition}; it had {held}", status=ExitStatus.USAGE
        )


def check_broker_known(question: Asking, broker: int) -> None:
    """Raises CliError for a broker that never registered."""
    brokers = question.tables.table("brokers").where(F.col("source") == question.source)
    known = sorted(row[0] for row in brokers.select("broker_id").limit(_MOST_NAMES).collect())
    if broker not in known:
        named = ", ".join(map(str, known[:30])) or "none"
        raise CliError(
            f"{question.source}: no broker {broker} ever registered; those that did: {named}",
            status=ExitStatus.USAGE,
        )


def _life(from_offset: int, from_ms: int, to_offset: int | None, to_ms: int | None) -> str:
    begun = f"from offset {from_offset}, {time_text(from_ms)}"
    return (
        begun
        if to_offset is None
        else f"{begun}, to its removal at offset {to_offset}, {time_text(to_ms or 0)}"
    )


def _nearest(name: str, known: list[str]) -> str:
    if not known:
        return "; it has no topics"
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if near:
        return f"; did you mean {' or '.join(map(safe, near))}?"
    shown = ", ".join(map(safe, sorted(known)[:10]))
    return f"; it had {shown}" + (f" and {len(known) - 10:,} more" if len(known) > 10 else "")
