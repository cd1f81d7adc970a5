"""Regular expressions that clients choose: RE2 matches in time linear in the text, whatever the expression."""

from __future__ import annotations

from typing import Any, Final

import re2

# RE2 refuses an expression whose automaton is larger. Its own default is 8 MiB, which 1,000 members could ask for.
_MOST_BYTES: Final = 1 << 20


class InvalidRegex(Exception):
    """The text says why."""


def compiled(regex: str) -> Any:
    """Raises InvalidRegex."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_BYTES
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        raise InvalidRegex(
            reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        ) from None
