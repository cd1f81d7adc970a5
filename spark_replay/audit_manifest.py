"""`audit.json` in a folder of audit tables, which says what the tables were made from, and where their files lie.

The file is written last: a folder without it is no finished audit. Nothing here needs Spark.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from kquorum.private_files import replacing
from kquorum.regular_files import read_regular
from kquorum.spark_replay.decode.bases import StateBase
from kquorum.spark_replay.decode.json_values import check_values
from kquorum.spark_replay.decode.members import Member, member_of
from kquorum.spark_replay.decode.sources import AUDIT_MANIFEST, STREAM_FOLDER, LogFile

MANIFEST: Final = AUDIT_MANIFEST
FORMAT: Final = 1
# Below a stream's STREAM_FOLDER: a folder for each refresh, which is an audit by itself.
VERSIONS_FOLDER: Final = "versions"
# Spark would load any class of that name.
TABLE_FORMATS: Final = ("parquet", "delta")


class NoAudit(Exception):
    """The folder holds no finished audit, or one of a version unknown to us; the message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedSource:
    """One log of the audit: its files, who wrote them, where its state begins, and where the log itself reaches.

    `start_offset` and `end_offset` (exclusive) are of the whole batches in the segments; None without any.
    """

    source: str
    files: tuple[LogFile, ...]
    member: Member
    base: StateBase
    start_offset: int | None
    end_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditManifest:
    """What `audit.json` says. `inputs` are the paths as the user gave them; `rows` are counted for each table."""

    inputs: tuple[str, ...]
    made_ms: int
    sources: tuple[AuditedSource, ...]
    rows: Mapping[str, int]
    table_format: str = "parquet"


def is_audit(folder: Path) -> bool:
    return (folder / MANIFEST).is_file()


def table_folder(folder: Path, name: str) -> Path:
    """Where a table's files lie. Raises NoAudit if a symbolic link leads out of the audit.

    A stream's tables are links which a refresh swings over, and a reader keeps those that it opened. They stay within
    the folder, and those of a version of the stream within the folder of the stream; below them nothing is a link.
    """
    path = _within(folder, name)
    if path.is_dir():
        _check_no_links(path)
    return path


def _within(folder: Path, name: str) -> Path:
    whole = folder.resolve()
    path = (whole / name).resolve()
    if whole.parts[-3:-1] == (STREAM_FOLDER, VERSIONS_FOLDER):
        whole = whole.parents[2]
    if not path.is_relative_to(whole):
        raise NoAudit(f"{folder / name} is a symbolic link to {path}, outside the audit; it is not followed")
    return path


def _check_no_links(folder: Path) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                raise NoAudit(f"{entry.path} is a symbolic link; it is not followed")
            if entry.is_dir():
                _check_no_links(Path(entry.path))


def read_manifest(folder: Path) -> AuditManifest:
    """Raises NoAudit."""
    path = folder / MANIFEST
    try:
        content = json.loads(read_regular(_within(folder, MANIFEST)))
        if content["format"] != FORMAT:
            raise NoAudit(
                f"{path} is of format {content['format']}; this program reads {FORMAT}: build it again"
            )
        return _manifest(content)
    except FileNotFoundError:
        raise NoAudit(f"{folder} holds no finished audit: there is no {MANIFEST} in it") from None
    except OSError as error:
        raise NoAudit(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NoAudit(f"{path} cannot be read: {error!r}; build the audit again") from error


def write_manifest(folder: Path, manifest: AuditManifest) -> None:
    """Whole or not at all."""
    with replacing(folder / MANIFEST) as file:
        file.write(json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1).encode())


def remove_manifest(folder: Path) -> None:
    """Before tables are replaced: from here on the folder is no finished audit."""
    (folder / MANIFEST).unlink(missing_ok=True)


def member_of_files(files: tuple[LogFile, ...]) -> Member:
    """Whose log these files of one source are."""
    return member_of(Path(files[0].path).parent)


def _manifest(content: dict[str, Any]) -> AuditManifest:
    manifest = AuditManifest(
        inputs=tuple(content["inputs"]),
        made_ms=content["made_ms"],
        sources=tuple(_source(each) for each in content["sources"]),
        rows=content["rows"],
        table_format=content["table_format"],
    )
    check_values(manifest)
    if manifest.table_format not in TABLE_FORMATS:
        raise ValueError(f"table_format is {manifest.table_format!r}, not one of {', '.join(TABLE_FORMATS)}")
    return manifest


def _source(content: dict[str, Any]) -> AuditedSource:
    return AuditedSource(
        source=content["source"],
        files=tuple(LogFile.from_json(file) for file in content["files"]),
        member=Member(**content["member"]),
        base=StateBase(**content["base"]),
        start_offset=content["start_offset"],
        end_offset=content["end_offset"],
    )


def shown_files(folder: Path, *, is_deep: bool = False) -> Iterator[Path]:
    """The Parquet files that Spark reads there; hidden ones are not finished."""
    found = folder.rglob("*.parquet") if is_deep else folder.glob("*.parquet")
    return (path for path in found if not path.name.startswith("."))
