"""`python -m kquorum.cli.child ...` is `kquorum ...` as a child process: it ends when its parent ends or is killed."""

import ctypes
import os
import signal
import sys

from kquorum.cli.entry import main

_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    """Linux only; elsewhere a killed parent leaves its nodes running. Set at once, and asked again: the parent may
    have died before."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1:
        sys.exit(1)


if __name__ == "__main__":
    _die_with_parent()
    main()
