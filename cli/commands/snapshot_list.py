"""The work of `snapshot list`."""

from dataclasses import asdict, dataclass
from pathlib import Path

from cli.commands.log_lines import iso_time
from cli.exit_status import ExitStatus
from cli.log_check.folder import MetadataLogFiles, find_logs
from cli.log_check.mapped import MappedFile
from cli.output import console, print_json, print_table
from snapshots.naming import DELETED_SUFFIX, PART_SUFFIX, snapshot_id_of
from snapshots.outline import outline_of


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
    found = list(log.snapshots.values())
    if log.folder is not None:
        found += sorted(
            path for path in log.folder.iterdir() if path.name.endswith((PART_SUFFIX, DELETED_SUFFIX))
        )
    return found


def _listed(log: MetadataLogFiles, path: Path) -> ListedSnapshot:
    snapshot_id = snapshot_id_of(path.name)
    view = MappedFile(path).view
    outline = outline_of(view)
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


def _show(log: MetadataLogFiles, listed: list[ListedSnapshot]) -> None:
    rows = [
        (
            each.file if each.end_offset is None else each.end_offset,
            each.epoch,
            each.size_in_bytes,
            each.records,
            None
            if each.last_contained_log_timestamp_ms is None
            else iso_time(each.last_contained_log_timestamp_ms),
            each.state if each.state != "damaged" else f"damaged: {each.fault}",
        )
        for each in listed
    ]
    title = f"{log.source}: {len(rows)} snapshot{'' if len(rows) == 1 else 's'}"
    columns = ("#end offset", "#epoch", "#bytes", "#records", "last record at", "state")
    if rows:
        print_table(title, columns, rows)
    else:
        console().print(title, style="bold")
