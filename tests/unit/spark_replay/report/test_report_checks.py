"""What the report says of the checks: each finding once, violations first."""

from typing import Any

from kquorum.spark_replay.checks.findings import NOTE, VIOLATION, CheckName
from kquorum.spark_replay.checks.replica_verdict import ReplicaFinding
from kquorum.spark_replay.checks.results import CheckReport, CheckResult, FoundRow, ReplicaReport
from kquorum.spark_replay.report.check_facts import facts_of

ANY: Any = None


def row(severity: str, offset: int, source: str = "one") -> FoundRow:
    return FoundRow(
        check=str(CheckName.TIMESTAMPS),
        severity=severity,
        source=source,
        file=None,
        position=None,
        offset=offset,
        proof_offsets=(offset,),
        subject=None,
        reason=f"found at {offset}",
    )


def result(check: CheckName, source: str = "one", **values: Any) -> CheckResult:
    return CheckResult(source=source, check=check, unit="batches", **{"checked": 1, **values})


def test_violations_come_first_and_what_passed_is_named() -> None:
    found = (row(NOTE, 1), row(VIOLATION, 2))
    results = (
        result(CheckName.CHECKSUMS),
        result(CheckName.TIMESTAMPS, violations=9, notes=1, first=found),
        result(CheckName.STATE_HASH, checked=0, skipped=("no hash",)),
        result(CheckName.OFFSETS, source="two", violations=5, first=(row(VIOLATION, 7, "two"),)),
    )
    facts = facts_of(CheckReport(results=results, replicas=(), states=(), findings=ANY), "one")
    assert [(each.severity, each.reason) for each in facts.findings] == [
        (VIOLATION, "found at 2"),
        (NOTE, "found at 1"),
    ]
    assert (facts.violations, facts.notes) == (9, 1)
    assert facts.passed == ("checksums",)
    assert facts.skipped == (("state hash", "no hash"),)


def test_what_a_comparison_found_is_reported_once() -> None:
    finding = ReplicaFinding(
        is_violation=True,
        source="one",
        offset=5,
        proof_offsets=(5,),
        subject="differs",
        reason="differs at 5",
    )
    compared = ReplicaReport(cluster_id="c", sources=("one", "two"), findings=(finding,))
    own = result(CheckName.REPLICAS, violations=1, first=(row(VIOLATION, 5),))
    other = ReplicaReport(cluster_id="d", sources=("three",), why_not="one log alone")
    report = CheckReport(results=(own,), replicas=(compared, other), states=(), findings=ANY)
    facts = facts_of(report, "one")
    assert [each.reason for each in facts.findings] == ["differs at 5"]
    assert (facts.violations, facts.notes, facts.skipped) == (1, 0, ())
    agreeing = ReplicaReport(cluster_id="c", sources=("one", "two"))
    assert facts_of(CheckReport(results=(), replicas=(agreeing,), states=(), findings=ANY), "one").passed == (
        "replicas",
    )
