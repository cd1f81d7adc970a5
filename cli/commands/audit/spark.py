"""The Spark session of a command: quiet, in a folder of its own, with Delta's jars where they are needed.

Ctrl-C while Spark starts or works ends Java too, and neither py4j nor Spark prints anything.
"""

import logging
import os
import re
import signal
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kquorum.cli.commands.audit.java import check_java
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import remark
from kquorum.private_files import replace_whole
from kquorum.spark_replay.audit import Progress
from kquorum.spark_replay.delta import DELTA, DeltaJar, DeltaMissing, check_jar, delta_jars, delta_settings
from kquorum.spark_replay.java_process import end_java
from kquorum.spark_replay.session import start_session


class SparkInterrupts:
    """Made by `spark_interrupts`; `came` says that an interrupt is why something failed. A process that its parent
    started with SIGINT ignored goes on ignoring it."""

    def __init__(self) -> None:
        self.came = False
        self._is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN

    def take(self) -> None:
        """Again after Spark's start, which puts a handler of its own in place that asks Java to stop its jobs."""
        if _is_main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN if self._is_ignored else self._raise)

    def _raise(self, _number: int, _frame: FrameType | None) -> NoReturn:
        self.came = True
        _silence_py4j()
        raise KeyboardInterrupt


@contextmanager
def spark_interrupts() -> Iterator[SparkInterrupts]:
    """When the block ends by an interrupt, Java is ended. Raises KeyboardInterrupt then, whatever failed of it."""
    interrupts = SparkInterrupts()
    before = signal.getsignal(signal.SIGINT)
    interrupts.take()
    try:
        yield interrupts
    except BaseException as error:
        if interrupts.came or isinstance(error, KeyboardInterrupt):
            _silence_py4j()
            end_java()
            raise KeyboardInterrupt from None
        raise
    finally:
        if _is_main_thread():
            signal.signal(signal.SIGINT, before)


def _silence_py4j() -> None:
    """py4j goes on sending after an interrupt (other threads, Python objects for Java's that are collected).

    It logs each failure with its own logger, and with the root logger, which prints while it has no handler.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())


def _is_main_thread() -> bool:
    """Python has signal handlers in the main thread only."""
    return threading.current_thread() is threading.main_thread()


CENTRAL: Final = "https://repo1.maven.org/maven2"
_FOLDER: Final = "KQUORUM_DELTA_JARS"
_TIMEOUT_S: Final = 60
_LARGEST_BYTES: Final = 64 * 1024 * 1024


def jars_folder() -> Path:
    """The one that KQUORUM_DELTA_JARS names, else one among the user's caches."""
    named = os.environ.get(_FOLDER)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kquorum" / "delta-jars"


def fetch_jars() -> None:
    """Fetch what the folder lacks of the jars. Each is kept if its SHA-256 is the listed one. Raises CliError."""
    folder = jars_folder()
    try:
        for jar in delta_jars():
            if not (folder / jar.name).exists():
                _fetch(jar, folder)
    except DeltaMissing as error:
        raise CliError(str(error), status=ExitStatus.MISSING_REQUIREMENT) from None
    except OSError as error:
        raise CliError(
            f"cannot keep Delta's jars in {folder}: {error.strerror or error}; {_FOLDER} names another folder",
            status=ExitStatus.IO_ERROR,
        ) from None


def _fetch(jar: DeltaJar, folder: Path) -> None:
    address = f"{CENTRAL}/{jar.path}"
    remark(f"fetching {address} ...")
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - always CENTRAL's https
            content: bytes = answer.read(_LARGEST_BYTES)
    except (OSError, HTTPException) as error:
        raise CliError(f"{address} cannot be fetched: {error}", status=ExitStatus.UNREACHABLE) from None
    try:
        check_jar(jar, content, address)
    except DeltaMissing:
        raise CliError(
            f"what came from {address} is not the jar with the SHA-256 {jar.sha256}, and is not kept"
        ) from None
    folder.mkdir(parents=True, exist_ok=True)
    # Under its name once it is whole: a jar that was cut off by an interrupt would be taken for whole by its name.
    replace_whole(folder / jar.name, content)


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
            # After an interrupt Java is gone, and `stop` would wait for an answer of it.
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
        # Only now: the start of Spark has replaced the handler of SIGINT.
        interrupts.take()
        try:
            yield QuietSpark(session, Path(work), progress)
        except KeyboardInterrupt:
            interrupts.came = True
            raise
        finally:
            # As above: `spark_interrupts` ends Java, which `stop` would ask.
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

    from kquorum.cli.output import error_console

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
        kept = _keep_log(work / SPARK_LOG, keep_log_in)
        raise CliError(
            f"Spark failed: {_reason(error)}; its log is {kept}", status=ExitStatus.FAILED
        ) from error


def _keep_log(log: Path, folder: Path) -> Path:
    """Where the log lies then: in a folder of its own where `folder` takes no file. Its lines hold what the author of
    the tables chose."""
    try:
        content = log.read_bytes()
    except FileNotFoundError:  # Spark did not get as far
        return folder / SPARK_LOG
    try:
        replace_whole(folder / SPARK_LOG, content)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="kquorum-spark-log-"))
        replace_whole(folder / SPARK_LOG, content)
    return folder / SPARK_LOG


def _reason(error: Exception) -> str:
    """The line that says why: the last one of a Python traceback in it where there is one, else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    exceptions = [line for line in lines if _EXCEPTION_LINE.match(line)]
    return [type(error).__name__, *lines[:1], *exceptions[-1:]][-1]
