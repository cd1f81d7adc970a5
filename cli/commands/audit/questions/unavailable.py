"""The work of `audit unavailable`: when partitions could not serve, and when the quorum may have had no leader."""

from collections.abc import Mapping
from dataclasses import dataclass

from kquorum.cli.commands.audit.answers import Answer, AnswerTable, cause_text, duration, ids, number
from kquorum.cli.commands.audit.query import AuditQuery, lives_of_topic, with_limits
from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.frame import Row
from kquorum.spark_replay.questions.idle_gaps import (
    NEW_EPOCH,
    SAME_EPOCH,
    has_idle_records,
    idle_gap_notes,
    idle_gaps,
)
from kquorum.spark_replay.questions.moments import Moment, last_moment, time_text
from kquorum.spark_replay.questions.unavailable import (
    NO_LEADER,
    OPEN,
    REMOVED,
    alike,
    unavailable,
    with_sizes,
)
from kquorum.wire.wording import counted

QUORUM_MIN_MS = 2_000
_KINDS = {NO_LEADER: "no leader", "under_min_isr": "under min ISR"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """`kind` of `unavailable.KINDS`; `min_ms` is how long it must have lasted. With `is_each` a terminal has every
    interval, too, and not those that many partitions had alike as one."""

    topic: str | None
    kind: str | None
    min_ms: int
    is_each: bool = False


def answer_unavailable(question: AuditQuery, request: Unavailable) -> Answer:
    """The intervals, longest first."""
    if request.topic is not None:
        lives_of_topic(question, request.topic)
    end = last_moment(question.tables, question.source)
    found = unavailable(
        question.tables, question.source, end.timestamp_ms, topic=request.topic, kind=request.kind
    )
    frame = question.tables.keep(found.where(F.col("duration_ms") >= request.min_ms))
    order = (F.desc("duration_ms"), "topic_name", "partition_id", "from_offset", "kind", "topic_id")
    sums = {
        row["kind"]: row
        for row in frame.groupBy("kind")
        .agg(
            F.count("*").alias("intervals"),
            F.count_distinct("topic_id", "partition_id").alias("partitions"),
            F.max("duration_ms").alias("longest_ms"),
            F.sum("duration_ms").alias("total_ms"),
            F.count_if(F.col("ended") == OPEN).alias("open"),
        )
        .collect()
    }
    lines = [_sum_line(kind, sums[kind]) for kind in _KINDS if kind in sums]
    when = "" if end.timestamp_ms is None else f", {time_text(end.timestamp_ms)}"
    table = AnswerTable(
        name="intervals",
        title="longest first",
        frame=frame.orderBy(*order),
        columns=(
            *("#lasted", "which", "had", "from", "to", "~cause", "~ended by"),
            "#offset",
        ),
        spare=("#offset", "~ended by", "~cause"),
        folding="which",
        cells=_cells,
        total=sum(row["intervals"] for row in sums.values()) if request.is_each or not sums else None,
        shown=with_sizes(frame).orderBy(*order) if request.is_each else alike(frame).orderBy(*order),
    )
    return Answer(
        head={
            "source": question.source,
            "log_end_ms": end.timestamp_ms,
            "summary": {
                kind: {k: v for k, v in row.asDict().items() if k != "kind"} for kind, row in sums.items()
            },
        },
        lines=[
            f"{question.source}, up to {_end(question, end)}{when}",
            *(lines or [_nothing_found(question, end, request)]),
        ],
        notes=(*end.notes, *idle_gap_notes(question.tables, question.source)),
        tables=[table],
    )


def _end(question: AuditQuery, end: Moment) -> str:
    if not has_history(question):
        return f"offset {end.offset}"
    if end.is_cut:
        return f"offset {end.offset}, beyond which it cannot be read"
    return f"its end at offset {end.offset}"


def has_history(question: AuditQuery) -> bool:
    return question.tables.source(question.source).end_offset is not None


def _nothing_found(question: AuditQuery, end: Moment, request: Unavailable) -> str:
    """Only a whole log shows that nothing was amiss."""
    if not has_history(question):
        return "there is no history here: what partitions lacked, and for how long, is not known"
    found = "every partition had a leader and enough in-sync replicas" + _limits(request)
    return f"as far as the log can be read, {found}" if end.notes else found


def _limits(request: Unavailable) -> str:
    asked = [f"for all but less than {duration(request.min_ms)}"] if request.min_ms else []
    asked += [f"as to {_KINDS[request.kind]}"] if request.kind else []
    return f" ({', '.join(asked)})" if asked else ""


def _sum_line(kind: str, row: Row) -> str:
    still = f", {row['open']:,} of them open at the end" if row["open"] else ""
    return (
        f"{_KINDS[kind]}: {counted(row['intervals'], 'interval')} of {counted(row['partitions'], 'partition')}{still}; "
        f"the longest "
        f"{duration(row['longest_ms'])}"
    )


def _which(row: Row) -> str:
    if row["partitions"] > 1:
        return f"{counted(row['partitions'], 'partition')} of " + (
            str(row["topic_name"] or row["topic_id"])
            if row["topics"] == 1
            else counted(row["topics"], "topic")
        )
    return f"{row['topic_name'] or row['topic_id']}-{row['partition_id']}"


def _cells(row: Row) -> tuple[object, ...]:
    open_end = {OPEN: "still open", REMOVED: time_text(row["to_ms"] or 0)}
    is_leaderless = row["kind"] == NO_LEADER
    return (
        duration(row["duration_ms"]),
        _which(row),
        "no leader" if is_leaderless else f"{row['fewest_in_sync']} of {row['min_isr']} in sync",
        time_text(row["from_ms"]),
        open_end.get(row["ended"]) or time_text(row["to_ms"]),
        cause_text(row["cause"], row["cause_broker"]),
        "removal of the topic"
        if row["ended"] == REMOVED
        else cause_text(row["end_cause"], row["end_cause_broker"]),
        number(row["from_offset"]),
    )


def answer_quorum(question: AuditQuery, min_ms: int) -> Answer:
    """When nothing was written, longest first, and what that says."""
    frame = idle_gaps(question.tables, question.source, min_ms=min_ms)
    has_noops = has_idle_records(question.tables, question.source)
    sums = {
        row["kind"]: row
        for row in frame.groupBy("kind")
        .agg(
            F.count("*").alias("idle_gaps"),
            F.sum("duration_ms").alias("total_ms"),
            F.max("duration_ms").alias("longest_ms"),
        )
        .collect()
    }
    verdicts = (
        _verdicts(sums, min_ms)
        if has_history(question)
        else ["there is no history here: whether the quorum had a leader is not known"]
    )
    notes = [
        "this is inferred: an active controller of Kafka 3.3 or later writes at least a NoOpRecord every 500 ms "
        "(metadata.max.idle.interval.ms), and the log does not say why nothing was written",
    ]
    if not has_history(question):
        notes = []
    elif not has_noops:
        notes = ["this log has no NoOpRecords, so an idle gap may only mean that there was nothing to write"]
    table = AnswerTable(
        name="idle_gaps",
        title="longest first",
        frame=frame.orderBy(F.desc("duration_ms"), "from_offset"),
        columns=(
            "#lasted",
            "from",
            "to",
            "#epochs",
            "controllers",
            "#last\noffset",
            "#epochs without\nrecords",
        ),
        spare=("#last\noffset", "#epochs without\nrecords"),
        cells=_idle_gap,
        total=sum(row["idle_gaps"] for row in sums.values()),
    )
    answer = Answer(
        head={"source": question.source, "min_ms": min_ms, "has_noop_records": has_noops},
        lines=[f"{question.source}: {verdicts[0]}", *verdicts[1:]],
        notes=notes,
        tables=[table],
    )
    return with_limits(question, answer)


def _verdicts(sums: Mapping[str, Row], min_ms: int) -> list[str]:
    new, same = sums.get(NEW_EPOCH), sums.get(SAME_EPOCH)
    if new is None:
        found = [
            f"no idle gap of {duration(min_ms)} or more came before a new epoch: as far as the log shows, one leader "
            "followed the other"
        ]
    else:
        found = [
            f"{counted(new['idle_gaps'], 'idle gap')} of {duration(min_ms)} or more came before a new epoch, "
            f"{duration(new['total_ms'])} in all, the longest {duration(new['longest_ms'])}: no controller could write "
            "then, so there was no leader with a majority, or none was running"
        ]
    if same is not None:
        found.append(
            f"{counted(same['idle_gaps'], 'idle gap')} within an epoch, the longest {duration(same['longest_ms'])}: "
            "the leader stayed, and wrote nothing"
        )
    return found


def _idle_gap(row: Row) -> tuple[object, ...]:
    leaders = [row["from_leader"], row["to_leader"]]
    is_new = row["kind"] == NEW_EPOCH
    return (
        duration(row["duration_ms"]),
        time_text(row["from_ms"]),
        time_text(row["to_ms"]),
        f"{row['from_epoch']} → {row['to_epoch']}" if is_new else number(row["to_epoch"]),
        " → ".join(number(each) or "?" for each in leaders) if is_new else ids(leaders[:1]),
        number(row["from_offset"]),
        row["epochs_without_records"] or "",
    )
