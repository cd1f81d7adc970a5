"""Where a node's log lines go: all to a rotating file in its data folder, the notable ones to standard error.

Lines are written by a thread of their own, so that a disk which stalls never holds up the event loop.
"""

import logging
import queue
import sys
from logging.handlers import QueueHandler, QueueListener, RotatingFileHandler
from pathlib import Path

FILE_NAME = "kquorum.log"
MAX_FILE_BYTES = 10 * 1024 * 1024
FILES_KEPT = 5
# What an operator wants to see of a node that is well.
NOTABLE_LOGGER = "kquorum"

log = logging.getLogger(NOTABLE_LOGGER)


class _ShortFormatter(logging.Formatter):
    """One line, without a traceback: that one is in the file."""

    def format(self, record: logging.LogRecord) -> str:
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        return f"{self.formatTime(record, '%H:%M:%S')} {level}{record.getMessage()}"


def _is_notable(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING or record.name == NOTABLE_LOGGER


class NodeLogging:
    """From `start` to `stop` the root logger's lines go to the file and standard error."""

    def __init__(self, folder: Path, node_id: int) -> None:
        self.path = folder / FILE_NAME
        file = RotatingFileHandler(
            self.path, maxBytes=MAX_FILE_BYTES, backupCount=FILES_KEPT, encoding="utf-8"
        )
        file.setFormatter(
            logging.Formatter(
                f"%(asctime)s.%(msecs)03d node {node_id} %(levelname)s %(name)s: %(message)s", "%F %T"
            )
        )
        terminal = logging.StreamHandler(sys.stderr)
        terminal.setFormatter(_ShortFormatter())
        terminal.addFilter(_is_notable)
        lines: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
        self._file = file
        self._entrance = _PassOn(lines)
        self._listener = QueueListener(lines, file, terminal, respect_handler_level=True)

    def start(self) -> None:
        root = logging.getLogger()
        root.setLevel(logging.INFO)
        root.addHandler(self._entrance)
        self._listener.start()

    def stop(self) -> None:
        """Everything logged so far is written."""
        logging.getLogger().removeHandler(self._entrance)
        self._listener.stop()
        self._file.close()


class _PassOn(QueueHandler):
    """Leaves the record as it is: both handlers run in this process and format it in their own ways."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        return record
