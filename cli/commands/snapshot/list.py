"""The work of `snapshot list`."""

import re
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from kquorum.cli.commands.log.dump_lines import iso_time
from kquorum.cli.commands.log.files import FileCopy, MetadataLogFiles, find_logs, misplaced_snapshots
from kquorum.cli.failures import ExitStatus
from kquorum.cli.output import console, print_json, print_table
from kquorum.snapshots.naming import DELETED_SUFFIX, PART_SUFFIX, snapshot_id_of
from kquorum.snapshots.outline import SnapshotOutline, outline_of

_ID = re.compile(r"(\d{20})-(\d{10})")
_OTHER_STATES = ("unfinished", "being deleted")


@dataclass(frozen=True, slots=True)
class ListedSnapshot:
    """`state` is `whole`, `unfinished`, `being deleted` or `damaged`; `fault` says why it is damaged."""

    source: str
    file: str
    end_offset: int | None
    epoch: int | None
    size_in_bytes: int
    records: int
    last_contained_log_timestamp_ms: int | None
    kraft_version: int
    voters: int | None
    state: str
    fault: str | None


def list_snapshots(path: Path, *, as_json: bool) -> ExitStatus:
    """DAMAGED_INPUT when one that ought to be whole is not; raises CliError where there is no log."""
    logs = find_logs(path)
    listed = [_listed(log, file) for log in logs for file in _files(log)]
    if as_json:
        print_json([asdict(each) for each in listed])
    else:
        for log in logs:
            _show(log, [each for each in listed if each.source == log.source])
    is_damaged = any(each.state == "damaged" for each in listed)
    return ExitStatus.DAMAGED_INPUT if is_damaged else ExitStatus.OK


def _files(log: MetadataLogFiles) -> list[Path]:
    found = [*log.snapshots.values(), *misplaced_snapshots(log)]
    if log.folder is not None:
        found += sorted(
            path for path in log.folder.iterdir() if path.name.endswith((PART_SUFFIX, DELETED_SUFFIX))
        )
    return found


def _listed(log: MetadataLogFiles, path: Path) -> ListedSnapshot:
    snapshot_id = snapshot_id_of(path.name)
    view, outline = _read(path)
    if path.name.endswith(PART_SUFFIX):
        state = "unfinished"
    elif path.name.endswith(DELETED_SUFFIX):
        state = "being deleted"
    else:
        state = "whole" if outline.fault is None else "damaged"
    return ListedSnapshot(
        source=log.source,
        file=path.name,
        end_offset=None if snapshot_id is None else snapshot_id.end_offset,
        epoch=outline.epoch if snapshot_id is None else snapshot_id.epoch,
        size_in_bytes=len(view),
        records=outline.record_count,
        last_contained_log_timestamp_ms=outline.last_contained_log_timestamp_ms,
        kraft_version=outline.kraft_version,
        voters=outline.voter_count,
        state=state,
        fault=outline.fault,
    )


def _read(path: Path) -> tuple[memoryview, SnapshotOutline]:
    """The bytes and what they say; none where the system does not let us read them."""
    try:
        view = FileCopy(path).view
    except IsADirectoryError:
        return memoryview(b""), SnapshotOutline(fault="it is a folder, not a file")
    except OSError as error:
        return memoryview(b""), SnapshotOutline(fault=f"it cannot be read: {error.strerror or error}")
    return view, outline_of(view)


def _show(log: MetadataLogFiles, listed: list[ListedSnapshot]) -> None:
    rows = [
        (
            *_id_cells(each),
            each.size_in_bytes,
            each.records,
            None
            if each.last_contained_log_timestamp_ms is None
            else iso_time(each.last_contained_log_timestamp_ms),
            each.state if each.state != "damaged" else f"damaged: {each.fault}",
        )
        for each in listed
    ]
    columns = ("#end offset", "#epoch", "#bytes", "#records", "last record at", "~state")
    title = f"{log.source}: {_counted(listed)}"
    if rows:
        print_table(title, columns, rows, spare=("#bytes", "#records"))
    else:
        console().print(title, style="bold")


def _id_cells(listed: ListedSnapshot) -> tuple[int | None, int | None]:
    """End offset and epoch; a file half written or half deleted has them at the begin of its longer name."""
    match = _ID.match(listed.file)
    return (listed.end_offset, listed.epoch) if match is None else (int(match[1]), int(match[2]))


def _counted(listed: list[ListedSnapshot]) -> str:
    """`2 snapshots, 1 unfinished`: only what has a snapshot's name is one."""
    counts = Counter(each.state for each in listed)
    count = counts["whole"] + counts["damaged"]
    others = [f"{counts[state]} {state}" for state in _OTHER_STATES if counts[state]]
    if counts["damaged"]:
        others.insert(0, f"{counts['damaged']} of them damaged")
    return ", ".join([f"{count} snapshot{'' if count == 1 else 's'}", *others])
