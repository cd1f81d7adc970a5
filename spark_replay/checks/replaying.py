"""The checks that need every record in its turn: each log is replayed by one task, on whatever executor.

The memory this takes is that of the cluster's state, not of its log's length. The rules are those of `log verify`; what
the checks of the tables find as well is reported once, by them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from kquorum.metadata.log_check.findings import Check, Finding, Findings, Severity
from kquorum.metadata.log_check.log_checker import LogChecker
from kquorum.metadata.log_check.snapshot_comparison import LoadedSnapshot, SnapshotLoading
from kquorum.metadata.log_check.state_replay import RecordedHash
from kquorum.metadata.state_hash.image_hash import hash_of_image, state_hash_text
from kquorum.snapshots.checking import SnapshotFault
from kquorum.snapshots.naming import SnapshotId
from kquorum.spark_replay.audit_manifest import AuditedSource
from kquorum.spark_replay.checks.findings import NOTE, VIOLATION, CheckName
from kquorum.spark_replay.decode.files import map_listed
from kquorum.spark_replay.decode.sources import FileKind, LogFile
from kquorum.wire.batch_walk import walk_batches

# Findings listed per check and log; the rest is only counted. For a log in which every record is wrong, this is enough.
KEPT: Final = 10_000

_CHECKS: Final[Mapping[Check, CheckName]] = {
    Check.BATCHES: CheckName.BATCH_RULES,
    Check.RECORDS: CheckName.BATCH_RULES,
    Check.CONTROL: CheckName.BATCH_RULES,
    Check.REPLAY: CheckName.REPLAY,
    Check.TRANSACTIONS: CheckName.TRANSACTIONS,
    Check.AUDIT_NOTES: CheckName.AUDIT_CHAIN,
    Check.SNAPSHOT_FILES: CheckName.SNAPSHOT_FILES,
    Check.SNAPSHOT_NAMES: CheckName.SNAPSHOT_NAMES,
    Check.SNAPSHOT_STATE: CheckName.SNAPSHOT_STATE,
    Check.STATE_HASH: CheckName.STATE_HASH,
}
_COUNTED_BY_RECORDS: Final = (Check.BATCHES, Check.CONTROL)
# What is counted as checked by the replay; of the others the tables tell it.
COUNTED: Final = (
    CheckName.BATCH_RULES,
    CheckName.REPLAY,
    CheckName.SNAPSHOT_FILES,
    CheckName.SNAPSHOT_NAMES,
    CheckName.SNAPSHOT_STATE,
    CheckName.STATE_HASH,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotDigest:
    """`file_hash` is over the bytes; `state_hash` over the image, so it does not depend on the order and form of the
    records. None if the snapshot is damaged."""

    file: str
    file_hash: str
    state_hash: str | None
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The result of replaying one log. `findings` are rows of the schema FINDINGS. If the files can no longer be read,
    `why_not` has the reason and the rest is empty."""

    source: str
    findings: tuple[tuple[Any, ...], ...] = ()
    checked: Mapping[str, int]
    skipped: Mapping[str, tuple[str, ...]]
    snapshots: tuple[SnapshotDigest, ...] = ()
    state_offset: int | None = None
    state_hash: str | None = None
    why_not: str | None = None


def replay_source(
    source: AuditedSource, recorded: Sequence[RecordedHash], *, only_snapshots: bool = False
) -> Replayed:
    """Replay the log from its files, which must be those that were audited; or only read its snapshots."""
    try:
        views = {file.name: _view(file) for file in source.files if file.kind is not FileKind.BOOTSTRAP}
    except OSError as error:
        return Replayed(source=source.source, checked={}, skipped={}, why_not=_why(error))
    replay = _SourceReplay(source, views)
    return replay.read_snapshots() if only_snapshots else replay.run(recorded)


def _view(file: LogFile) -> memoryview:
    """As many bytes as were audited: a running node appends. Raises OSError for a file that is shorter now."""
    view = map_listed(file.path)
    if len(view) < file.size_in_bytes:
        raise OSError(0, f"{file.name} is shorter than when it was audited")
    return view[: file.size_in_bytes]


def _why(error: OSError) -> str:
    named = f"{Path(error.filename).name}: " if error.filename else ""
    return f"the log's files cannot be read any more ({named}{error.strerror or error})"


class _SourceReplay:
    def __init__(self, source: AuditedSource, views: Mapping[str, memoryview]) -> None:
        self._source = source
        self._views = views
        self._findings = Findings(KEPT)
        self._digests: dict[str, SnapshotDigest] = {}

    def read_snapshots(self) -> Replayed:
        for snapshot_id in sorted(self._snapshot_ids(), key=lambda each: each.order):
            self._load(snapshot_id)
        return Replayed(source=self._source.source, checked={}, skipped={}, snapshots=self._sorted_digests())

    def run(self, recorded: Sequence[RecordedHash]) -> Replayed:
        segments = sorted(
            (file for file in self._source.files if file.kind is FileKind.LOG),
            key=lambda file: file.base_offset or 0,
        )
        snapshot_ids = self._snapshot_ids()
        checker = LogChecker(self._findings, snapshot_ids, self._load, recorded=recorded)
        for segment in segments:
            checker.begin_segment(segment.name, segment.base_offset, is_last=segment is segments[-1])
            # One segment after the other, in one task: each record's replay needs the state that the record before it
            # left.
            for found in walk_batches(self._views[segment.name]):
                checker.take(found)
            checker.end_segment()
        checker.finish()
        return self._replayed(checker)

    def _replayed(self, checker: LogChecker) -> Replayed:
        replay, end = checker.comparison.replay, checker.facts.end_offset
        state_hash, state_offset = None, None
        # A state that lacks a record has another hash than the nodes, which would look like a difference between them.
        if replay is not None and end is not None and not replay.fault_count and not replay.unknown_count:
            started = replay.transaction_start_offset
            state_hash = state_hash_text(hash_of_image(replay.image))
            # While a transaction is open, the image stands before it, and so does the hash.
            state_offset = (end if started is None else started) - 1
        checked = dict.fromkeys(map(str, COUNTED), 0)
        skipped: dict[str, tuple[str, ...]] = {}
        for result in self._findings.results():
            name = _CHECKS.get(result.check)
            if name in COUNTED:
                checked[name] += 0 if result.check in _COUNTED_BY_RECORDS else result.checked
                skipped[name] = (*skipped.get(name, ()), *result.skipped)
        return Replayed(
            source=self._source.source,
            findings=tuple(self._rows()),
            checked=checked,
            skipped=skipped,
            snapshots=self._sorted_digests(),
            state_offset=state_offset,
            state_hash=state_hash,
        )

    def _snapshot_ids(self) -> tuple[SnapshotId, ...]:
        return tuple(
            SnapshotId(file.end_offset, file.epoch)
            for file in self._source.files
            if file.end_offset is not None and file.epoch is not None
        )

    def _sorted_digests(self) -> tuple[SnapshotDigest, ...]:
        return tuple(self._digests[name] for name in sorted(self._digests))

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        for result in self._findings.results():
            name = _CHECKS.get(result.check)
            for each in result.first if name is not None else ():
                yield self._row(str(name), each)

    def _row(self, name: str, finding: Finding) -> tuple[Any, ...]:
        """In a snapshot an offset is the number of a record: the log's offset is that of its name."""
        snapshot = next(
            (
                file
                for file in self._source.files
                if file.name == finding.file and file.end_offset is not None
            ),
            None,
        )
        offset = finding.offset if snapshot is None else snapshot.end_offset
        severity = NOTE if finding.severity is Severity.NOTE else VIOLATION
        return (
            name,
            severity,
            self._source.source,
            finding.file or None,
            finding.position,
            offset,
            [] if offset is None else [offset],
            None if snapshot is None else f"snapshot {snapshot.end_offset}-{snapshot.epoch}",
            finding.reason,
        )

    def _load(self, snapshot_id: SnapshotId) -> LoadedSnapshot:
        file = next(
            each
            for each in self._source.files
            if (each.end_offset, each.epoch) == (snapshot_id.end_offset, snapshot_id.epoch)
        )
        view = self._views[file.name]

        def finding(severity: Severity, fault: SnapshotFault) -> None:
            self._findings.add(
                Finding(
                    check=Check.SNAPSHOT_FILES,
                    severity=severity,
                    file=file.name,
                    reason=fault.reason,
                    remedy="",
                    position=fault.position,
                    offset=fault.number,
                )
            )

        self._findings.checked(Check.SNAPSHOT_FILES)
        loading = SnapshotLoading(
            lambda fault: finding(Severity.VIOLATION, fault), lambda fault: finding(Severity.NOTE, fault)
        )
        loaded = loading.load(view, snapshot_id)
        self._digests[file.name] = SnapshotDigest(
            file=file.name,
            file_hash=sha256(view).hexdigest(),
            state_hash=state_hash_text(hash_of_image(loaded.image)) if loaded.is_sound else None,
            records=loaded.record_count,
        )
        return loaded
