"""The tables of an audit in Spark, for `audit check` and for questions that Spark answers; and those of a log."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from kquorum.cli.commands.audit.answers import Progress
from kquorum.cli.commands.audit.build import numbered
from kquorum.cli.commands.audit.inputs import check_name, files_to_audit, manifest_of, total_bytes
from kquorum.cli.commands.audit.spark import QuietSpark, quiet_spark
from kquorum.spark_replay.audit import build
from kquorum.spark_replay.audit_folder import AuditTables
from kquorum.spark_replay.audit_manifest import is_audit, read_manifest
from kquorum.spark_replay.engine.frame import Frame
from kquorum.spark_replay.engine.on_spark import SparkFrame

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

    def keep(self, frame: Frame) -> Frame:
        """The same rows, computed once for all that is asked of these tables."""
        assert isinstance(frame, SparkFrame)
        return SparkFrame(frame.spark.persist())


@contextmanager
def opened(path: Path, *, master: str) -> Iterator[OpenedTables]:
    """The audit in the folder `path`; of a log at `path` the tables are made, and are gone with the context.

    Raises CliError for whatever a user can put right. Progress goes to standard error.
    """
    if not is_audit(path):
        with _built(path, master=master) as (spark, folder):
            spark.progress("asking")
            yield OpenedTables(spark.session, folder, spark.progress)
        return
    check_name(path)
    manifest = manifest_of(path)
    with _quiet(
        master, sum(total_bytes(source.files) for source in manifest.sources), manifest.table_format
    ) as spark:
        spark.progress("asking")
        yield OpenedTables(spark.session, path.resolve(), spark.progress)


@contextmanager
def built(path: Path, *, master: str) -> Iterator[tuple[Path, Progress]]:
    """The folder with the tables of the log at `path`, gone with the context. Raises CliError."""
    with _built(path, master=master) as (spark, folder):
        yield folder, spark.progress


@contextmanager
def _built(path: Path, *, master: str) -> Iterator[tuple[QuietSpark, Path]]:
    with _quiet(master, total_bytes(files_to_audit(path)), "parquet") as spark:
        folder = (spark.work / "tables").resolve()
        build(
            spark.session,
            path,
            folder,
            progress=numbered(spark.progress),
        )
        yield spark, folder


@contextmanager
def _quiet(master: str, size_in_bytes: int, table_format: str) -> Iterator[QuietSpark]:
    for name in _PYSPARK_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    with quiet_spark(
        master=master, size_in_bytes=size_in_bytes, keep_log_in=Path.cwd(), table_format=table_format
    ) as spark:
        yield spark
