"""Descriptors that are kept back for files which are closed again at once, for when the process has no others left.

A small state file or the name of a segment must get to the disk also while connections hold all the other descriptors
that the process may have.
"""

import errno
import os
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

_OUT_OF_DESCRIPTORS = frozenset((errno.EMFILE, errno.ENFILE))
Result = TypeVar("Result")


def is_out_of_descriptors(error: OSError) -> bool:
    return error.errno in _OUT_OF_DESCRIPTORS


class SpareDescriptors:
    """None at first. For several threads at once."""

    def __init__(self) -> None:
        self._wanted = 0
        self._held: list[int] = []
        self._lock = Lock()

    def hold(self, count: int) -> None:
        """Keep back so many, as far as there are any."""
        self._wanted = count
        self.take_back()

    def with_spare(self, opening: Callable[[], Result]) -> Result:
        """Run `opening`, with a descriptor that was kept back if there is no other. Others may be quicker to take the
        one that was given up, so that it may need more than one. Raises what `opening` raises."""
        while True:
            try:
                return opening()
            except OSError as error:
                if not is_out_of_descriptors(error) or not self._give_up_one():
                    raise

    def for_a_while(self, work: Callable[[], Result]) -> Result:
        """As `with_spare`, for work that closes what it opens: what was given up for it is kept back again."""
        try:
            return self.with_spare(work)
        finally:
            self.take_back()

    def take_back(self) -> None:
        """Keep back again what was given up: for when something was closed."""
        if len(self._held) >= self._wanted:
            return
        with self._lock:
            try:
                while len(self._held) < self._wanted:
                    self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                return  # the next file that is closed gives the next chance

    def release(self) -> None:
        self._wanted = 0
        while self._give_up_one():
            pass

    def _give_up_one(self) -> bool:
        with self._lock:
            if self._held:
                os.close(self._held.pop())
                return True
            return False
