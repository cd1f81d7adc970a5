"""What SQL on the tables of an audit is refused with, whichever engine carries it out."""

from collections.abc import Iterable, Sequence
from typing import Final

from kquorum.wire.near_names import near_names

NO_QUERY: Final = "there is no query in it"


class BadSql(Exception):
    """The text is not a query of the tables; the message, one line, has the reason."""


def no_such_column(name: str, near: Sequence[str]) -> str:
    return f"there is no column {name}" + (f"; the nearest are {', '.join(near)}" if near else "")


def no_such_table(name: str, tables: Iterable[str]) -> str:
    known = list(tables)
    return f"there is no table {name}; there are {', '.join(near_names(name, known, cutoff=0.5) or known)}"


def distinct_names(names: Iterable[str]) -> list[str]:
    """Each once: a second `a` is `a_2`."""
    counts, found = dict[str, int](), list[str]()
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        found.append(name if counts[name] == 1 else f"{name}_{counts[name]}")
    return found
