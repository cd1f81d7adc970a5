"""What the product's own `log verify` says of the folder that each node left."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from kquorum.cli.commands.log.files import MetadataLogFiles, the_log
from kquorum.cli.commands.log.verification import verify_log
from kquorum.metadata.log_check.findings import CheckResult, Severity
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.cluster import NODES_FOLDER
from tests.jepsen.core.history import History
from tests.jepsen.core.members import Members

_SHOWN_MAX = 20
_KEPT_OF_A_CHECK = 5
# Of each node. A run of half an hour leaves forty, each larger than the one before, and to compare all of them with the
# replay took a minute.
_SNAPSHOTS_MAX = 4


class Verified:
    """Every file of every node is as it should be: segments, indexes, snapshots (each is what a replay of the
    log leads to), checkpoints, the election's state. A **violation** is invalid. So is **damage**, unless disks were
    hurt on purpose (`disks_were_hurt`): then it is only reported."""

    name = "verified"

    def __init__(self, folder: Path, members: Members, *, disks_were_hurt: bool = False) -> None:
        self._folder = folder / NODES_FOLDER
        self._members = members
        self._disks_were_hurt = disks_were_hurt

    def check(self, history: History) -> Results:
        found: dict[Severity, list[str]] = {Severity.VIOLATION: [], Severity.DAMAGE: []}
        records = snapshots = 0
        for node in self._members.all:
            log = _thinned(the_log(self._folder / str(node) / "data"))
            snapshots += len(log.snapshots)
            verified = verify_log(log, _no_progress, keep=_KEPT_OF_A_CHECK)
            records += verified.facts.record_count
            for result in verified.findings.results():
                for severity, told in found.items():
                    told += (f"node {node}: {words}" for words in _words(result, severity))
        violations, damaged = found[Severity.VIOLATION], found[Severity.DAMAGE]
        is_violated = bool(violations) or (bool(damaged) and not self._disks_were_hurt)
        passed = Verdict.VALID if records else Verdict.UNKNOWN
        return {
            VALID_KEY: Verdict.INVALID if is_violated else passed,
            "records": records,
            "snapshots": snapshots,
            "violation_count": len(violations),
            "violations": violations[:_SHOWN_MAX],
            "damaged_count": len(damaged),
            "damaged": damaged[:_SHOWN_MAX],
        }


def _thinned(log: MetadataLogFiles) -> MetadataLogFiles:
    """Without most of its snapshots, if they are many; the one that a replay of the log begins with stays."""
    ids = list(log.snapshots)
    if len(ids) <= _SNAPSHOTS_MAX:
        return log
    kept = {ids[place * (len(ids) - 1) // (_SNAPSHOTS_MAX - 1)] for place in range(_SNAPSHOTS_MAX)}
    start = log.segments[0].base_offset or 0 if log.segments else 0
    kept.update([each for each in ids if each.end_offset >= start][:1])
    return replace(log, snapshots={each: path for each, path in log.snapshots.items() if each in kept})


def _words(result: CheckResult, severity: Severity) -> Iterator[str]:
    """One line for each finding of this severity, the first few with all that is known."""
    kept = [each for each in result.first if each.severity is severity]
    for each in kept:
        yield f"{result.check}: {each.file}: {each.reason}"
    for _ in range(result.counts.get(severity, 0) - len(kept)):
        yield f"{result.check}: one more"


def _no_progress(done_bytes: int) -> None:
    pass
