"""The tables of the state, made again from the records that a stream has written.

Each time they are made in a folder of their own, `.stream/versions/<n>`, which is an audit by itself: the growing
tables are links in it, and `audit.json` comes last. Then the link `.stream/now` swings over to it, at once for all
tables, as what the stream's folder has under their names are links through it. The version before stays for who is
reading it.
"""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from kquorum.spark_replay.audit import AuditResult, Staged, Tables, write_state
from kquorum.spark_replay.audit_manifest import (
    MANIFEST,
    VERSIONS_FOLDER,
    AuditedSource,
    AuditManifest,
    member_of_files,
    write_manifest,
)
from kquorum.spark_replay.decode.bases import StateBase, state_bases
from kquorum.spark_replay.stream import state as states
from kquorum.spark_replay.stream.state import FRESH, StreamState, stream_folder
from kquorum.spark_replay.stream.tables import destination_of
from kquorum.spark_replay.tables.building.registry import SCANNED, TABLES
from kquorum.spark_replay.tables.building.state import counted_records

_KEPTVERSIONS_FOLDER: Final = 2
_NOW: Final = "now"


class _StagedByStream(Staged):
    """The records that the batches staged for the tables of the state, of all files; the relevant ones are selected
    here."""

    def __init__(self, spark: SparkSession, folder: Path, bases: tuple[StateBase, ...]) -> None:
        super().__init__(spark, folder)
        self._bases = bases

    def __getitem__(self, name: str) -> DataFrame:
        frame = super().__getitem__(name)
        return counted_records(frame, self._bases) if name == "partitions" else frame


def refresh(
    spark: SparkSession,
    out: Path,
    state: StreamState,
    *,
    tail_rows: int = 0,
    progress: Callable[[str], None] = lambda step: None,  # noqa: ARG005
) -> AuditResult:
    """Make the tables of the state again and show them. `state` and the growing tables must not change meanwhile;
    `tail_rows` are in `damage` without being the stream's."""
    number = _next_version(out, state)
    version = _empty_version(out, number)
    tables = Tables(spark, version, progress)
    tables.rows.update({name: state.rows.get(kind, 0) for kind, name in SCANNED.items()})
    tables.rows["damage"] += tail_rows
    bases = _bases(state)
    staging = destination_of(out).staging
    assert staging is not None
    write_state(tables, bases, _StagedByStream(spark, staging, bases))
    rows = {name: tables.rows[name] for name in TABLES}
    write_manifest(version, _manifest(state, bases, rows))
    # The order is that of a crash's safety: manifest, then the links that show the version, then the state that names
    # it, and only then the removal of older versions, which readers may have open.
    _show(out, number)
    state.version, state.behind = number, FRESH
    states.write_state(out, state)
    _drop_versions(out, keep_from=number - _KEPTVERSIONS_FOLDER + 1)
    return _result(state, bases, rows)


def _bases(state: StreamState) -> tuple[StateBase, ...]:
    """Whether a snapshot is whole was looked at when it was read: it may be removed by now."""
    by_path = {file.path: file for file in state.files}

    def is_whole(path: str) -> bool:
        file = by_path[path]
        return state.sources[file.source].is_whole[file.name]

    return state_bases(state.files, is_whole)


def _manifest(state: StreamState, bases: tuple[StateBase, ...], rows: dict[str, int]) -> AuditManifest:
    sources = []
    for base in bases:
        of_source = tuple(file for file in state.files if file.source == base.source)
        streamed = state.sources[base.source]
        sources.append(
            AuditedSource(
                source=base.source,
                files=of_source,
                member=member_of_files(of_source),
                base=base,
                start_offset=streamed.start_offset,
                end_offset=streamed.end_offset,
            )
        )
    made_ms = time.time_ns() // 1_000_000
    return AuditManifest(inputs=(state.input,), made_ms=made_ms, sources=tuple(sources), rows=rows)


def _result(state: StreamState, bases: tuple[StateBase, ...], rows: dict[str, int]) -> AuditResult:
    return AuditResult(
        files=state.files,
        bases=bases,
        rows=rows,
        record_types=state.types,
        unknown_records={name: source.unknown_records for name, source in state.sources.items()},
        bounds={name: each.bounds for name, each in state.sources.items() if each.bounds is not None},
    )


def _next_version(out: Path, state: StreamState) -> int:
    """A version without readers: a process that was killed may have shown a version that the state does not know."""
    folder = stream_folder(out)
    names = [path.name for path in (folder / VERSIONS_FOLDER).glob("*")]
    if (now := folder / _NOW).is_symlink():
        names.append(now.readlink().name)
    return 1 + max([state.version, *(int(name) for name in names if name.isdecimal())])


def _empty_version(out: Path, number: int) -> Path:
    version = stream_folder(out) / VERSIONS_FOLDER / str(number)
    shutil.rmtree(version, ignore_errors=True)
    version.mkdir(parents=True)
    for name in SCANNED.values():
        # The tables that grow stand once, beside the versions; each version links to them.
        (version / name).symlink_to(Path("..") / ".." / ".." / name)
    return version


def _show(out: Path, number: int) -> None:
    folder = stream_folder(out)
    _link(folder / _NOW, Path(VERSIONS_FOLDER) / str(number))
    # Every table's link goes through the one link `now`, so one rename shows all tables of the version together.
    through = Path(folder.name) / _NOW
    for name in TABLES.keys() - set(SCANNED.values()):
        _link(out / name, through / name)
    _link(out / MANIFEST, through / MANIFEST)


def _link(path: Path, target: Path) -> None:
    """Make `path` a link to `target`, in the place of another link, at once."""
    if path.is_symlink() and path.readlink() == target:
        return
    # A rename replaces a link atomically; unlink and symlink would leave a moment without the table.
    beside = path.with_name(f".{path.name}.link")
    beside.unlink(missing_ok=True)
    beside.symlink_to(target)
    beside.replace(path)


def _drop_versions(out: Path, *, keep_from: int) -> None:
    for path in (stream_folder(out) / VERSIONS_FOLDER).iterdir():
        if path.name.isdecimal() and int(path.name) < keep_from:
            shutil.rmtree(path, ignore_errors=True)
