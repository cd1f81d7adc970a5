"""The tables that a question is put to: those of a finished audit, or made for the occasion from a log."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from cli.audit.build_run import files_to_audit, total_bytes
from cli.audit.out_folder import check_name
from cli.audit.spark import quiet_spark
from cli.errors import CliError
from cli.exit_status import ExitStatus
from spark_replay.audit import Progress, build
from spark_replay.audit_folder import AuditManifest, AuditTables, NoAudit, is_audit, read_manifest
from spark_replay.sources import LogFile

# They log each failed query as JSON on standard error; the commands say it in a line of their own.
_PYSPARK_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class OpenedTables(AuditTables):
    """Tables, and where to say what is being done; an empty step takes that line from the terminal."""

    def __init__(self, spark: SparkSession, folder: Path, progress: Progress) -> None:
        super().__init__(spark, folder, read_manifest(folder))
        self.progress = progress
        self._frames = dict[str, DataFrame]()

    def table(self, name: str) -> DataFrame:
        """Each folder is listed once: a question reads some tables several times."""
        if name not in self._frames:
            self._frames[name] = super().table(name)
        return self._frames[name]


@contextmanager
def opened(path: Path, *, master: str) -> Iterator[OpenedTables]:
    """The audit in the folder `path`; of a log at `path` the tables are made, and are gone with the context.

    Raises CliError for whatever a user can put right. Progress goes to standard error.
    """
    for name in _PYSPARK_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    is_built = is_audit(path)
    if is_built:
        check_name(path)
    manifest = _manifest_of(path) if is_built else None
    files = files_to_audit(path) if manifest is None else _files_of(manifest)
    with quiet_spark(
        master=master,
        size_in_bytes=total_bytes(files),
        keep_log_in=Path.cwd(),
        table_format="parquet" if manifest is None else manifest.table_format,
    ) as spark:
        folder = path
        if not is_built:
            folder = spark.work / "tables"
            build(
                spark.session,
                path,
                folder,
                progress=lambda table: spark.progress(f"making the table {table}"),
            )
        spark.progress("asking")
        yield OpenedTables(spark.session, folder.resolve(), spark.progress)


def chosen_source(manifest: AuditManifest, name: str | None) -> str:
    """The log that `--source` names. Without the option: the only one, or of the voters of one cluster the log that
    reaches farthest. Raises CliError."""
    names = [each.source for each in manifest.sources]
    if name is not None:
        return named_source(names, name)
    clusters = {each.member.cluster_id for each in manifest.sources}
    if len(names) > 1 and (len(clusters) > 1 or None in clusters):
        raise CliError(
            f"this audit holds {len(names)} logs, which are not known to be of one cluster: choose one by --source "
            f"({', '.join(names)})",
            status=ExitStatus.USAGE,
        )
    return max(manifest.sources, key=lambda each: (each.end_offset or -1, each.source)).source


def named_source(names: Sequence[str], name: str) -> str:
    """That name, or the only one that begins with it or has it as one of its folders. Raises CliError."""
    if name in names:
        return name
    found = [each for each in names if name in each.split("/")] or [
        each for each in names if each.startswith(name)
    ]
    if name and len(found) == 1:
        return found[0]
    what = (
        f"{name} names {len(found)} logs of this audit" if name and found else f"no log {name} in this audit"
    )
    raise CliError(f"{what}; it has {', '.join(names)}", status=ExitStatus.USAGE)


def check_source(path: Path, name: str | None) -> None:
    """Before Spark is started. Raises CliError for a source that is not there, or must be chosen and is not."""
    if is_audit(path):
        chosen_source(_manifest_of(path), name)
    elif name is not None:
        named_source(sorted({file.source for file in files_to_audit(path)}), name)


def _files_of(manifest: AuditManifest) -> list[LogFile]:
    return [file for source in manifest.sources for file in source.files]


def _manifest_of(path: Path) -> AuditManifest:
    try:
        return read_manifest(path)
    except NoAudit as error:
        raise CliError(str(error), status=ExitStatus.USAGE) from None
