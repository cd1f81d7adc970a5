"""The state of a cluster as tables: brokers, topics, partitions, configs, access control and the quorum."""

from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from cli.audit.answers import AnswerTable
from cli.audit.cells import ids, number
from spark_replay.questions.moments import time_text
from wire.safe_text import safe_text


def _voters(frame: DataFrame, total: int | None) -> AnswerTable:
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
        is_told=True,
    )


def _quorum(frame: DataFrame, total: int | None) -> AnswerTable:
    return AnswerTable(
        name="quorum",
        title="quorum",
        frame=frame,
        columns=("#epoch", "#leader", "since"),
        cells=lambda row: (number(row["epoch"]), number(row["leader_id"]), time_text(row["since_ms"])),
        total=total,
        is_told=True,
    )


def _features(frame: DataFrame, total: int | None) -> AnswerTable:
    return AnswerTable(
        name="features",
        title="features",
        frame=frame.orderBy("feature"),
        columns=("feature", "#level", "since"),
        cells=lambda row: (row["feature"], number(row["level"]), time_text(row["since_ms"])),
        total=total,
        is_told=True,
    )


def _brokers(frame: DataFrame, total: int | None) -> AnswerTable:
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


def _topics(frame: DataFrame, total: int | None) -> AnswerTable:
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


def _partitions(frame: DataFrame, total: int | None) -> AnswerTable:
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


def _configs(frame: DataFrame, total: int | None) -> AnswerTable:
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


def _acls(frame: DataFrame, total: int | None) -> AnswerTable:
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
