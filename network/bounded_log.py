"""Lines that peers can cause, so many in a second: a peer that sends garbage should not fill the disk with lines."""

import logging
from collections.abc import Callable
from typing import Final

_LINES: Final = 20
_PERIOD_S: Final = 1.0
_LEFT_OUT: Final = " (%d more of such lines were left out before this one)"


class LineMeasure:
    """So many lines in a second."""

    __slots__ = ("_left_out", "_lines", "_most", "_now_s", "_period_began_s")

    def __init__(self, now_s: Callable[[], float], most: int = _LINES) -> None:
        self._now_s = now_s
        self._most = most
        self._period_began_s = now_s()
        self._lines = 0
        self._left_out = 0

    def take(self) -> int | None:
        """How many lines were left out before this one; None if this one is to be left out too."""
        now_s = self._now_s()
        if now_s - self._period_began_s >= _PERIOD_S:
            self._period_began_s, self._lines = now_s, 0
        if self._lines >= self._most:
            self._left_out += 1
            return None
        self._lines += 1
        left_out, self._left_out = self._left_out, 0
        return left_out


class BoundedLog:
    """Beyond its measure it counts, and the next line that is written tells how many were not."""

    __slots__ = ("_log", "_measure")

    def __init__(self, log: logging.Logger, now_s: Callable[[], float]) -> None:
        self._log = log
        self._measure = LineMeasure(now_s)

    def warning(self, message: str, *arguments: object) -> None:
        left_out = self._measure.take()
        if left_out is None:
            return
        if left_out:
            message += _LEFT_OUT
            arguments += (left_out,)
        self._log.warning(message, *arguments)


class BoundedLibrary:
    """A filter of the records of a library's loggers, which log a traceback for what a peer may cause: the same measure
    for all below `name`. Records of other loggers pass."""

    def __init__(self, name: str, now_s: Callable[[], float], most: int) -> None:
        self._name = name
        self._below = f"{name}."
        self._measure = LineMeasure(now_s, most)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name != self._name and not record.name.startswith(self._below):
            return True
        left_out = self._measure.take()
        if left_out:
            record.msg = record.getMessage() + _LEFT_OUT % left_out
            record.args = ()
        return left_out is not None
