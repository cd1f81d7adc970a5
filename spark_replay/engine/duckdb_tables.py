"""The tables of a finished audit in DuckDB, which reads their Parquet files in this process."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb

from kquorum.spark_replay.audit_manifest import (
    AuditedSource,
    AuditManifest,
    NoAudit,
    read_manifest,
    shown_files,
    table_folder,
)
from kquorum.spark_replay.engine.frame import Frame
from kquorum.spark_replay.engine.on_duckdb import DuckFrame, duck_type, literal_text, quoted_name

# DuckDB takes a path for a pattern; a set of one character stands for that character.
_PATTERN: Final = str.maketrans({"[": "[[]", "*": "[*]", "?": "[?]"})
# A query must not fetch code from the network, nor find the variables of this program.
_SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}


class DuckTables:
    """The tables as `Tables`; each is a view, made when it is first asked for."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: Path, manifest: AuditManifest) -> None:
        self.connection = connection
        self.folder = folder
        self.manifest = manifest
        self.progress: Callable[[str], None] = lambda step: None  # noqa: ARG005
        self._frames = dict[str, DuckFrame]()
        self._files = dict[str, list[str]]()

    def frame(self, name: str) -> DuckFrame:
        """Raises NoAudit for a table that the audit lacks, and `duckdb.Error` for files that are no Parquet files."""
        if name not in self._frames:
            self._frames[name] = self._view(name)
        return self._frames[name]

    def values(self, rows: Sequence[tuple[Any, ...]], columns: Mapping[str, str]) -> DuckFrame:
        parameters = ", ".join(f"CAST(? AS {duck_type(kind)})" for kind in columns.values())
        names = ", ".join(map(quoted_name, columns))
        name = quoted_name(f"values_{len(self._frames)}_{id(rows)}")
        types = ", ".join(f"{quoted_name(each)} {duck_type(kind)}" for each, kind in columns.items())
        self.connection.execute(f"CREATE OR REPLACE TABLE {name} ({types})")
        if rows:
            self.connection.executemany(f"INSERT INTO {name} ({names}) VALUES ({parameters})", list(rows))
        return DuckFrame(self.connection, name, list(columns))

    def keep(self, frame: Frame) -> Frame:
        """The same rows, computed once for all that is asked of these tables."""
        assert isinstance(frame, DuckFrame)
        return frame.as_table()

    def source(self, name: str) -> AuditedSource:
        (found,) = (each for each in self.manifest.sources if each.source == name)
        return found

    def shut(self, source: str | None = None) -> None:
        """From here on queries reach the files of the audit's tables, and no others. All tables are there by name, with
        the rows of one log or of all."""
        for name in self.manifest.rows:
            self._frames[name] = self._view(name, source)
        paths = ", ".join(literal_text(path) for files in self._files.values() for path in files)
        for setting in (
            f"allowed_paths = [{paths}]",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            self.connection.execute(f"SET {setting}")

    def _view(self, name: str, source: str | None = None) -> DuckFrame:
        folder = table_folder(self.folder, name)
        files = sorted(map(str, shown_files(folder, is_deep=True)))
        if not files:
            raise NoAudit(f"the audit {self.folder} has no table {name}; build it again")
        self._files[name] = files
        is_split = all(Path(file).parent != folder for file in files)
        options = ", hive_partitioning = true, hive_types = {'source': VARCHAR}" if is_split else ""
        paths = ", ".join(literal_text(file.translate(_PATTERN)) for file in files)
        relation = f"read_parquet([{paths}]{options or ', hive_partitioning = false'})"
        found = self.connection.sql(f"SELECT * FROM {relation}").columns
        # Spark's readers get `source` first, which is in the names of the folders here.
        columns = ["source", *(each for each in found if each != "source")] if is_split else list(found)
        listed = ", ".join(map(quoted_name, columns))
        chosen = "" if source is None else f" WHERE source = {literal_text(source)}"
        self.connection.execute(
            f"CREATE OR REPLACE VIEW {quoted_name(name)} AS SELECT {listed} FROM {relation}{chosen}"
        )
        return DuckFrame(self.connection, quoted_name(name), columns)


@contextmanager
def open_in_duckdb(folder: Path) -> Iterator[DuckTables]:
    """The audit in `folder`, for as long as the context lasts. Raises NoAudit."""
    manifest = read_manifest(folder)
    with tempfile.TemporaryDirectory(prefix="kquorum-audit-", ignore_cleanup_errors=True) as spill:
        connection = duckdb.connect(":memory:", config={**_SETTINGS, "temp_directory": spill})
        try:
            yield DuckTables(connection, folder, manifest)
        finally:
            connection.close()
