"""The work of `audit churn`: elections, flapping brokers and the partitions that changed most."""

from dataclasses import dataclass

from kquorum.cli.commands.audit.answers import Answer, AnswerTable, duration, ids, number
from kquorum.cli.commands.audit.query import AuditQuery, with_limits
from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.frame import Frame, Row
from kquorum.spark_replay.questions.churn import UNITS, Span, churn
from kquorum.spark_replay.questions.idle_gaps import idle_gap_notes
from kquorum.spark_replay.questions.moments import time_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Churn:
    """`unit` is hour or day."""

    span: Span
    unit: str


def answer_churn(question: AuditQuery, request: Churn) -> Answer:
    frames = churn(question.tables, question.source, request.span, unit=request.unit)
    span = request.span
    bounds = [
        f"{word} {time_text(value)}"
        for word, value in (("from", span.since_ms), ("before", span.until_ms))
        if value is not None
    ]
    answer = Answer(
        head={
            "source": question.source,
            "since_ms": span.since_ms,
            "until_ms": span.until_ms,
            "unit_ms": UNITS[request.unit],
        },
        lines=[" ".join([f"{question.source}: churn", *bounds])],
        notes=idle_gap_notes(
            question.tables, question.source, since_ms=span.since_ms, until_ms=span.until_ms
        ),
        tables=[
            _elections(frames["elections"], request.unit),
            _causes(frames["leader_changes"]),
            _brokers(frames["brokers"]),
            _partitions(frames["partitions"]),
        ],
    )
    return with_limits(question, answer)


def _elections(frame: Frame, unit: str) -> AnswerTable:
    return AnswerTable(
        name="elections",
        title=f"elections of the quorum by {unit}, most first",
        frame=frame.orderBy(F.desc("elections"), F.desc("epochs"), "from_ms"),
        columns=("from", "#elections", "#epochs up", "controllers elected"),
        cells=lambda row: (time_text(row["from_ms"]), row["elections"], row["epochs"], ids(row["leaders"])),
        empty="no elections of the quorum",
    )


def _causes(frame: Frame) -> AnswerTable:
    return AnswerTable(
        name="leader_changes",
        title="leader changes of partitions by cause",
        frame=frame.orderBy(F.desc("changes"), "cause"),
        columns=("cause", "#changes", "#partitions", "#left without\nleader"),
        cells=lambda row: (row["cause"], row["changes"], row["partitions"], row["to_none"] or ""),
        empty="no leader changes of partitions",
    )


def _brokers(frame: Frame) -> AnswerTable:
    def cells(row: Row) -> tuple[object, ...]:
        return (
            number(row["broker_id"]),
            row["fenced"],
            row["unfenced"],
            row["shutdowns"],
            row["registered"],
            duration(row["fenced_ms"]),
            time_text(row["last_ms"]),
        )

    return AnswerTable(
        name="brokers",
        title="brokers, those that flapped most first",
        frame=frame.orderBy(F.desc(F.col("fenced") + F.col("unfenced") + F.col("registered")), "broker_id"),
        columns=(
            "#broker",
            "#fenced",
            "#unfenced",
            "#shutdowns",
            "#registered",
            "#time fenced",
            "last change",
        ),
        spare=("last change",),
        cells=cells,
        empty="nothing happened to brokers",
    )


def _partitions(frame: Frame) -> AnswerTable:
    def cells(row: Row) -> tuple[object, ...]:
        return (
            f"{row['topic_name'] or row['topic_id']}-{row['partition_id']}",
            row["changes"],
            row["leader_changes"],
            row["isr_shrinks"],
            row["isr_expands"],
            row["unclean"] or "",
            time_text(row["last_ms"]),
        )

    return AnswerTable(
        name="partitions",
        title="partitions, those that changed most first",
        frame=frame.orderBy(F.desc("changes"), "topic_name", "partition_id", "topic_id"),
        columns=(
            "which",
            "#changes",
            "#leader",
            "#in sync\nshrunk",
            "#in sync\ngrew",
            "#unclean",
            "last change",
        ),
        spare=("last change",),
        folding="which",
        cells=cells,
        empty="no partition changed its leader or its in-sync replicas",
    )
