"""Runs all checks over the files of one metadata log."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cli.log_check.folder import MetadataLogFiles
from cli.log_check.log_end import has_come_up_to
from cli.log_check.mapped import MappedFile
from cli.log_check.side_files import SideFiles
from cli.log_check.snapshot_files import add_unreadable, check_misplaced, load_if_readable
from metadata.log_check import remedies
from metadata.log_check.findings import Check, Finding, Findings, Severity
from metadata.log_check.indexes import IndexFault, IndexWalk, OffsetIndexWalk, TimeIndexWalk
from metadata.log_check.log_checker import LogChecker, LogFacts
from metadata.log_check.snapshot_comparison import LoadedSnapshot
from snapshots.naming import BOOTSTRAP_SNAPSHOT_ID, SnapshotId
from spark_replay.sources import LogFile
from wire.batch_walk import walk_batches

Advance = Callable[[int], None]
_ADVANCE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Verified:
    log: MetadataLogFiles
    facts: LogFacts
    findings: Findings


def verify_log(log: MetadataLogFiles, advance: Advance, *, keep: int) -> Verified:
    """`advance` is told of bytes as they are done; `keep` findings of each check are kept.

    Files that cannot be read are findings, the others are checked all the same. Raises OSError for the folder.
    """
    findings = Findings(keep)

    def load(snapshot_id: SnapshotId) -> LoadedSnapshot | None:
        path = log.snapshots[snapshot_id]
        loaded = load_if_readable(path, snapshot_id, findings)
        with suppress(FileNotFoundError):
            advance(path.stat().st_size)
        return loaded

    def has_grown_to(offset: int) -> bool:
        return log.folder is not None and has_come_up_to(log.folder, offset)

    checker = LogChecker(findings, tuple(log.snapshots), load, has_grown_to)
    # Before the log: a running node moves its recovery point after what that tells of is there.
    side_files = None if log.folder is None else SideFiles(log, log.folder, checker.facts, findings)
    check_misplaced(log, findings)
    for segment in log.segments:
        _check_segment(checker, log, segment, findings, advance)
    checker.finish()
    if log.bootstrap is not None:
        load_if_readable(log.bootstrap, BOOTSTRAP_SNAPSHOT_ID, findings, Check.BOOTSTRAP)
    if side_files is not None:
        side_files.check()
    return Verified(log, checker.facts, findings)


def _check_segment(
    checker: LogChecker, log: MetadataLogFiles, segment: LogFile, findings: Findings, advance: Advance
) -> None:
    # The indexes first: a running node writes the log before them, so what they name must be in the log then.
    indexes = [] if log.folder is None else _indexes(Path(segment.path), segment.base_offset or 0, findings)
    checker.begin_segment(
        segment.name,
        segment.base_offset,
        is_last=segment is log.segments[-1],
        indexes=[walk for walk, _ in indexes],
    )
    try:
        content = MappedFile(Path(segment.path))
    except FileNotFoundError:
        raise
    except OSError as error:
        checker.pass_over(f"it cannot be read: {error.strerror or error}")
        checker.end_segment()
        return
    told = 0
    for found in walk_batches(content.view):
        checker.take(found)
        if found.position - told >= _ADVANCE_BYTES:
            advance(found.position - told)
            told = found.position
            content.release_to(told)
    checker.end_segment()
    advance(len(content.view) - told)
    for walk, check in indexes:
        findings.checked(check, walk.entry_count)


def _indexes(segment: Path, base_offset: int, findings: Findings) -> list[tuple[IndexWalk, Check]]:
    """The index files that lie beside a segment; they may be missing."""
    made: list[tuple[IndexWalk, Check]] = []
    for suffix, check, walk in (
        (".index", Check.OFFSET_INDEX, OffsetIndexWalk),
        (".timeindex", Check.TIME_INDEX, TimeIndexWalk),
    ):
        path = segment.with_suffix(suffix)
        try:
            view = MappedFile(path).view
        except FileNotFoundError:
            findings.skip(check, f"{path.name}: there is none")
        except OSError as error:
            add_unreadable(findings, check, path.name, error, then=remedies.REBUILT)
        else:
            made.append((walk(view, base_offset, _reporter(path.name, check, findings)), check))
    return made


def _reporter(file: str, check: Check, findings: Findings) -> Callable[[IndexFault], None]:
    def report(fault: IndexFault) -> None:
        findings.add(
            Finding(
                check=check,
                severity=Severity.VIOLATION,
                file=file,
                reason=fault.reason,
                remedy=remedies.REBUILT,
                position=fault.position,
                offset=fault.offset,
            )
        )

    return report
