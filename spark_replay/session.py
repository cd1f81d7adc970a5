"""A Spark session that keeps quiet, and whose workers are this very interpreter with this project on its path."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

import kquorum
from kquorum.spark_replay.java_process import start_java_as_group
from kquorum.spark_replay.source import KraftLogDataSource

# The folder that the package kquorum stands in: that of the sources, or site-packages.
PROJECT = Path(kquorum.__file__).resolve().parent.parent
LOCAL_MASTER = "local[*]"

_QUIET_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd HH:mm:ss} %p %c{1}: %m%n
"""

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    # Of shuffled rows, compressed: some 150 MB to be sorted.
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "8192",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.ansi.enabled": "true",
}

# With `local[...]` the executors are in the driver's process.
DRIVER_MEMORY = "2g"

SMALL_SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# Those of them that a running session can change: no SQL of its own makes up for compiling a plan for few rows.
SMALL_PLANS = {key: value for key, value in SMALL_SETTINGS.items() if key != "spark.sql.codegen.factoryMode"}
SMALL_ROWS = 50_000
ROWS_A_PIECE = 150_000
_PIECES = "spark.sql.shuffle.partitions"
SMALL_JAVA_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def start_session(
    work_folder: Path,
    *,
    master: str = LOCAL_MASTER,
    small: bool = False,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark with its noise going to `work_folder/spark.log`, and register the data source.

    `small` is for logs whose tables are made faster than Java would be done compiling for them; `settings` are Spark's,
    and go before ours.

    The Java process inherits its standard error when it is started, so it is pointed at the file just for that
    moment. Java itself must have been found before: Spark's own message for its absence is no help.
    """
    log4j = work_folder / "log4j2.properties"
    log4j.write_text(_QUIET_LOG4J, encoding="utf-8")
    _give_workers_this_python()
    builder = SparkSession.builder.appName("kquorum audit").master(master)
    ours = SETTINGS | _local_settings(master, work_folder) | (SMALL_SETTINGS if small else {})
    for key, value in {**ours, **(settings or {})}.items():
        builder = builder.config(key, value)
    java_options = [f"-Dlog4j2.configurationFile={log4j.as_uri()}", *(SMALL_JAVA_OPTIONS if small else ())]
    builder = builder.config("spark.driver.extraJavaOptions", " ".join(java_options))
    start_java_as_group()
    with _standard_error_to(work_folder / "spark.log"):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    session.dataSource.register(KraftLogDataSource)
    return session


@contextmanager
def plans_for(spark: SparkSession, rows: int) -> Iterator[None]:
    """Within, plans are made for about so many rows.

    For few, compiling a plan takes longer than running it as it is. Many are shuffled into pieces that can be sorted in
    memory, the more the larger the log, so that its length does not decide how much memory that takes.
    """
    settings = dict(SMALL_PLANS) if rows <= SMALL_ROWS else {}
    if rows > ROWS_A_PIECE * int(spark.conf.get(_PIECES) or 1):
        settings[_PIECES] = str(rows // ROWS_A_PIECE + 1)
    before = {key: spark.conf.get(key) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, earlier in before.items():
            spark.conf.set(key, str(earlier))


def _local_settings(master: str, work_folder: Path) -> dict[str, str]:
    settings = {
        "spark.sql.warehouse.dir": str(work_folder / "warehouse"),
        "spark.pyspark.python": sys.executable,
        "spark.executorEnv.PYTHONSAFEPATH": "1",
    }
    if master.startswith("local"):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(work_folder),
            "spark.driver.memory": DRIVER_MEMORY,
            "spark.sql.shuffle.partitions": str(max(4, 2 * (os.cpu_count() or 1))),
        }
    return settings


def _give_workers_this_python() -> None:
    """Spark's Python workers find their interpreter and the project through the environment of the Java process.

    Spark starts them with `python -m`, which puts the current folder first on the path of modules. An operator may
    stand in the folder of a log from elsewhere, and a `heapq.py` in it would run: so the workers take the safe path.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONSAFEPATH"] = "1"
    paths = [str(PROJECT), *filter(os.path.isabs, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))


@contextmanager
def _standard_error_to(path: Path) -> Iterator[None]:
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("ab") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
