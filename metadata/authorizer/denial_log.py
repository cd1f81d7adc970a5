"""Which denials are logged: each once a minute at most, and never so many that they flood the log."""

from collections.abc import Callable
from typing import Final

from kquorum.metadata.authorizer.access import Denial
from kquorum.wire.protocol.api_keys import ApiKey

WINDOW_MS: Final = 60_000
# A client that asks for ever new names must neither flood the log nor fill the memory.
MOST_IN_A_WINDOW: Final = 100
MOST_CHARACTERS: Final = 200


class DenialLog:
    """`tell` gets a line with principal, address, operation and resource, and nothing else."""

    def __init__(self, now_ms: Callable[[], int], tell: Callable[[str], None]) -> None:
        self._now_ms = now_ms
        self._tell = tell
        self._window_ends_ms = 0
        self._told: set[tuple[ApiKey, Denial]] = set()
        self._left_out = 0

    def note(self, api_key: ApiKey, denial: Denial) -> None:
        now_ms = self._now_ms()
        if now_ms >= self._window_ends_ms:
            self._end_window()
            self._window_ends_ms = now_ms + WINDOW_MS
        key = (api_key, denial)
        if key in self._told:
            return
        if len(self._told) >= MOST_IN_A_WINDOW:
            self._left_out += 1
            return
        self._told.add(key)
        self._tell(
            f"{_shown(denial.principal)} at {denial.host} is denied {denial.operation.name} on "
            f"{denial.resource_type.name.lower()} {_shown(denial.name)}, asked by {api_key.name}"
        )

    def _end_window(self) -> None:
        if self._left_out:
            self._tell(f"{self._left_out} more denials of the last minute are left out here")
        self._told.clear()
        self._left_out = 0


def _shown(name: str) -> str:
    """On one line and not too long, whatever a client calls itself or its topics."""
    printable = "".join(each if each.isprintable() else "?" for each in name[:MOST_CHARACTERS])
    return printable if len(name) <= MOST_CHARACTERS else f"{printable}..."
