"""`python die_with_parent.py PROGRAM ...`: becomes PROGRAM, which is killed when the tests' process dies (Linux)."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1

if sys.platform == "linux":
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
os.execv(sys.argv[1], sys.argv[1:])
