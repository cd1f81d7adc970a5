"""Write docs/raft-roles.md from the code's own table of transitions: `python -m tools.render_roles`.

The page says nothing of its own: what a role is comes from the docstrings in raft/roles.py,
which moves are legal and what triggers them from its table. A test holds it fresh.
"""

import inspect
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Literal, Protocol

from kquorum.raft.roles import TRANSITIONS, Candidate, Follower, Leader, Prospective, Resigned, Unattached

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "raft-roles.md"
ROLES: Final = (Unattached, Prospective, Candidate, Leader, Follower, Resigned)
# What a replica may be as soon as it has started (raft/recovery.py).
FIRST_ROLES: Final = ("unattached", "follower", "resigned")

_HEAD = """\
# Roles of a replica, and how it changes between them

Written by `python -m tools.render_roles` from `raft/roles.py`; change that, not this page.

A replica has one role at a time. Every change of role asks the table in `raft/roles.py` first, and a move that
is not listed there raises `IllegalTransitionError`: it would be a bug of ours, and going on could elect two leaders.
An epoch never goes back. Voters take any role; observers (replicas that are not in the voter set) are unattached or
follow, and one that led until its own removal was committed also resigns.
"""


class Move(Protocol):
    """A legal move, as raft/roles.py names it."""

    @property
    def source(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def epoch(self) -> Literal["same", "higher"]: ...
    @property
    def trigger(self) -> str: ...


def render(moves: Sequence[Move]) -> str:
    """The whole page."""
    parts = [_HEAD, _roles(), _picture(moves), _table(moves), _matrix(moves)]
    return "\n".join(parts)


# The parts of the page


def _roles() -> str:
    rows = [(f"**{_name(role)}**", _meaning(role)) for role in ROLES]
    return "## Roles\n\n" + _rows(("role", "what it is"), rows)


def _picture(moves: Sequence[Move]) -> str:
    lines = [
        "stateDiagram-v2",
        '    state "any role" as any',
        *(f"    [*] --> {role} : start" for role in FIRST_ROLES),
        *dict.fromkeys(_arrow(moves, move) for move in moves),
    ]
    text = "An arrow names its trigger; `(epoch + n)` marks a move that takes a higher epoch.\n"
    return "## Picture\n\n" + text + "\n```mermaid\n" + "\n".join(lines) + "\n```\n"


def _arrow(moves: Sequence[Move], move: Move) -> str:
    """What every role does is drawn once, from `any`, with what most of them say of it; the others say it once more."""
    alike = [other for other in moves if (other.target, other.epoch) == (move.target, move.epoch)]
    source = move.source
    if {other.source for other in alike} == {_name(role) for role in ROLES}:
        (common, _), *_ = Counter(other.trigger for other in alike).most_common(1)
        source = "any" if move.trigger == common else move.source
    suffix = " (epoch + n)" if move.epoch == "higher" else ""
    return f"    {source} --> {move.target} : {_label(move.trigger)}{suffix}"


def _label(trigger: str) -> str:
    """A colon or semicolon would end the label, and a number sign begin an entity."""
    for character, instead in ((":", " -"), (";", ","), ("#", "no. ")):
        trigger = trigger.replace(character, instead)
    return trigger


def _table(moves: Sequence[Move]) -> str:
    rows = [(move.source, move.target, move.epoch, move.trigger.replace("|", "\\|")) for move in moves]
    return "## Every legal move\n\n" + _rows(("from", "to", "epoch", "when"), rows)


def _matrix(moves: Sequence[Move]) -> str:
    """Role by role: which epochs a move may have; a dash is a move that raises."""
    names = [_name(role) for role in ROLES]
    rows = [(f"**{source}**", *(_epochs(moves, source, target) for target in names)) for source in names]
    return "## At a glance\n\nA dash is a move that raises.\n\n" + _rows(("from, to", *names), rows)


def _epochs(moves: Sequence[Move], source: str, target: str) -> str:
    found = {move.epoch for move in moves if (move.source, move.target) == (source, target)}
    return ", ".join(epoch for epoch in ("same", "higher") if epoch in found) or "-"


def _rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def _name(role: type) -> str:
    return role.__name__.lower()


def _meaning(role: type) -> str:
    return " ".join((inspect.getdoc(role) or "").split()).replace("|", "\\|")


def main() -> int:
    PAGE.write_text(render(TRANSITIONS))
    sys.stdout.write(f"{PAGE.name}: {len(TRANSITIONS)} moves\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
