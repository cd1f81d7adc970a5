"""Spark as the commands use it: started quietly, its failures told in one line, its own log kept only then."""

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cli.audit.delta_jars import jars_folder
from cli.audit.spark_interrupts import SparkInterrupts, spark_interrupts
from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.java import check_java
from cli.output import remark
from spark_replay.audit import Progress
from spark_replay.delta import DELTA, DeltaMissing, delta_settings
from spark_replay.session import start_session

SPARK_LOG = "spark.log"
SMALL_BYTES = 64 * 1024 * 1024
_EXCEPTION_LINE = re.compile(r"[\w.]*(Error|Exception|Found): ")


@dataclass(frozen=True, slots=True)
class QuietSpark:
    """A session, a folder that is gone with it, and where to say what is being done."""

    session: SparkSession
    work: Path
    progress: Progress


@dataclass(slots=True)
class _Shared:
    """A session that several commands of this process use; it may still be starting. `is_ended`: by an interrupt, with
    its Java, which nothing can be asked of any more."""

    session: Future[SparkSession]
    work: Path
    is_ended: bool = False


_shared: ContextVar[_Shared | None] = ContextVar("shared_spark", default=None)


@contextmanager
def shared_spark(*, master: str, size_in_bytes: int) -> Iterator[None]:
    """Within, the commands of this process share one session, made for logs of that size in all and for Parquet tables.

    It starts in a thread meanwhile; the first command waits for it, and fails with it.
    """
    check_java()
    with (
        tempfile.TemporaryDirectory(prefix="kquorum-audit-", ignore_cleanup_errors=True) as work,
        ThreadPoolExecutor(1, thread_name_prefix="kquorum-spark") as starter,
    ):
        session = starter.submit(start_session, Path(work), master=master, small=size_in_bytes < SMALL_BYTES)
        shared = _Shared(session, Path(work))
        token = _shared.set(shared)
        try:
            yield
        finally:
            _shared.reset(token)
            if session.exception() is None and not shared.is_ended:
                session.result().stop()


@contextmanager
def quiet_spark(
    *, master: str, size_in_bytes: int, keep_log_in: Path, table_format: str = "parquet"
) -> Iterator[QuietSpark]:
    """Spark for as long as the context lasts. `size_in_bytes` is of the logs that it is for: small ones need no JIT.
    `table_format` is of the tables that it is to write or read.

    Raises CliError for a missing Java and for whatever Spark fails with, whose log then lies in `keep_log_in`.
    """
    check_java()
    settings = _settings_for(table_format)
    shared = _shared.get()
    with (
        tempfile.TemporaryDirectory(prefix="kquorum-audit-", ignore_cleanup_errors=True) as work,
        _progress() as progress,
        spark_interrupts() as interrupts,
        _failures_told(Path(work) if shared is None else shared.work, keep_log_in, interrupts),
    ):
        if shared is not None:
            try:
                yield QuietSpark(shared.session.result(), Path(work), progress)
            finally:
                shared.is_ended = interrupts.came or isinstance(sys.exception(), KeyboardInterrupt)
            return
        progress("starting Spark")
        session = start_session(
            Path(work), master=master, small=size_in_bytes < SMALL_BYTES, settings=settings
        )
        interrupts.take()
        try:
            yield QuietSpark(session, Path(work), progress)
        except KeyboardInterrupt:
            interrupts.came = True
            raise
        finally:
            if not interrupts.came:
                session.stop()


def _settings_for(table_format: str) -> dict[str, str]:
    if table_format != DELTA:
        return {}
    try:
        return delta_settings(jars_folder())
    except DeltaMissing as error:
        raise CliError(str(error), status=ExitStatus.MISSING_REQUIREMENT) from None


@contextmanager
def _progress() -> Iterator[Progress]:
    """Calls with what is being done: one changing line on a terminal, plain lines elsewhere; on standard error.

    An empty step takes the line away, before something else is printed.
    """
    if not sys.stderr.isatty():
        yield lambda step: remark(f"{step} ...") if step else None
        return
    from rich.text import Text

    from cli.output import error_console

    with error_console().status("") as status:
        yield lambda step: status.update(Text(step)) if step else status.stop()


@contextmanager
def _failures_told(work: Path, keep_log_in: Path, interrupts: SparkInterrupts) -> Iterator[None]:
    """Turns a failure of Spark into one line, and keeps Spark's own log where the line says. A failure that came of an
    interrupt is none."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        if interrupts.came:
            raise
        kept = keep_log_in / SPARK_LOG
        if (work / SPARK_LOG).is_file():
            shutil.copyfile(work / SPARK_LOG, kept)
        raise CliError(
            f"Spark failed: {_reason(error)}; its log is {kept}", status=ExitStatus.FAILED
        ) from error


def _reason(error: Exception) -> str:
    """The line that says why: the last one of a Python traceback in it where there is one, else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    exceptions = [line for line in lines if _EXCEPTION_LINE.match(line)]
    return [type(error).__name__, *lines[:1], *exceptions[-1:]][-1]
