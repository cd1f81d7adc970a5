"""All checks of an audit: of its tables, by replaying its logs, and of the logs of one quorum against each other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

from kquorum.metadata.log_check.state_replay import RecordedHash
from kquorum.spark_replay.audit_folder import AuditTables
from kquorum.spark_replay.checks import log_checks, marker_checks, removal_checks, state_checks
from kquorum.spark_replay.checks.counting import UNITS, checked_counts
from kquorum.spark_replay.checks.findings import FINDINGS, NOTE, VIOLATION, CheckName
from kquorum.spark_replay.checks.inputs import CheckInputs, check_inputs
from kquorum.spark_replay.checks.replaying import COUNTED, Replayed, replay_source
from kquorum.spark_replay.checks.replica_checks import compare_replicas
from kquorum.spark_replay.checks.results import (
    CheckReport,
    CheckResult,
    FoundRow,
    ReplicaReport,
    StateReached,
    rows_of_replicas,
)
from kquorum.spark_replay.decode.sources import FileKind
from kquorum.wire.wording import counted

Progress = Callable[[str], None]


class CheckGroup(StrEnum):
    """What can be chosen: checks of the tables, of a replay of the log's files, and of logs against each other."""

    TABLES = "tables"
    REPLAY = "replay"
    REPLICAS = "replicas"


ALL_GROUPS: Final = tuple(CheckGroup)
_LOG: Final[Mapping[CheckName, Callable[[CheckInputs], DataFrame]]] = {
    CheckName.CHECKSUMS: log_checks.checksums,
    CheckName.OFFSETS: log_checks.offsets,
    CheckName.RECORDS: log_checks.unreadable_records,
    CheckName.EPOCHS: log_checks.quorum_epochs,
    CheckName.TIMESTAMPS: log_checks.timestamps,
}
# What is derived from records may be wrong only because other records are missing.
_DERIVED: Final[Mapping[CheckName, Callable[[CheckInputs], DataFrame]]] = {
    CheckName.ELECTIONS: log_checks.elections,
    CheckName.TRANSACTIONS: marker_checks.transactions,
    CheckName.LEADERS: state_checks.leaders,
    CheckName.ISR: state_checks.in_sync_replicas,
    CheckName.PARTITION_EPOCHS: state_checks.partition_epochs,
    CheckName.REMOVALS: removal_checks.after_removal,
    CheckName.AUDIT_CHAIN: marker_checks.audit_chain,
}
_NO_HASH: Final = "no hash was given, and a cluster's files hold none: see --state-hash"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """`sources` by name, empty for all; `keep` findings of each log and check are given back. `recorded` are hashes of
    states that the cluster reported, by source, or under None for whichever log they fit. `one_cluster`: see
    `compare_replicas`."""

    sources: tuple[str, ...] = ()
    groups: tuple[CheckGroup, ...] = ALL_GROUPS
    keep: int = 5
    recorded: Mapping[str | None, tuple[RecordedHash, ...]] = field(default_factory=dict)
    one_cluster: bool = False


def check_audit(
    tables: AuditTables,
    request: CheckRequest | None = None,
    *,
    progress: Progress = lambda step: None,  # noqa: ARG005
) -> CheckReport:
    """Run the checks. KeyError for a source that the audit does not have."""
    request = request or CheckRequest()
    inputs = check_inputs(tables, request.sources)
    replayed = _replayed(tables.spark, inputs, request, progress)
    replicas: tuple[ReplicaReport, ...] = ()
    if CheckGroup.REPLICAS in request.groups:
        progress("comparing the logs of one cluster")
        digests = {each.source: each.snapshots for each in replayed}
        replicas = compare_replicas(inputs, digests, one_cluster=request.one_cluster)
    rows = rows_of_replicas([finding for each in replicas for finding in each.findings])
    findings = _findings(inputs, request, replayed).unionByName(_frame(tables.spark, rows)).persist()
    progress("checking the tables" if CheckGroup.TABLES in request.groups else "summing up")
    totals, kept = _totals(findings), _first(findings, request.keep)
    counts = checked_counts(inputs) if CheckGroup.TABLES in request.groups else {}
    inputs.release()
    return CheckReport(
        results=tuple(_results(inputs, request, replayed, counts, totals, kept)),
        replicas=replicas,
        states=tuple(
            StateReached(source=each.source, offset=each.state_offset, state_hash=each.state_hash)
            for each in replayed
            if each.state_offset is not None and each.state_hash is not None
        ),
        findings=findings,
    )


def _replayed(
    spark: SparkSession, inputs: CheckInputs, request: CheckRequest, progress: Progress
) -> list[Replayed]:
    """One task for each log. Replicas need only the snapshots of them."""
    if CheckGroup.REPLAY not in request.groups and CheckGroup.REPLICAS not in request.groups:
        return []
    only_snapshots = CheckGroup.REPLAY not in request.groups
    progress(
        "reading the snapshots" if only_snapshots else f"replaying {counted(len(inputs.sources), 'log')}"
    )
    everywhere = request.recorded.get(None, ())
    work = [
        (source, (*everywhere, *request.recorded.get(source.source, ())), only_snapshots)
        for source in inputs.sources
    ]
    tasks = spark.sparkContext.parallelize(work, max(1, len(work)))
    return list(tasks.map(lambda item: replay_source(item[0], item[1], only_snapshots=item[2])).collect())


def _findings(inputs: CheckInputs, request: CheckRequest, replayed: Sequence[Replayed]) -> DataFrame:
    """Of the tables, and those of the replay which the tables do not tell of."""
    spark = inputs.tables.spark
    rows = [row for each in replayed for row in each.findings] if CheckGroup.REPLAY in request.groups else []
    of_replay = _frame(spark, rows)
    if CheckGroup.TABLES not in request.groups:
        return of_replay
    derived = reduce(DataFrame.unionByName, [check(inputs) for check in _DERIVED.values()])
    of_log = reduce(DataFrame.unionByName, [check(inputs) for check in _LOG.values()])
    of_tables = _with_files(
        inputs, of_log.unionByName(_without_consequences(inputs, derived, snapshots_behind(inputs, replayed)))
    )
    return of_tables.unionByName(_told_once(of_replay, of_tables)) if rows else of_tables


def _frame(spark: SparkSession, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
    return spark.createDataFrame(list(rows), FINDINGS)


def snapshots_behind(inputs: CheckInputs, replayed: Sequence[Replayed]) -> dict[str, str]:
    """Of each log that lacks records the newest sound snapshot behind the first of them, by its source."""
    found: dict[str, str] = {}
    for each in replayed:
        since = inputs.missing_since.get(each.source)
        sound = {digest.file for digest in each.snapshots if digest.state_hash is not None}
        ends = [
            (file.end_offset or 0, file.name)
            for source in inputs.sources
            if source.source == each.source
            for file in source.files
            if file.name in sound
        ]
        newest = max(ends, default=(0, ""))
        if since is not None and newest[0] > since:
            found[each.source] = newest[1]
    return found


def _without_consequences(
    inputs: CheckInputs, findings: DataFrame, snapshots: Mapping[str, str]
) -> DataFrame:
    """Behind missing records a finding is a note: the records that would explain it may be among those."""
    severity, reason = F.col("severity"), F.col("reason")
    for source, offset in sorted(inputs.missing_since.items()):
        behind = (F.col("source") == source) & (F.col("offset") >= offset) & (F.col("severity") == VIOLATION)
        severity = F.when(behind, NOTE).otherwise(severity)
        why = f"; records are missing from offset {offset} on, which may be why"
        if source in snapshots:
            why += (
                f" (the snapshot {snapshots[source]} has the right state: `audit as-of` on that file alone)"
            )
        said = F.concat(reason, F.lit(why))
        reason = F.when(behind, said).otherwise(reason)
    return findings.withColumns({"severity": severity, "reason": reason})


def _with_files(inputs: CheckInputs, findings: DataFrame) -> DataFrame:
    """The segment of each offset, where a check knows no file."""
    rows: list[tuple[str, str, int, int]] = []
    for source in inputs.sources:
        segments = sorted(
            (file.base_offset or 0, file.name) for file in source.files if file.kind is FileKind.LOG
        )
        ends = [*(start for start, _ in segments[1:]), 2**63 - 1]
        rows += [
            (source.source, name, start, end) for (start, name), end in zip(segments, ends, strict=False)
        ]
    names = ("segment_source", "segment", "segment_start", "segment_end")
    schema = "segment_source string, segment string, segment_start long, segment_end long"
    segment = F.broadcast(inputs.tables.spark.createDataFrame(rows, schema))
    within = (
        F.col("file").isNull()
        & (F.col("source") == F.col("segment_source"))
        & (F.col("offset") >= F.col("segment_start"))
        & (F.col("offset") < F.col("segment_end"))
    )
    joined = findings.join(segment, within, "left")
    return joined.withColumn("file", F.coalesce("file", "segment")).drop(*names)


def _told_once(of_replay: DataFrame, of_tables: DataFrame) -> DataFrame:
    """Without what the tables tell of the same place. In a snapshot only the replay knows records by their place."""
    named = of_tables.where(F.col("file").endswith(".log")).select(
        "source", "check", "file", "position", "offset"
    )
    stated = named.distinct().alias("stated")
    replay = of_replay.alias("replay")
    same = {name: F.col(f"replay.{name}") == F.col(f"stated.{name}") for name in named.columns}
    at_place = same["file"] & (same["offset"] | F.coalesce(same["position"], F.lit(False)))
    without_file = F.col("replay.file").isNull() & same["check"] & same["offset"]
    return replay.join(stated, same["source"] & (at_place | without_file), "left_anti")


def _totals(findings: DataFrame) -> dict[tuple[str, str, str], int]:
    rows = findings.groupBy("source", "check", "severity").count().collect()
    return {(row["source"], row["check"], row["severity"]): row["count"] for row in rows}


def _first(findings: DataFrame, keep: int) -> dict[tuple[str, str], tuple[FoundRow, ...]]:
    order = Window.partitionBy("source", "check").orderBy(
        F.desc("severity"), "offset", "position", "subject", "reason"
    )
    ranked = findings.withColumn("rank", F.row_number().over(order)).where(F.col("rank") <= keep)
    kept: dict[tuple[str, str], tuple[FoundRow, ...]] = {}
    for row in sorted(ranked.collect(), key=lambda row: (row["source"], row["check"], row["rank"])):
        fields = {name: row[name] for name in FINDINGS.fieldNames()}
        key = (row["source"], row["check"])
        kept[key] = (*kept.get(key, ()), FoundRow.of(fields))
    return kept


def _results(
    inputs: CheckInputs,
    request: CheckRequest,
    replayed: Sequence[Replayed],
    counts: Mapping[tuple[str, str], int],
    totals: Mapping[tuple[str, str, str], int],
    kept: Mapping[tuple[str, str], tuple[FoundRow, ...]],
) -> list[CheckResult]:
    by_source = {each.source: each for each in replayed}
    names = [
        *((*_LOG, *_DERIVED) if CheckGroup.TABLES in request.groups else ()),
        *(COUNTED if CheckGroup.REPLAY in request.groups else ()),
    ]
    results = []
    for source in (each.source for each in inputs.sources):
        replay = by_source.get(source)
        for name in (name for name in CheckName if _is_chosen(name, names, source, totals)):
            checked = (
                replay.checked.get(name, 0) if replay and name in COUNTED else counts.get((source, name), 0)
            )
            results.append(
                CheckResult(
                    source=source,
                    check=name,
                    unit=UNITS[name],
                    checked=checked,
                    violations=totals.get((source, name, VIOLATION), 0),
                    notes=totals.get((source, name, NOTE), 0),
                    first=kept.get((source, name), ()),
                    skipped=_skipped(inputs, request, source, name, replay),
                )
            )
    return results


def _is_chosen(
    name: CheckName, names: Sequence[CheckName], source: str, totals: Mapping[tuple[str, str, str], int]
) -> bool:
    """A replay alone may find what belongs to a check of the tables."""
    is_found = any((source, name, severity) in totals for severity in (VIOLATION, NOTE))
    return name is not CheckName.REPLICAS and (name in names or is_found)


def _skipped(
    inputs: CheckInputs, request: CheckRequest, source: str, name: CheckName, replay: Replayed | None
) -> tuple[str, ...]:
    if name is CheckName.REMOVALS and source in inputs.beheaded:
        return ("what was made before the log begins is not known: no sound snapshot goes with it",)
    if name not in COUNTED or replay is None:
        return ()
    if replay.why_not is not None:
        return (replay.why_not,)
    if name is CheckName.STATE_HASH and not (request.recorded.get(None) or request.recorded.get(source)):
        return (_NO_HASH,)
    return tuple(replay.skipped.get(name, ()))
