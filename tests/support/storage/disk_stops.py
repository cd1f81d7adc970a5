"""A process that ends in the middle of what it does to the disk."""

from collections.abc import Callable

from tests.support.fault_file_system import CHANGES


class Stopped(BaseException):
    """Nothing may handle it."""


def stopping_before(change: int) -> Callable[[int, str], None]:
    seen = 0

    def hear(_count: int, name: str) -> None:
        nonlocal seen
        seen += name in CHANGES
        if seen > change:
            raise Stopped

    return hear
