"""What `kquorum doctor` finds."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum, StrEnum


class Severity(IntEnum):
    """NOTE: worth knowing. WARNING: nothing is broken yet. PROBLEM: something is broken, or will be within hours."""

    NOTE = 0
    WARNING = 1
    PROBLEM = 2

    @property
    def word(self) -> str:
        return self.name.lower()


class Check(StrEnum):
    """The checks, in the order in which they are shown."""

    CONFIG = "config"
    NODES = "nodes"
    QUORUM = "quorum"
    CLOCKS = "clocks"
    VERSIONS = "versions"
    BROKERS = "brokers"
    PARTITIONS = "partitions"
    STATE = "state hash"
    DISKS = "disks"
    DESCRIPTORS = "open files"
    CERTIFICATES = "certificates"
    FOLDERS = "folders"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`place` is a node, a file or a partition; `remedy` says what to do, with a command where there is one."""

    check: Check
    severity: Severity
    place: str
    found: str
    remedy: str


@dataclass(slots=True)
class Report:
    """`done` says of each check what was looked at, `skipped` why it was not."""

    findings: list[Finding] = field(default_factory=list)
    done: dict[Check, str] = field(default_factory=dict)
    skipped: dict[Check, str] = field(default_factory=dict)

    def add(self, check: Check, looked_at: str, found: Iterable[Finding]) -> None:
        self.done[check] = looked_at
        self.findings.extend(found)

    def skip(self, check: Check, why: str) -> None:
        self.skipped[check] = why

    @property
    def worst(self) -> Severity:
        return max((each.severity for each in self.findings), default=Severity.NOTE)

    @property
    def in_order(self) -> Sequence[Finding]:
        """The worst first, and then by check."""
        order = {check: index for index, check in enumerate(Check)}
        return sorted(self.findings, key=lambda each: (-each.severity, order[each.check], each.place))

    def of(self, check: Check) -> list[Finding]:
        return [each for each in self.findings if each.check is check]

    def as_json(self) -> dict[str, object]:
        return {
            "verdict": VERDICTS[self.worst],
            "findings": [
                asdict(each) | {"check": each.check.value, "severity": each.severity.word}
                for each in self.in_order
            ],
            "checked": {check.value: looked_at for check, looked_at in self.done.items()},
            "not_checked": {check.value: why for check, why in self.skipped.items()},
        }


VERDICTS = {Severity.NOTE: "well", Severity.WARNING: "warnings", Severity.PROBLEM: "problems"}
