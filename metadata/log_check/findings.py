"""What an examination found: checks, each with how much it looked at, and findings with place and remedy."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum


class Check(StrEnum):
    """In the order in which they are shown; the value is the name that a user sees."""

    SEGMENTS = "segments"
    BATCHES = "batches"
    OFFSETS = "offsets"
    EPOCHS = "leader epochs"
    RECORDS = "records"
    CONTROL = "control records"
    METADATA = "metadata records"
    REPLAY = "replay"
    TRANSACTIONS = "transactions"
    AUDIT_NOTES = "audit notes"
    OFFSET_INDEX = "offset index"
    TIME_INDEX = "time index"
    RECOVERY_POINT = "recovery-point"
    EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
    QUORUM_STATE = "quorum-state"
    PARTITION_METADATA = "partition.metadata"
    META_PROPERTIES = "meta.properties"
    BOOTSTRAP = "bootstrap.checkpoint"
    LEFTOVERS = "leftover files"
    LOG_START = "log start"
    SNAPSHOT_FILES = "snapshot files"
    SNAPSHOT_NAMES = "snapshot names"
    SNAPSHOT_STATE = "snapshot = replay"
    STATE_HASH = "state hash"


class Severity(IntEnum):
    """NOTE: lawful, but worth knowing. VIOLATION: readable, but a rule is broken. DAMAGE: cannot be read."""

    NOTE = 0
    VIOLATION = 1
    DAMAGE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`position` counts bytes in `file`; `offset` is a log offset, in a snapshot a record's number."""

    check: Check
    severity: Severity
    file: str
    reason: str
    remedy: str
    position: int | None = None
    offset: int | None = None


@dataclass(slots=True)
class CheckResult:
    """`first` holds the first findings, `counts` all, by severity; `skipped` says what was not looked at and why."""

    check: Check
    checked: int = 0
    counts: dict[Severity, int] = field(default_factory=dict)
    first: list[Finding] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    skipped_count: int = 0

    @property
    def worst(self) -> Severity | None:
        return max(self.counts, default=None)


class Findings:
    """Collects; keeps of each check the first few findings, the gravest before notes, and counts the rest."""

    def __init__(self, keep: int = 5) -> None:
        self._keep = keep
        self._results: dict[Check, CheckResult] = {}

    def checked(self, check: Check, count: int = 1) -> None:
        self._result(check).checked += count

    def skip(self, check: Check, reason: str) -> None:
        result = self._result(check)
        result.skipped_count += 1
        if len(result.skipped) < self._keep:
            result.skipped.append(reason)

    def add(self, finding: Finding) -> None:
        result = self._result(finding.check)
        result.counts[finding.severity] = result.counts.get(finding.severity, 0) + 1
        if len(result.first) < self._keep:
            result.first.append(finding)
        elif finding.severity > Severity.NOTE:
            self._displace_note(result.first, finding)

    def results(self) -> Sequence[CheckResult]:
        return [self._results[check] for check in Check if check in self._results]

    @property
    def worst(self) -> Severity | None:
        return max(
            (result.worst for result in self._results.values() if result.worst is not None), default=None
        )

    def count(self, check: Check, severity: Severity) -> int:
        return self._results[check].counts.get(severity, 0) if check in self._results else 0

    def _result(self, check: Check) -> CheckResult:
        return self._results.setdefault(check, CheckResult(check))

    @staticmethod
    def _displace_note(first: list[Finding], finding: Finding) -> None:
        for index, known in enumerate(first):
            if known.severity is Severity.NOTE:
                first[index] = finding
                return
