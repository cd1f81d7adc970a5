"""The work of `audit as-of`: the cluster at one moment, its sum first."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from cli.audit.answers import Answer
from cli.audit.cells import ids
from cli.audit.moment import Asked, moment_of
from cli.audit.question import AuditQuery, check_broker_known, check_partition_known, lives_of_topic
from cli.audit.state_tables import STATE_TABLES
from spark_replay.questions.as_of import as_of, held
from spark_replay.questions.entities import Narrowing
from spark_replay.questions.moments import Moment, time_text
from wire.wording import counted

_MOST_FEATURES = 50
_WRONG = ("fenced", "shutting_down", "without_leader", "under_replicated")


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """When, and about what."""

    asked: Asked
    narrowing: Narrowing


def answer_as_of(question: AuditQuery, request: AsOf) -> Answer:
    """The state at the moment. Raises CliError."""
    narrowing = request.narrowing
    lives = [] if narrowing.topic is None else lives_of_topic(question, narrowing.topic)
    if narrowing.topic is not None and narrowing.partition is not None:
        check_partition_known(question, narrowing.topic, narrowing.partition)
    if narrowing.broker is not None:
        check_broker_known(question, narrowing.broker)
    moment = moment_of(question.tables, question.source, request.asked)
    frames = dict(as_of(question.tables, moment, narrowing))
    sums = _sums(held(question.tables, moment, narrowing))
    lines = [_when(moment), *_quorum_lines(frames, sums), _sum_line(sums)]
    if narrowing.topic is not None and not sums["topics"]["rows"]:
        lines.append(f"topic {narrowing.topic} was not there then; it was there " + "; ".join(lives))
    head: dict[str, Any] = {
        "source": moment.source,
        "offset": moment.offset,
        "state_offset": moment.state_offset,
        "timestamp_ms": moment.timestamp_ms,
        "summary": {
            name: {key: value for key, value in row.items() if value or key == "rows"}
            for name, row in sums.items()
        },
    }
    if "topics" in frames:
        base = question.tables.source(question.source).base
        is_older = F.lit(base.snapshot is not None) & (F.col("since_offset") < base.from_offset)
        frames["topics"] = frames["topics"].withColumn("from_snapshot", is_older)
    tables = [STATE_TABLES[name](frames[name], sums[name]["rows"]) for name in STATE_TABLES if name in frames]
    return Answer(head=head, lines=lines, notes=moment.notes, tables=tables)


def _when(moment: Moment) -> str:
    when = "" if moment.timestamp_ms is None else f", {time_text(moment.timestamp_ms)}"
    return f"{moment.source} at offset {moment.offset}{when}"


def _sums(frames: Mapping[str, DataFrame]) -> dict[str, dict[str, int]]:
    """Of each frame the number of rows, and of what is wrong among them, by one job."""
    wrong = {
        ("brokers", "fenced"): F.col("fenced"),
        ("brokers", "shutting_down"): F.col("in_controlled_shutdown"),
        ("partitions", "without_leader"): F.col("leader") < 0,
        ("partitions", "under_replicated"): F.size("isr") < F.size("replicas"),
    }
    counted = [
        frame.select(
            F.lit(name).alias("name"),
            *(wrong.get((name, each), F.lit(False)).alias(each) for each in _WRONG),
        )
        for name, frame in frames.items()
    ]
    sums = reduce(DataFrame.unionAll, counted).groupBy("name")
    rows = sums.agg(
        F.count("*").alias("rows"), *(F.count_if(F.col(each)).alias(each) for each in _WRONG)
    ).collect()
    nothing = dict.fromkeys(("rows", *_WRONG), 0)
    return dict.fromkeys(frames, nothing) | {
        row["name"]: {name: row[name] for name in nothing} for row in rows
    }


def _quorum_lines(frames: Mapping[str, DataFrame], sums: Mapping[str, Mapping[str, int]]) -> list[str]:
    if "quorum" not in frames:
        return []
    lines = []
    for row in frames["quorum"].limit(1).collect():
        leader = (
            "a controller not named in the log"
            if row["leader_id"] is None
            else f"controller {row['leader_id']}"
        )
        lines.append(
            f"quorum: {leader} leads in epoch {row['epoch']}, since offset {row['since_offset']}, "
            f"{time_text(row['since_ms'])}"
        )
    lines += [f"voters: {ids(row['voter_ids'])}" for row in frames["voters"].limit(1).collect()]
    if sums["features"]["rows"]:
        levels = frames["features"].orderBy("feature").limit(_MOST_FEATURES).collect()
        lines.append("features: " + ", ".join(f"{row['feature']} {row['level']}" for row in levels))
    return lines or ["quorum: the log tells of no leader yet"]


def _sum_line(sums: Mapping[str, Mapping[str, int]]) -> str:
    parts = []
    for name, one in (
        *(("brokers", "broker"), ("topics", "topic"), ("partitions", "partition")),
        *(("configs", "config"), ("acls", "ACL")),
    ):
        if name not in sums:
            continue
        row = sums[name]
        rows = row["rows"]
        wrong = [f"{row[each]:,} {each.replace('_', ' ')}" for each in _WRONG if row[each]]
        part = counted(rows, one)
        parts.append(f"{part} ({', '.join(wrong)})" if wrong else part)
    return ", ".join(parts)
