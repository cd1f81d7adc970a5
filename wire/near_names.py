"""The names that a wrong one was probably meant to be.

The time that difflib takes grows with the length of the name and with the number of the known ones, and both may be
chosen by somebody else: a client that asks, or the author of a log.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final

LONGEST_NAME: Final = 64
MOST_NAMES: Final = 10_000


def near_names(name: str, known: Iterable[str], count: int = 3, *, cutoff: float = 0.6) -> list[str]:
    """Nearest first; none for a long name, which is no slip. Long and very many known names are left out."""
    if len(name) > LONGEST_NAME:
        return []
    import difflib  # loaded for a wrong name only

    candidates = [each for each in islice(known, MOST_NAMES) if len(each) <= 2 * LONGEST_NAME]
    return difflib.get_close_matches(name, candidates, n=count, cutoff=cutoff)


def quoted(name: str) -> str:
    """As much of it as a message needs."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}... ({len(name):,} characters)"
