"""The work of `audit as-of`: the whole cluster at one moment, as tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kquorum.cli.commands.audit.answers import Answer, AnswerTable, ids, number
from kquorum.cli.commands.audit.query import (
    Asked,
    AuditQuery,
    check_broker_known,
    check_partition_known,
    lives_of_topic,
    moment_of,
)
from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.frame import Frame, Row, union_of
from kquorum.spark_replay.questions.as_of import as_of, held
from kquorum.spark_replay.questions.entities import Narrowing
from kquorum.spark_replay.questions.moments import Moment, time_text
from kquorum.wire.safe_text import safe_text
from kquorum.wire.wording import counted


def _voters(frame: Frame, total: int | None) -> AnswerTable:
    voters = frame.select("source", F.explode("voters").alias("voter"), "since_offset", "since_ms")
    columns = ("source", "voter.*", "since_offset", "since_ms")
    return AnswerTable(
        name="voters",
        title="voters",
        frame=voters.select(*columns).orderBy("voter_id"),
        columns=("#voter", "directory", "endpoints", "since"),
        cells=lambda row: (
            number(row["voter_id"]),
            row["directory_id"] or "",
            _end_points(row["endpoints"]),
            time_text(row["since_ms"]),
        ),
        total=total,
        is_summarised=True,
    )


def _quorum(frame: Frame, total: int | None) -> AnswerTable:
    return AnswerTable(
        name="quorum",
        title="quorum",
        frame=frame,
        columns=("#epoch", "#leader", "since"),
        cells=lambda row: (number(row["epoch"]), number(row["leader_id"]), time_text(row["since_ms"])),
        total=total,
        is_summarised=True,
    )


def _features(frame: Frame, total: int | None) -> AnswerTable:
    return AnswerTable(
        name="features",
        title="features",
        frame=frame.orderBy("feature"),
        columns=("feature", "#level", "since"),
        cells=lambda row: (row["feature"], number(row["level"]), time_text(row["since_ms"])),
        total=total,
        is_summarised=True,
    )


def _brokers(frame: Frame, total: int | None) -> AnswerTable:
    return AnswerTable(
        name="brokers",
        title="brokers",
        frame=frame.orderBy("broker_id"),
        columns=("#broker", "state", "since", "end points", "rack", "#epoch"),
        spare=("rack", "#epoch"),
        folding="end points",
        cells=lambda row: (
            number(row["broker_id"]),
            _broker_state(row),
            time_text(row["since_ms"]),
            _end_points(row["end_points"]),
            row["rack"] or "",
            number(row["broker_epoch"]),
        ),
        total=total,
    )


def _broker_state(row: Row) -> str:
    if row["fenced"]:
        return "fenced"
    return "shutting down" if row["in_controlled_shutdown"] else "up"


def _end_points(end_points: list[Any] | None) -> str:
    return " ".join(f"{each['name']}://{each['host']}:{each['port']}" for each in end_points or ())


def _topics(frame: Frame, total: int | None) -> AnswerTable:
    return AnswerTable(
        name="topics",
        title="topics",
        frame=frame.orderBy("topic_name", "topic_id"),
        columns=(
            "topic",
            "#partitions",
            "#replicas",
            "#without\nleader",
            "#under-\nreplicated",
            "created",
            "id",
        ),
        spare=("id", "created"),
        folding="topic",
        cells=lambda row: (
            row["topic_name"],
            row["partitions"],
            number(row["replication_factor"]),
            row["without_leader"] or "",
            row["under_replicated"] or "",
            ("before " if row["from_snapshot"] else "") + time_text(row["since_ms"]),
            row["topic_id"],
        ),
        total=total,
    )


def _partitions(frame: Frame, total: int | None) -> AnswerTable:
    return AnswerTable(
        name="partitions",
        title="partitions",
        frame=frame.orderBy("topic_name", "topic_id", "partition_id"),
        columns=(
            *("topic", "#partition", "#leader", "in sync", "replicas", "eligible", "#leader\nepoch", "since"),
            *("#offset", "moving"),
        ),
        spare=("moving", "eligible", "#offset", "#leader\nepoch"),
        folding="topic",
        cells=lambda row: (
            row["topic_name"] or row["topic_id"],
            number(row["partition_id"]),
            "none" if row["leader"] is not None and row["leader"] < 0 else number(row["leader"]),
            ids(row["isr"]),
            ids(row["replicas"]),
            ids(row["eligible_leader_replicas"]),
            number(row["leader_epoch"]),
            time_text(row["since_ms"]),
            number(row["since_offset"]),
            _moving(row),
        ),
        total=total,
    )


def _moving(row: Row) -> str:
    adding, removing = row["adding_replicas"] or [], row["removing_replicas"] or []
    return " ".join([*(f"+{each}" for each in adding), *(f"-{each}" for each in removing)])


def _configs(frame: Frame, total: int | None) -> AnswerTable:
    return AnswerTable(
        name="configs",
        title="configs",
        frame=frame.orderBy("resource_type", "resource_name", "name"),
        columns=("of", "name", "value", "since"),
        spare=("since",),
        folding="value",
        cells=lambda row: (
            resource(row["resource_type"], row["resource_name"]),
            row["name"],
            row["value"],
            time_text(row["since_ms"]),
        ),
        total=total,
    )


def resource(kind: str, name: str | None) -> str:
    """`topic orders`, or `all brokers` for the default of all."""
    if kind == "broker" and not name:
        return "all brokers"
    return f"{kind} {safe_text(name or '(default)')}"


def _acls(frame: Frame, total: int | None) -> AnswerTable:
    return AnswerTable(
        name="acls",
        title="ACLs",
        frame=frame.orderBy("resource_type", "resource_name", "principal", "operation", "acl_id"),
        columns=("principal", "permission", "operation", "on", "from host", "since"),
        spare=("since", "from host"),
        folding="on",
        cells=lambda row: (
            row["principal"],
            row["permission"],
            row["operation"],
            acl_resource(row),
            row["host"],
            time_text(row["since_ms"]),
        ),
        total=total,
    )


def acl_resource(row: Any) -> str:
    """`TOPIC orders`, with a star where the name is a prefix."""
    star = "*" if row["pattern_type"] == "PREFIXED" else ""
    return f"{row['resource_type']} {row['resource_name']}{star}"


STATE_TABLES = {
    "quorum": _quorum,
    "voters": _voters,
    "features": _features,
    "brokers": _brokers,
    "topics": _topics,
    "partitions": _partitions,
    "configs": _configs,
    "acls": _acls,
}
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


def _sums(frames: Mapping[str, Frame]) -> dict[str, dict[str, int]]:
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
    sums = union_of(counted).groupBy("name")
    rows = sums.agg(
        F.count("*").alias("rows"), *(F.count_if(F.col(each)).alias(each) for each in _WRONG)
    ).collect()
    nothing = dict.fromkeys(("rows", *_WRONG), 0)
    return dict.fromkeys(frames, nothing) | {
        row["name"]: {name: row[name] for name in nothing} for row in rows
    }


def _quorum_lines(frames: Mapping[str, Frame], sums: Mapping[str, Mapping[str, int]]) -> list[str]:
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
