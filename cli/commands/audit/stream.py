"""The work of `audit stream`: check everything that can be wrong first, then let Spark follow the log."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

from kquorum.cli.commands.audit.inputs import check_name, files_to_audit, total_bytes
from kquorum.cli.commands.audit.java import check_java
from kquorum.cli.commands.audit.live_log import followed, live_address
from kquorum.cli.commands.audit.spark import quiet_spark
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.spark_replay.audit_manifest import NoAudit
from kquorum.spark_replay.stream.log_stream import LogStream
from kquorum.spark_replay.stream.read_positions import TruncatedLog
from kquorum.spark_replay.stream.state import NoStream, is_stream, read_state, stream_folder
from kquorum.spark_replay.summary import summarize

LIVE: Final = "live"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest:
    """What to follow, a path or `grpc://HOST:PORT`, and where the tables go."""

    log: str
    out: Path
    until_caught_up: bool
    every_seconds: float
    master: str


def run_stream(request: StreamRequest) -> dict[str, Any]:
    """Follow the log until it has caught up, or until the user ends it; sum up (see `spark_replay.summary`).

    Raises CliError for everything a user can put right.
    """
    address = live_address(request.log)
    name = request.log if address is not None else str(Path(request.log).resolve())
    check_out(request.out, name)
    check_java()
    if address is None:
        return _run(request, Path(request.log), name)
    folder = stream_folder(request.out.resolve()) / LIVE
    with followed(address, folder, once=request.until_caught_up) as live:
        return _run(request, live.path, name, live.check)


def _run(
    request: StreamRequest, log: Path, name: str, check: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """`check` is called several times a second, and may raise."""
    files = files_to_audit(log)
    folders = {Path(file.path).parent for file in files}
    if any(request.out.resolve().is_relative_to(folder) for folder in folders):
        raise CliError(
            f"--out {request.out} is inside the log that is audited; name another folder",
            status=ExitStatus.USAGE,
        )
    request.out.mkdir(parents=True, exist_ok=True)
    out = request.out.resolve()
    with (
        quiet_spark(
            master=request.master, size_in_bytes=total_bytes(files), keep_log_in=request.out
        ) as spark,
        _refusals_told(),
        _asked_to_stop() as is_asked,
    ):
        stream = LogStream(
            spark.session,
            log,
            out,
            name=name,
            every_seconds=request.every_seconds,
            progress=spark.progress,
        )
        spark.progress(f"following {name}")
        if request.until_caught_up:
            stream.run_until_caught_up()
        else:
            stream.run(lambda: _is_over(is_asked, check))
        if stream.result is None:
            return {}
        spark.progress("summing up")
        return summarize(spark.session, out, stream.result)


def check_out(out: Path, name: str) -> None:
    """Raises CliError where `out` cannot take the tables of a stream of this log."""
    if out.exists() and not out.is_dir():
        raise CliError(f"--out {out} is a file; name a folder", status=ExitStatus.USAGE)
    check_name(out)
    if is_stream(out):
        with _refusals_told():
            read_state(out.resolve(), name)
    elif out.is_dir() and any(out.iterdir()):
        raise CliError(
            f"--out {out} is not empty, and no stream has begun it: a stream cannot go on with the tables of another "
            "command; name a new folder",
            status=ExitStatus.USAGE,
        )


@contextmanager
def _refusals_told() -> Iterator[None]:
    try:
        yield
    except (NoStream, NoAudit) as error:
        raise CliError(str(error), status=ExitStatus.USAGE) from None
    except TruncatedLog as error:
        raise CliError(str(error), status=ExitStatus.FAILED) from None


def _is_over(is_asked: Callable[[], bool], check: Callable[[], None]) -> bool:
    check()
    return is_asked()


@contextmanager
def _asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM end the run after what is being written; a second one ends it at once. For when Spark runs,
    which has handlers of its own."""
    asked: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - Python's signature
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
