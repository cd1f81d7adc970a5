"""An audit in a few figures: what each log holds and what became of it. Only aggregates come to the driver."""

from collections import defaultdict
from dataclasses import asdict
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.audit import AuditResult
from kquorum.spark_replay.audit_folder import read_table

DAMAGE_SHOWN = 20


def summarize(spark: SparkSession, out: Path, result: AuditResult) -> dict[str, Any]:
    """`sources`, `record_types`, `tables` and `damage` (its first rows) as plain values fit for JSON."""
    tables = {name: read_table(spark, out, name) for name in result.rows}
    by_source = _figures_by_source(tables)
    return {
        "sources": [
            _source(source, result, by_source[source])
            for source in sorted({file.source for file in result.files})
        ],
        "record_types": _record_types(result),
        "tables": {name: {"rows": count, "path": str(out / name)} for name, count in result.rows.items()},
        "damage": [row.asDict() for row in tables["damage"].limit(DAMAGE_SHOWN).collect()],
    }


def _source(source: str, result: AuditResult, figures: dict[str, int]) -> dict[str, Any]:
    files = [file for file in result.files if file.source == source]
    (base,) = (base for base in result.bases if base.source == source)
    bounds = result.bounds.get(source)
    return {
        "source": source,
        "files": len(files),
        "size_in_bytes": sum(file.size_in_bytes for file in files),
        "state_from": base.snapshot or base.from_offset,
        **({} if bounds is None else asdict(bounds)),
        "unknown_records": result.unknown_records.get(source, 0),
        **figures,
    }


def _figures_by_source(tables: dict[str, DataFrame]) -> dict[str, dict[str, int]]:
    """Every figure of every source, by one query: a union of small counts, which is a plan of few stages."""
    counts = {
        "epochs": tables["quorum_epochs"],
        "brokers": tables["brokers"].where("registered"),
        "topics": tables["topics"].where("valid_to_offset is null"),
        "removed_topics": tables["topics"].where("valid_to_offset is not null"),
        "partitions": tables["partition_history"].where("valid_to_offset is null"),
        "leader_changes": tables["leader_changes"],
        "unclean_leader_changes": tables["leader_changes"].where("unclean"),
        "damaged_places": tables["damage"],
    }
    selected = [frame.select("source", F.lit(name).alias("figure")) for name, frame in counts.items()]
    union = reduce(DataFrame.unionAll, selected)
    figures: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(counts, 0))
    for row in union.groupBy("source", "figure").agg(F.count("*").alias("value")).collect():
        figures[row["source"]][row["figure"]] = row["value"]
    return figures


def _record_types(result: AuditResult) -> dict[str, int]:
    """The most frequent first."""
    return dict(sorted(result.record_types.items(), key=lambda each: (-each[1], each[0])))
