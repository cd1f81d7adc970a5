"""What the checks of an audit found about one log, for its report."""

from kquorum.spark_replay.audit_folder import AuditTables
from kquorum.spark_replay.checks.checking import CheckRequest, check_audit
from kquorum.spark_replay.checks.findings import NOTE, VIOLATION, CheckName
from kquorum.spark_replay.checks.results import CheckReport, FoundRow
from kquorum.spark_replay.report.facts import Checks, Finding
from kquorum.spark_replay.report.gather import Progress

FINDINGS_LISTED = 40


def check_facts(tables: AuditTables, source: str, *, progress: Progress = lambda step: None) -> Checks:  # noqa: ARG005
    """Runs the checks of the whole log `source`, and of the logs of its cluster against each other."""
    cluster = tables.source(source).member.cluster_id
    others = (
        each.source for each in tables.manifest.sources if cluster and each.member.cluster_id == cluster
    )
    sources = tuple(sorted({source, *others}))
    report = check_audit(tables, CheckRequest(sources=sources), progress=progress)
    try:
        return facts_of(report, source)
    finally:
        report.findings.unpersist()


def facts_of(report: CheckReport, source: str) -> Checks:
    """The results about `source`, and about the logs that it is compared with."""
    own = [each for each in report.results if each.source == source]
    compared = [each for each in report.replicas if source in each.sources]
    # `replicas` says what the comparison of the logs found, even where the results of the log repeat it.
    alone = [each for each in own if each.check is not CheckName.REPLICAS]
    findings = [_finding(row) for each in alone for row in each.first]
    for each in compared:
        findings += [
            Finding(
                check=str(CheckName.REPLICAS),
                severity=VIOLATION if found.is_violation else NOTE,
                source=found.source,
                subject=found.subject or "",
                reason=found.reason,
                offsets=tuple(found.proof_offsets),
            )
            for found in each.findings
        ]
    findings.sort(key=lambda each: each.severity != VIOLATION)
    skipped = [(str(each.check), reason) for each in alone for reason in each.skipped]
    skipped += [(str(CheckName.REPLICAS), each.why_not) for each in compared if each.why_not]
    violations = sum(each.violations for each in alone) + sum(each.violations for each in compared)
    notes = sum(each.notes for each in alone) + sum(len(each.findings) - each.violations for each in compared)
    passed = [str(each.check) for each in alone if each.verdict == "passed"]
    if any(each.why_not is None and not each.violations for each in compared):
        passed.append(str(CheckName.REPLICAS))
    return Checks(
        ran=True,
        passed=tuple(passed),
        skipped=tuple(skipped),
        findings=tuple(findings[:FINDINGS_LISTED]),
        violations=violations,
        notes=notes,
    )


def _finding(row: FoundRow) -> Finding:
    return Finding(
        check=row.check,
        severity=row.severity,
        source=row.source,
        subject=row.subject or "",
        reason=row.reason,
        offsets=row.proof_offsets,
    )
