"""Logs on a file system that Hadoop reads (`s3a://`, `hdfs://`, `abfs://`, `file://` ...), copied to where all
executors can read them.

The driver lists and copies through Spark's own Hadoop, so every connector and credential of Spark works. Only the files
of the metadata logs are copied, into a folder that the executors see as well: on a local master any folder, on a
cluster one of a shared file system. From there they are read like local logs.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from kquorum.snapshots.naming import BOOTSTRAP_CHECKPOINT_NAME
from kquorum.spark_replay.archive.manifest import MANIFEST
from kquorum.spark_replay.decode.members import META_PROPERTIES, QUORUM_STATE
from kquorum.spark_replay.decode.sources import SEARCH_DEPTH, NoLogFound, holds_log, is_log_name, is_remote

_BESIDE_LOGS: Final = frozenset({META_PROPERTIES, QUORUM_STATE, BOOTSTRAP_CHECKPOINT_NAME, MANIFEST})


class RemoteFailed(Exception):
    """The file system of an address cannot be used; the message says why, and what may help."""


def stage(spark: SparkSession, inputs: Sequence[str], folder: Path) -> list[Path]:
    """The inputs as paths: those that are addresses copied beneath `folder`, each under its own name.

    `folder` is readable by this user only: a metadata log holds credentials. Raises NoLogFound for an address without
    a log, and RemoteFailed.
    """
    if any(is_remote(each) for each in inputs):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return [
        _stage_one(spark, each, folder / f"{number:02d}") if is_remote(each) else Path(each)
        for number, each in enumerate(inputs)
    ]


def _stage_one(spark: SparkSession, address: str, folder: Path) -> Path:
    try:
        remote = _Remote(spark, address)
        name = remote.root.getName() or "root"
        if remote.is_file():
            remote.copy(remote.root, folder / name)
        elif not remote.copy_logs(remote.root, folder / name, SEARCH_DEPTH):
            raise NoLogFound(f"{address} holds no metadata log")
        return folder / name
    except Py4JJavaError as error:
        raise RemoteFailed(f"{address} cannot be read: {_reason(address, error)}") from None


class _Remote:
    """Hadoop's FileSystem of an address."""

    def __init__(self, spark: SparkSession, address: str) -> None:
        jvm: Any = spark._jvm
        configuration = spark._jsc.hadoopConfiguration()
        self._path = jvm.org.apache.hadoop.fs.Path
        self.root = self._path(address)
        self._file_system = self.root.getFileSystem(configuration)

    def is_file(self) -> bool:
        return bool(self._file_system.getFileStatus(self.root).isFile())

    def copy_logs(self, remote: Any, folder: Path, depth: int) -> bool:
        """Copy the logs in `remote` and beneath; whether there are any. Not looked for below a log."""
        statuses = list(self._file_system.listStatus(remote))
        files = {status.getPath().getName(): status for status in statuses if status.isFile()}
        if holds_log(remote.getName(), files.keys()):
            for name, status in sorted(files.items()):
                if is_log_name(name) or name in _BESIDE_LOGS or name.endswith(".index"):
                    self.copy(status.getPath(), folder / name)
            return True
        if depth == 0:
            return False
        folders = {status.getPath().getName(): status for status in statuses if status.isDirectory()}
        found = [
            self.copy_logs(status.getPath(), folder / name, depth - 1)
            for name, status in sorted(folders.items())
            if not name.startswith(".")
        ]
        if any(found):
            for name in sorted(_BESIDE_LOGS & files.keys()):
                self.copy(files[name].getPath(), folder / name)
        return any(found)

    def copy(self, remote: Any, path: Path) -> None:
        """Without the checksum file that Hadoop would put beside it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file_system.copyToLocalFile(False, remote, self._path(f"file://{path.resolve()}"), True)
        path.chmod(0o600)


def _reason(address: str, error: Py4JJavaError) -> str:
    message = str(error.java_exception.toString()).splitlines()[0]
    if "No FileSystem for scheme" in message or "ClassNotFoundException" in message:
        scheme = address.partition("://")[0]
        return (
            f"Spark has no file system {scheme}; put its connector on Spark's class path (for s3a: "
            "PYSPARK_SUBMIT_ARGS='--packages org.apache.hadoop:hadoop-aws:VERSION pyspark-shell', of Spark's Hadoop)"
        )
    return message.partition(": ")[2] or message
