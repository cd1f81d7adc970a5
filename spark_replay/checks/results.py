"""What `check_audit` answers: for each log and check how much was looked at and what was found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from kquorum.spark_replay.checks.findings import NOTE, VIOLATION, CheckName
from kquorum.spark_replay.checks.replica_facts import ReplicaFacts
from kquorum.spark_replay.checks.replica_verdict import ReplicaFinding, Watermark


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRow:
    """A row of the findings; see the schema FINDINGS."""

    check: str
    severity: str
    source: str
    file: str | None
    position: int | None
    offset: int | None
    proof_offsets: tuple[int, ...]
    subject: str | None
    reason: str

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "FoundRow":
        return cls(**{**fields, "proof_offsets": tuple(fields["proof_offsets"] or ())})


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """`checked` counts `unit`s. `violations` and `notes` count all findings, `first` holds some of them, violations
    first. `skipped` has the parts that were not checked, and why."""

    source: str
    check: CheckName
    unit: str
    checked: int
    violations: int = 0
    notes: int = 0
    first: tuple[FoundRow, ...] = ()
    skipped: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """violated, passed, skipped (nothing was looked at, for a reason) or nothing (there was nothing to look at)."""
        if self.violations:
            return "violated"
        if self.checked or self.notes:
            return "passed"
        return "skipped" if self.skipped else "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotCopies:
    """The copies of one snapshot in several logs. `same_bytes` and `same_state`; None where too few are sound."""

    file: str
    sources: tuple[str, ...]
    same_bytes: bool
    same_state: bool | None
    differences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaReport:
    """The logs of one cluster compared. `why_not` is set, and facts and mark are None, where that cannot be done."""

    cluster_id: str | None
    sources: tuple[str, ...]
    facts: ReplicaFacts | None = None
    mark: Watermark | None = None
    findings: tuple[ReplicaFinding, ...] = ()
    snapshots: tuple[SnapshotCopies, ...] = ()
    why_not: str | None = None

    @property
    def violations(self) -> int:
        return sum(1 for each in self.findings if each.is_violation)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReached:
    """The replay's hash of the state whose last offset is `offset`."""

    source: str
    offset: int
    state_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """`results` by log and check, `replicas` by cluster, `states` of each log that could be replayed to its end.

    `findings` are all of them, with the schema FINDINGS; of a replay 10,000 of each log and check. They are cached:
    `findings.unpersist()` lets go of them.
    """

    results: tuple[CheckResult, ...]
    replicas: tuple[ReplicaReport, ...]
    states: tuple[StateReached, ...]
    findings: DataFrame

    @property
    def violations(self) -> int:
        return sum(each.violations for each in self.results) + sum(each.violations for each in self.replicas)


def rows_of_replicas(findings: Sequence[ReplicaFinding]) -> list[tuple[Any, ...]]:
    """As rows of the schema FINDINGS."""
    return [
        (
            str(CheckName.REPLICAS),
            VIOLATION if each.is_violation else NOTE,
            each.source,
            each.file,
            None,
            each.offset,
            list(each.proof_offsets),
            each.subject,
            each.reason,
        )
        for each in findings
    ]
