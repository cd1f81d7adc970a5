"""Where a node's log lines go: all to a rotating file in its data folder, the notable ones to standard error, and the
line that says it is ready to standard output.

Lines are written by a thread of their own, so that a disk which stalls never holds up the event loop, and in the order
in which they were logged, whichever way they go. The command line reports what ends the process (CRITICAL).
"""

import logging
import queue
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from logging.handlers import QueueHandler, QueueListener, RotatingFileHandler
from pathlib import Path
from typing import TextIO

from kquorum.network.bounded_log import BoundedLibrary
from kquorum.wire.safe_text import safe_lines

FILE_NAME = "kquorum.log"
MAX_FILE_BYTES = 10 * 1024 * 1024
FILES_KEPT = 5
# A message may hold text of peers, such as the names of topics.
MAX_MESSAGE_CHARACTERS = 4_000
# What an operator wants to see of a node that is well.
NOTABLE_LOGGER = "kquorum"
READY_LOGGER = "kquorum.ready"
# They log a traceback of some kilobytes for each fault, and a peer may cause one again and again.
LIBRARIES = ("asyncio", "grpc")
LINES_OF_LIBRARY_A_SECOND = 5

log = logging.getLogger(NOTABLE_LOGGER)
ready_log = logging.getLogger(READY_LOGGER)


def _cut(message: str) -> str:
    if len(message) <= MAX_MESSAGE_CHARACTERS:
        return message
    left_out = len(message) - MAX_MESSAGE_CHARACTERS
    return f"{message[:MAX_MESSAGE_CHARACTERS]}... ({left_out:,} more characters)"


class _ShortFormatter(logging.Formatter):
    """One line, without a traceback: that one is in the file."""

    def format(self, record: logging.LogRecord) -> str:
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        return f"{self.formatTime(record, '%H:%M:%S')} {level}{safe_lines(_cut(record.getMessage()))}"


class _FileFormatter(logging.Formatter):
    """An operator reads the file in a terminal: foreign names and addresses must not act on it."""

    def format(self, record: logging.LogRecord) -> str:
        return safe_lines(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = _cut(record.message)
        return super().formatMessage(record)


def _is_notable(record: logging.LogRecord) -> bool:
    return logging.WARNING <= record.levelno < logging.CRITICAL or record.name == NOTABLE_LOGGER


def _says_ready(record: logging.LogRecord) -> bool:
    return record.name == READY_LOGGER


class _Terminal(logging.StreamHandler[TextIO]):
    """A reader that has gone away is no reason for a node to end, or to fill what is left with tracebacks."""

    def __init__(self, stream: TextIO, wanted: Callable[[logging.LogRecord], bool]) -> None:
        super().__init__(stream)
        self.setFormatter(_ShortFormatter())
        self.addFilter(wanted)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """The file has the line."""


class _File(RotatingFileHandler):
    """A disk that takes no more lines has the same effect: the terminal has what is notable."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """The line is lost."""


class NodeLogging:
    """From `start` to `stop` the root logger's lines go to the file, standard error and standard output."""

    def __init__(self, folder: Path, node_id: int) -> None:
        self.path = folder / FILE_NAME
        file = _File(self.path, maxBytes=MAX_FILE_BYTES, backupCount=FILES_KEPT, encoding="utf-8")
        file.setFormatter(
            _FileFormatter(
                f"%(asctime)s.%(msecs)03d node {node_id} %(levelname)s %(name)s: %(message)s", "%F %T"
            )
        )
        terminal, output = _Terminal(sys.stderr, _is_notable), _Terminal(sys.stdout, _says_ready)
        lines: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
        self._file = file
        self._entrance = _PassOn(lines)
        for library in LIBRARIES:
            self._entrance.addFilter(BoundedLibrary(library, time.monotonic, LINES_OF_LIBRARY_A_SECOND))
        self._listener = QueueListener(lines, file, output, terminal, respect_handler_level=True)

    def start(self) -> None:
        root = logging.getLogger()
        root.setLevel(logging.INFO)
        root.addHandler(self._entrance)
        self._listener.start()

    def stop(self) -> None:
        """Everything logged so far is written, but for what a full disk did not take: that is tried once more here, and
        must not hide why the node ends."""
        logging.getLogger().removeHandler(self._entrance)
        self._listener.stop()
        with suppress(OSError):
            self._file.close()


class _PassOn(QueueHandler):
    """Leaves the record as it is: both handlers run in this process and format it in their own ways."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        return record
