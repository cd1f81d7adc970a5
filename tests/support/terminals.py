"""Standard output as a terminal of some width, for the tests of tables."""

import io
import re
import sys

import pytest

SENTENCE = "node 4 does not fetch from the leader; the observers are: none, " * 2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, width: int | None = None) -> Terminal:
    """Of 80 columns and without colours, or of this width and with them: rich takes a dumb one to have 80."""
    terminal = Terminal()
    if width is None:
        monkeypatch.setenv("TERM", "dumb")
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys, "stdout", terminal)
    return terminal


def without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def widest(text: str) -> int:
    return max(len(line.rstrip()) for line in text.splitlines())
