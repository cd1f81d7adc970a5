"""The first module of `kquorum`: from here on Ctrl-C ends the process with one line, also while modules are imported.

It imports nothing that Python has not loaded already: an interrupt before the handler is in place shows Python's own
traceback, and `signal`, `typing` and `enum` take 12 ms. Hence the built-in part of `signal`, and a number that
`cli.failures` has a name for. The script `cli/kquorum` closes the gap before this module; what is left is Python's
own start.
"""

import _signal as signal  # type: ignore[import-not-found]
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

_INTERRUPTED = 130


def main() -> None:
    """`kquorum`, as the shell starts it. Every failure ends in one clear message and a documented exit status."""
    end_at_once_on_interrupt()
    try:
        from kquorum.cli.main import prepare_process, run

        prepare_process()
        raise_on_interrupt()
        try:
            status = run(sys.argv[1:])
        finally:
            end_at_once_on_interrupt()
        sys.exit(status)
    except KeyboardInterrupt:
        end_process()


def end_at_once_on_interrupt() -> None:
    """For the moments when nothing is at work that must be cleaned up. A process that its parent started with SIGINT
    ignored goes on ignoring it.
    """
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end)


def raise_on_interrupt() -> None:
    """For a command at work: Ctrl-C raises KeyboardInterrupt, so that the command can clean up."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(_number: int, _frame: "FrameType | None") -> "NoReturn":
    end_process()


def end_process() -> "NoReturn":
    """One line, and no finalization of Python, where a second signal would show a traceback."""
    os.write(sys.__stderr__.fileno() if sys.__stderr__ is not None else 2, b"interrupted\n")
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
