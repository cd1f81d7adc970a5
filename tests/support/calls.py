"""How much work a step is, in calls of functions: the same on any machine, however busy it is."""

import sys
from collections.abc import Callable


def calls_of(step: Callable[[], object]) -> int:
    """How many functions `step` calls, those of C included."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        step()
    finally:
        sys.setprofile(before)
    return calls
