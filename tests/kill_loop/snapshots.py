"""What lies in a node's metadata folder from kill to kill: snapshots, whole or in the making, and segments."""

from pathlib import Path

from kquorum.cli.commands.log.states import load_snapshot
from kquorum.metadata.log_check.findings import Findings, Severity
from kquorum.snapshots.naming import CHECKPOINT_SUFFIX, PART_SUFFIX, snapshot_id_of


class SnapshotFolder:
    """`look` is for the moments when the node does not run."""

    def __init__(self, folder: Path) -> None:
        self.segments: set[str] = set()
        self.snapshots: set[str] = set()
        self.log_start = 0
        self._folder = folder
        self._sound: set[tuple[str, int]] = set()

    def has_parts(self) -> bool:
        """Whether a snapshot is being written, or was when the node died."""
        return any(path.name.endswith(PART_SUFFIX) for path in self._folder.iterdir())

    def look(self) -> list[str]:
        """What is wrong with the snapshots that have their final names; each is read once."""
        bases = sorted(path.name for path in self._folder.glob("*.log"))
        self.segments.update(bases)
        snapshots = sorted(self._folder.glob(f"*{CHECKPOINT_SUFFIX}"))
        self.log_start = max(self.log_start, int(Path(bases[0]).stem) if bases else 0)
        return [f"{path}: {reason}" for path in snapshots for reason in self._check(path)]

    def _check(self, path: Path) -> list[str]:
        snapshot_id = snapshot_id_of(path.name)
        known = (path.name, path.stat().st_ino)
        if snapshot_id is None or known in self._sound:
            return []
        if snapshot_id.end_offset > 0:
            self.snapshots.add(path.name)
        findings = Findings(3)
        load_snapshot(path, snapshot_id, findings)
        reasons = [
            finding.reason
            for result in findings.results()
            for finding in result.first
            if finding.severity > Severity.NOTE
        ]
        if not reasons:
            self._sound.add(known)
        return reasons
