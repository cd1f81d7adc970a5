"""The work of `audit timeline` and `audit who`: what happened to a topic or a broker, and who asked for it."""

from dataclasses import dataclass
from typing import Any

from kquorum.cli.commands.audit.answers import (
    Answer,
    AnswerTable,
    author_cells,
    author_columns,
    author_text,
    cause_text,
    number,
    reason_text,
)
from kquorum.cli.commands.audit.query import (
    AuditQuery,
    check_broker_known,
    check_partition_known,
    lives_of_topic,
    with_limits,
)
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.frame import Frame, Row
from kquorum.spark_replay.questions.broker_timeline import broker_timeline
from kquorum.spark_replay.questions.causes import has_notes
from kquorum.spark_replay.questions.idle_gaps import idle_gap_notes
from kquorum.spark_replay.questions.moments import time_text
from kquorum.spark_replay.questions.timeline import requests, topic_timeline

NO_NOTES = (
    "this log holds no audit notes, as logs that Apache Kafka wrote never do: who asked for a change is not recorded; "
    "shown are the controller that wrote it, and the cause as far as the records show it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """About a topic, a partition of it, or a broker; between two times, the first inclusive."""

    topic: str | None
    partition: int | None
    broker: int | None
    since_ms: int | None
    until_ms: int | None


def check_about(topic: str | None, broker: int | None) -> None:
    if (topic is None) == (broker is None):
        raise CliError("say about what: --topic NAME or --broker ID", status=ExitStatus.USAGE)


def answer_timeline(question: AuditQuery, request: History) -> Answer:
    events, about = _events(question, request)
    with_notes = has_notes(question.tables)
    title = f"{question.source}: {about}"

    def cells(row: Row) -> tuple[object, ...]:
        return (
            number(row["offset"]),
            time_text(row["timestamp_ms"]),
            row["about"] if row["partition_id"] is None else f"partition {row['partition_id']}",
            row["what"],
            cause_text(row["cause"], row["cause_broker"]),
            *author_cells(row, has_notes=with_notes),
        )

    table = AnswerTable(
        name="events",
        title=title,
        frame=events.orderBy("offset", "about", "partition_id", "what"),
        newest_first=events.orderBy(*(F.desc(name) for name in ("offset", "about", "partition_id", "what"))),
        columns=("#offset", "time", "about", "~what", "~cause", *author_columns(has_notes=with_notes)),
        spare=("written by", "~why", "#offset"),
        stacking=True,
        cells=cells,
        empty=f"{title}: nothing in this time",
    )
    return with_limits(
        question, Answer(head=_head(question, request), notes=_idle_gaps(question, request), tables=[table])
    )


def answer_who(question: AuditQuery, request: History) -> Answer:
    events, about = _events(question, request)
    asked = requests(events)
    with_notes = has_notes(question.tables)
    title = f"{question.source}: who changed {about}"

    def cells(row: Row) -> tuple[object, ...]:
        return (
            time_text(row["timestamp_ms"]),
            number(row["offset"]),
            _who(row),
            *([reason_text(row)] if with_notes else []),
            _deeds(row),
        )

    table = AnswerTable(
        name="requests",
        title=title,
        frame=asked.orderBy("offset", "last_offset", "cause"),
        newest_first=asked.orderBy(F.desc("offset"), F.desc("last_offset"), F.desc("cause")),
        columns=("time", "#offset", "~who", *(["~why"] if with_notes else []), "~what"),
        spare=("#offset",),
        stacking=True,
        cells=cells,
        empty=f"{title}: no request in this time",
    )
    answer = Answer(
        head={**_head(question, request), "has_notes": with_notes},
        notes=() if with_notes else (NO_NOTES,),
        tables=[table],
    )
    return with_limits(question, answer)


def _events(question: AuditQuery, request: History) -> tuple[Frame, str]:
    """The events asked for, and what they are about in words."""
    tables, source = question.tables, question.source
    if request.topic is not None:
        lives_of_topic(question, request.topic)
        about = f"topic {request.topic}"
        if request.partition is not None:
            check_partition_known(question, request.topic, request.partition)
            about += f" partition {request.partition}"
        events = topic_timeline(tables, source, request.topic, request.partition)
    else:
        assert request.broker is not None
        check_broker_known(question, request.broker)
        events, about = broker_timeline(tables, source, request.broker), f"broker {request.broker}"
    time_ms = F.col("timestamp_ms")
    if request.since_ms is not None:
        events = events.where(time_ms >= request.since_ms)
    if request.until_ms is not None:
        events = events.where(time_ms < request.until_ms)
    return events, about


def _idle_gaps(question: AuditQuery, request: History) -> tuple[str, ...]:
    return idle_gap_notes(
        question.tables, question.source, since_ms=request.since_ms, until_ms=request.until_ms
    )


def _head(question: AuditQuery, request: History) -> dict[str, Any]:
    asked = {
        "topic": request.topic,
        "partition": request.partition,
        "broker": request.broker,
        "since_ms": request.since_ms,
        "until_ms": request.until_ms,
    }
    return {"source": question.source, **{name: value for name, value in asked.items() if value is not None}}


def _who(row: Row) -> str:
    """The one who asked, or the controller with what made it act."""
    author = author_text(row)
    if row["principal"] is not None:
        return author
    cause = cause_text(row["cause"], row["cause_broker"])
    if not author:
        return cause or "before the log begins"
    return f"{author} ({cause})" if cause else author


def _deeds(row: Row) -> str:
    shown = [_deed(each) for each in row["deeds"]]
    more = row["events"] - len(shown)
    return "; ".join(shown) + (f"; and {more:,} more" if more > 0 else "")


def _deed(deed: Row) -> str:
    if deed["partition_id"] is not None:
        return f"partition {deed['partition_id']}: {deed['what']}"
    return str(deed["what"])
