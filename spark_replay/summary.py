"""An audit in a few figures: what each log holds and what became of it. Only aggregates come to the driver."""

from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from spark_replay.audit import AuditResult
from spark_replay.audit_folder import read_table

DAMAGE_SHOWN = 20


def summarize(spark: SparkSession, out: Path, result: AuditResult) -> dict[str, Any]:
    """`sources`, `record_types`, `tables` and `damage` (its first rows) as plain values fit for JSON."""
    tables = {name: read_table(spark, out, name) for name in result.rows}
    by_source = _figures_by_source(tables)
    return {
        "sources": [
            _source(source, result, by_source.get(source, {}))
            for source in sorted({file.source for file in result.files})
        ],
        "record_types": {row["record_type"]: row["count"] for row in _record_types(tables["records"])},
        "tables": {name: {"rows": count, "path": str(out / name)} for name, count in result.rows.items()},
        "damage": [row.asDict() for row in tables["damage"].limit(DAMAGE_SHOWN).collect()],
    }


def _source(source: str, result: AuditResult, figures: dict[str, Any]) -> dict[str, Any]:
    files = [file for file in result.files if file.source == source]
    (base,) = (base for base in result.bases if base.source == source)
    return {
        "source": source,
        "files": len(files),
        "size_in_bytes": sum(file.size_in_bytes for file in files),
        "state_from": base.snapshot or base.from_offset,
        **figures,
    }


def _figures_by_source(tables: dict[str, DataFrame]) -> dict[str, dict[str, Any]]:
    """Every figure of every source, by one query: a union of small counts, which is a plan of few stages."""
    counts = [
        _count(tables["records"].where(F.col("payload").isNull()), "unknown_records"),
        _count(tables["quorum_epochs"], "epochs"),
        _count(tables["brokers"].where("registered"), "brokers"),
        _count(tables["topics"].where("valid_to_offset is null"), "topics"),
        _count(tables["topics"].where("valid_to_offset is not null"), "removed_topics"),
        _count(tables["partition_history"].where("valid_to_offset is null"), "partitions"),
        _count(tables["leader_changes"], "leader_changes"),
        _count(tables["leader_changes"].where("unclean"), "unclean_leader_changes"),
        _count(tables["damage"], "damaged_places"),
    ]
    names = [name for name, _ in counts]
    figures: dict[str, dict[str, Any]] = {
        row["source"]: {**row.asDict(), **dict.fromkeys(names, 0)}
        for row in _log_bounds(tables["records"]).collect()
    }
    union = reduce(DataFrame.unionAll, (frame for _, frame in counts))
    for row in union.groupBy("source", "figure").agg(F.count("*").alias("value")).collect():
        figures.setdefault(row["source"], dict.fromkeys(names, 0))[row["figure"]] = row["value"]
    return figures


def _log_bounds(records: DataFrame) -> DataFrame:
    log = records.where(F.col("file_kind") == "log")
    return log.groupBy("source").agg(
        F.count("*").alias("records"),
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        F.min("timestamp_ms").alias("first_ms"),
        F.max("timestamp_ms").alias("last_ms"),
    )


def _count(frame: DataFrame, figure: str) -> tuple[str, DataFrame]:
    return figure, frame.select("source", F.lit(figure).alias("figure"))


def _record_types(records: DataFrame) -> list[Any]:
    counted = records.groupBy("record_type").count()
    return list(counted.orderBy(F.desc("count"), "record_type").collect())
