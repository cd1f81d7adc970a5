"""How a thread that computes leaves the event loop its share of the interpreter.

Two threads of one Python process take turns: a thread that wants the interpreter waits until the other releases it,
five milliseconds by default, and a commit needs it several times on its way. So while a snapshot is written the turns
are made shorter, and between two short pieces of work the writer rests.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock

# How long a thread may keep the interpreter while another waits.
TURN_S = 0.0005
# The writer's own CPU time between two rests, and how long it rests for each second of it.
WORK_S = 0.002
REST_PER_WORK = 1.0


class Stopped(Exception):
    """The work is no longer wanted."""


class Pace:
    """`rest` is called between pieces of work that take well below a millisecond each; any thread may call `stop`."""

    def __init__(self, work_s: float = WORK_S, rest_per_work: float = REST_PER_WORK) -> None:
        self._work_s = work_s
        self._rest_per_work = rest_per_work
        self._stopped = Event()
        self._worked_until_s = 0.0

    def stop(self) -> None:
        self._stopped.set()

    def begin(self) -> None:
        """Work begins, in the thread that calls this."""
        self._worked_until_s = time.thread_time()

    def rest(self) -> None:
        """Wait a little if enough was done since the last time. Raises Stopped."""
        worked_s = time.thread_time() - self._worked_until_s
        if worked_s < self._work_s:
            return
        if self._stopped.wait(worked_s * self._rest_per_work):
            raise Stopped
        self._worked_until_s = time.thread_time()


_turns = Lock()
_sharing = 0
_usual_s = 0.0


@contextmanager
def short_turns(turn_s: float = TURN_S) -> Iterator[None]:
    """Have threads take shorter turns at the interpreter meanwhile; it holds for the whole process."""
    global _sharing, _usual_s  # noqa: PLW0603 - the setting is the interpreter's own, and there is one of it
    with _turns:
        if _sharing == 0:
            _usual_s = sys.getswitchinterval()
            sys.setswitchinterval(min(turn_s, _usual_s))
        _sharing += 1
    try:
        yield
    finally:
        with _turns:
            _sharing -= 1
            if _sharing == 0:
                sys.setswitchinterval(_usual_s)
