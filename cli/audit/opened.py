"""The tables that a question is put to: those of a finished audit, or made for the occasion from a log."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli.audit.build_run import files_to_audit, total_bytes
from cli.audit.spark import quiet_spark
from cli.errors import CliError
from cli.exit_status import ExitStatus
from spark_replay.audit import build
from spark_replay.audit_folder import AuditManifest, AuditTables, NoAudit, is_audit, open_audit, read_manifest
from spark_replay.sources import LogFile


@contextmanager
def opened(path: Path, *, master: str) -> Iterator[AuditTables]:
    """The audit in the folder `path`; of a log at `path` the tables are made, and are gone with the context.

    Raises CliError for whatever a user can put right. Progress goes to standard error.
    """
    is_built = is_audit(path)
    files = _files_of(path) if is_built else files_to_audit(path)
    with quiet_spark(master=master, size_in_bytes=total_bytes(files), keep_log_in=Path.cwd()) as spark:
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
        yield open_audit(spark.session, folder.resolve())


def chosen_source(manifest: AuditManifest, name: str | None) -> str:
    """The log that `--source` names. Without the option: the only one, or of the voters of one cluster the log that
    reaches farthest. Raises CliError."""
    names = [each.source for each in manifest.sources]
    if name is not None:
        if name not in names:
            raise CliError(f"no log {name} in this audit; it has {', '.join(names)}", status=ExitStatus.USAGE)
        return name
    clusters = {each.member.cluster_id for each in manifest.sources}
    if len(names) > 1 and (len(clusters) > 1 or None in clusters):
        raise CliError(
            f"this audit holds {len(names)} logs, which are not known to be of one cluster: choose one by --source "
            f"({', '.join(names)})",
            status=ExitStatus.USAGE,
        )
    return max(manifest.sources, key=lambda each: (each.end_offset or -1, each.source)).source


def _files_of(path: Path) -> list[LogFile]:
    try:
        return [file for source in read_manifest(path).sources for file in source.files]
    except NoAudit as error:
        raise CliError(str(error), status=ExitStatus.USAGE) from None
