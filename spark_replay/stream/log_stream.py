"""An audit that goes on: the log of a node, as it is written, into the tables of `spark_replay.audit`.

    stream = LogStream(spark, Path("/var/lib/kafka/metadata"), Path("audit"))
    stream.run_until_caught_up()

What it has read and written is noted in the folder of the tables, so a second run goes on where the first ended,
however that ended. See `tables` for exactly-once, `refresh` for the tables of the state.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kquorum.regular_files import NotRegular
from kquorum.spark_replay.audit import AuditResult
from kquorum.spark_replay.decode.sources import find_log_files
from kquorum.spark_replay.decode.splits import DEFAULT_SPLIT_BYTES
from kquorum.spark_replay.folder_lock import FolderTaken, locked
from kquorum.spark_replay.stream.merging import finish_merge, merge_small_files
from kquorum.spark_replay.stream.read_positions import TruncatedLog, latest_positions
from kquorum.spark_replay.stream.reader import KraftLogPieces, tail_pieces
from kquorum.spark_replay.stream.refresh import refresh
from kquorum.spark_replay.stream.state import (
    BEHIND,
    FRESH,
    STATE,
    NoStream,
    StreamState,
    read_state,
    stream_folder,
)
from kquorum.spark_replay.stream.tables import BatchWriter, write_tail

EVERY_SECONDS: Final = 10.0
# The tables of the state are made again for at most this part of the time, and for NoOps alone this seldom.
_PAUSE_FACTOR: Final = 4.0
NOOPS_SECONDS: Final = 600.0
_LOOK_SECONDS: Final = 0.2
_CHECKPOINT: Final = "checkpoint"
_LOCK: Final = "lock"
_ATTEMPTS: Final = 4
_NO_WORKER: Final = "Python worker failed to connect back"

Told = Callable[[str], None]


class RefreshPace:
    """When the tables of the state are made again. Times are seconds of a clock that begins anywhere: that of a machine
    begins near 0 when the machine starts."""

    def __init__(self, every_seconds: float) -> None:
        self._every_seconds = every_seconds
        self._refreshed_at = -math.inf
        self._took_seconds = 0.0

    def is_due(self, now: float, state: StreamState) -> bool:
        if state.behind == FRESH:
            return False
        pause = max(self._every_seconds, _PAUSE_FACTOR * self._took_seconds)
        if state.behind < BEHIND and state.version > 0:
            pause = max(pause, NOOPS_SECONDS)
        return now - self._refreshed_at >= pause

    def refreshed(self, began: float, ended: float) -> None:
        self._refreshed_at, self._took_seconds = ended, ended - began


class LogStream:
    """The stream of one log into one folder. `progress` gets each step. Raises NoStream for a folder of
    another's, and where another process streams into it."""

    def __init__(
        self,
        spark: SparkSession,
        log: Path,
        out: Path,
        *,
        name: str | None = None,
        every_seconds: float = EVERY_SECONDS,
        split_bytes: int = DEFAULT_SPLIT_BYTES,
        progress: Told = lambda step: None,  # noqa: ARG005
    ) -> None:
        """`name` is what the log is called in `audit.json`; its path, if not given."""
        self._spark = spark
        self._log = log.resolve()
        self._out = out.resolve()
        self._every_seconds = every_seconds
        self._split_bytes = split_bytes
        self._progress = progress
        self._busy = threading.Lock()
        stream_folder(self._out).mkdir(parents=True, exist_ok=True)
        self._name = name or str(self._log)
        self.state: StreamState = read_state(self._out, self._name)
        self._writer = BatchWriter(self._out, self.state)
        self._pace = RefreshPace(every_seconds)
        self.result: AuditResult | None = None

    def read(self) -> None:
        """Read all that there is, without making the tables of the state. Raises TruncatedLog."""
        with self._begun():
            self._catch_up()

    def run_until_caught_up(self) -> AuditResult:
        """Read everything up to the present end, then return; a torn tail counts as damage. Raises TruncatedLog."""
        with self._begun():
            self._catch_up()
            return self._refresh(is_finished=True)

    def run(self, is_stopped: Callable[[], bool]) -> None:
        """Go on until `is_stopped` answers True, which is asked several times a second. Raises TruncatedLog."""
        with self._begun():
            _attempted(lambda: self._follow(is_stopped))
            if self.state.behind != FRESH:
                self._refresh(is_finished=False)

    def _catch_up(self) -> None:
        """For sources of ours Spark makes one micro-batch of what is available: one that was planned before, if any."""
        is_planned = True
        while is_planned:
            is_planned = self._has_planned_batch()
            _attempted(lambda: self._query(availableNow=True).awaitTermination())

    def _has_planned_batch(self) -> bool:
        """Whether the run before has ended in the midst of a micro-batch."""
        return self._newest("offsets") > self._newest("commits")

    def _newest(self, name: str) -> int:
        """The newest micro-batch that Spark has noted there; -1 for none."""
        noted = stream_folder(self._out) / _CHECKPOINT / name
        numbers = (int(path.name) for path in noted.glob("*") if path.name.isdecimal())
        return max(numbers, default=-1)

    def _follow(self, is_stopped: Callable[[], bool]) -> None:
        query = self._query(processingTime=f"{max(1, round(self._every_seconds * 1000))} milliseconds")
        try:
            while not is_stopped() and not query.awaitTermination(_LOOK_SECONDS):
                if self._pace.is_due(time.monotonic(), self.state):
                    self._refresh(is_finished=False)
        finally:
            # What is being written is let be finished; then without the lock, for a batch may wait for it.
            with self._busy:
                pass
            query.stop()

    def _query(self, **trigger: Any) -> StreamingQuery:
        self._spark.dataSource.register(KraftLogPieces)
        pieces = self._spark.readStream.format(KraftLogPieces.name())
        frame = pieces.option("split_bytes", str(self._split_bytes)).load(str(self._log))
        # As a path: Hadoop does not decode a URI, and a folder with a space in its name would be another one.
        checkpoint = str(stream_folder(self._out) / _CHECKPOINT)
        writer = frame.writeStream.foreachBatch(self._write)
        return writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()

    def _write(self, pieces: DataFrame, batch: int) -> None:
        with self._busy:
            before = self.state.rows.get("record", 0)
            self._writer.write(pieces, batch)
            new, total = self.state.rows.get("record", 0) - before, self.state.rows.get("record", 0)
            self._progress(f"batch {batch}: {new:,} new records, {total:,} in all")

    def _refresh(self, *, is_finished: bool) -> AuditResult:
        with self._busy:
            self._progress("making the tables of the state")
            started = time.monotonic()
            tail_rows = write_tail(self._out, self._tail() if is_finished else ())
            self._writer.leave_no_table_empty()
            self.result = refresh(self._spark, self._out, self.state, tail_rows=tail_rows)
            merge_small_files(self._out)
            self._pace.refreshed(started, time.monotonic())
            return self.result

    def _tail(self) -> list[Any]:
        """The bytes after the last sound batch, if that was read."""
        files = find_log_files(self._log)
        ends = {name: source.end_offset for name, source in self.state.sources.items()}
        places = latest_positions(files, {})
        return [
            piece
            for piece in tail_pieces(places, files)
            if places[piece.split.file.source].offset <= (ends.get(piece.split.file.source) or 0)
            or places[piece.split.file.source].position == 0
        ]

    @contextmanager
    def _begun(self) -> Iterator[None]:
        """Alone in the folder, with what the run before has noted there."""
        with _locked(self._out), _failures_told():
            self.state = read_state(self._out, self._name)
            if self.state.last_batch < 0 <= self._newest("commits"):
                raise NoStream(
                    f"{stream_folder(self._out)} has lost its {STATE}: what was read before is not in the tables and "
                    "would not be read again; stream into a new folder"
                )
            self._writer = BatchWriter(self._out, self.state)
            self._writer.remove(self.state.last_batch + 1)
            finish_merge(self._out)
            yield


def _attempted(work: Callable[[], object]) -> None:
    """Again, where Spark gave up a Python worker that did not start within its ten seconds: on a machine with much else
    to do. What was begun is repeated, as after a kill."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            work()
        except StreamingQueryException as error:
            if _NO_WORKER not in str(error) or attempt == _ATTEMPTS:
                raise
        else:
            return


@contextmanager
def _failures_told() -> Iterator[None]:
    """The reader's refusal comes back from Spark as text."""
    try:
        yield
    except StreamingQueryException as error:
        _, found, reason = str(error).partition(f"{TruncatedLog.__name__}: ")
        if found:
            raise TruncatedLog(reason.splitlines()[0].strip()) from error
        raise


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(stream_folder(out) / _LOCK))
        except FolderTaken:
            raise NoStream(f"another process streams into {out}") from None
        except NotRegular as error:
            raise NoStream(
                f"{error.filename} cannot be the stream's lock: {error.strerror}; remove it"
            ) from None
        yield
