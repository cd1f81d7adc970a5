"""Warnings about peers, so many in a second: a peer that sends garbage should not fill the disk with lines about it."""

import logging
from collections.abc import Callable

_LINES = 20
_PERIOD_S = 1.0


class BoundedLog:
    """Beyond its measure it counts, and the next line that is written tells how many were not."""

    __slots__ = ("_left_out", "_lines", "_log", "_now_s", "_period_began_s")

    def __init__(self, log: logging.Logger, now_s: Callable[[], float]) -> None:
        self._log = log
        self._now_s = now_s
        self._period_began_s = now_s()
        self._lines = 0
        self._left_out = 0

    def warning(self, message: str, *arguments: object) -> None:
        now_s = self._now_s()
        if now_s - self._period_began_s >= _PERIOD_S:
            self._period_began_s, self._lines = now_s, 0
        if self._lines >= _LINES:
            self._left_out += 1
            return
        self._lines += 1
        if self._left_out:
            message += " (%d more of such lines were left out before this one)"
            arguments += (self._left_out,)
            self._left_out = 0
        self._log.warning(message, *arguments)
