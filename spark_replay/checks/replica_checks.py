"""The logs of the voters of one quorum, and the snapshots that several of them hold, compared with each other."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.audit_manifest import AuditedSource
from kquorum.spark_replay.checks.inputs import CheckInputs
from kquorum.spark_replay.checks.replaying import SnapshotDigest
from kquorum.spark_replay.checks.replica_facts import replica_facts
from kquorum.spark_replay.checks.replica_verdict import ReplicaFinding, findings_of, watermark
from kquorum.spark_replay.checks.results import ReplicaReport, SnapshotCopies
from kquorum.spark_replay.decode.sources import FileKind

Digests = Mapping[str, Sequence[SnapshotDigest]]
_DIFFERENCES_TOLD = 3
_PAYLOAD_SHOWN = 160


def compare_replicas(
    inputs: CheckInputs, digests: Digests, *, one_cluster: bool = False
) -> tuple[ReplicaReport, ...]:
    """One report for each cluster. `one_cluster`: take all sources for one cluster's, whatever their files say."""
    groups: dict[str | None, list[AuditedSource]] = {}
    for source in inputs.sources:
        groups.setdefault("" if one_cluster else source.member.cluster_id, []).append(source)
    ordered = sorted(groups.items(), key=lambda item: item[1][0].source)
    return tuple(
        _compared(inputs, cluster_id or None, found, digests, one_cluster=one_cluster)
        for cluster_id, found in ordered
    )


def _compared(
    inputs: CheckInputs,
    cluster_id: str | None,
    sources: list[AuditedSource],
    digests: Digests,
    *,
    one_cluster: bool,
) -> ReplicaReport:
    report = ReplicaReport(cluster_id=cluster_id, sources=tuple(each.source for each in sources))
    if len(sources) < 2:
        return replace(report, why_not="it is the only log of its cluster here")
    if cluster_id is None and not one_cluster:
        return replace(report, why_not=_UNKNOWN)
    with_batches = [each for each in sources if each.end_offset is not None]
    snapshots = _copies(inputs, sources, digests)
    if len(with_batches) < 2:
        return replace(report, snapshots=snapshots, why_not="fewer than two of these logs hold any batch")
    facts = replica_facts(inputs, with_batches)
    sound = {
        each.source: {
            digest.file: _end_of(each, digest.file)
            for digest in digests.get(each.source, ())
            if digest.state_hash is not None
        }
        for each in sources
    }
    mark = watermark(facts, sound)
    findings = (*findings_of(facts, mark, sound), *_findings_of_copies(snapshots, sources))
    return replace(report, facts=facts, mark=mark, findings=findings, snapshots=snapshots)


_UNKNOWN = (
    "no meta.properties beside them says which cluster they are of; if they are the logs of one, say so with "
    "--same-cluster"
)


def _end_of(source: AuditedSource, file: str) -> int:
    return next(each.end_offset or 0 for each in source.files if each.name == file)


def _copies(
    inputs: CheckInputs, sources: Sequence[AuditedSource], digests: Digests
) -> tuple[SnapshotCopies, ...]:
    held: dict[str, list[tuple[str, SnapshotDigest]]] = {}
    for source in sources:
        for digest in digests.get(source.source, ()):
            held.setdefault(digest.file, []).append((source.source, digest))
    copies = []
    for file, found in sorted(held.items()):
        if len(found) < 2:
            continue
        hashes = {digest.state_hash for _, digest in found if digest.state_hash is not None}
        sound = sum(1 for _, digest in found if digest.state_hash is not None)
        same_state = None if sound < 2 else len(hashes) == 1
        names = tuple(name for name, _ in found)
        copies.append(
            SnapshotCopies(
                file=file,
                sources=names,
                same_bytes=len({digest.file_hash for _, digest in found}) == 1,
                same_state=same_state,
                differences=_differences(inputs, file, names) if same_state is False else (),
            )
        )
    return tuple(copies)


def _differences(inputs: CheckInputs, file: str, sources: Sequence[str]) -> tuple[str, ...]:
    """Some records that not all copies hold. Secrets are redacted in the tables: those are only counted as different by
    the hashes."""
    rows = inputs.table("records").where(
        (F.col("file_kind") == FileKind.SNAPSHOT.value)
        & (F.col("file") == file)
        & ~F.col("is_control")
        & F.col("source").isin(list(sources))
    )
    held = rows.groupBy("record_type", "payload").agg(F.sort_array(F.collect_set("source")).alias("holders"))
    lonely = held.where(F.size("holders") < len(sources)).orderBy("record_type", "payload")
    return tuple(
        f"only {' and '.join(row['holders'])}: {row['record_type']} {(row['payload'] or '')[:_PAYLOAD_SHOWN]}"
        for row in lonely.limit(_DIFFERENCES_TOLD).collect()
    )


def _findings_of_copies(
    copies: Sequence[SnapshotCopies], sources: Sequence[AuditedSource]
) -> list[ReplicaFinding]:
    by_name = {each.source: each for each in sources}
    return [
        ReplicaFinding(
            is_violation=True,
            source=", ".join(each.sources),
            file=each.file,
            offset=(end := _end_of(by_name[each.sources[0]], each.file)),
            proof_offsets=(end,),
            subject="snapshot",
            reason="the copies of one snapshot hold different states: "
            + ("; ".join(each.differences) or "they differ in what the tables redact"),
        )
        for each in copies
        if each.same_state is False
    ]
