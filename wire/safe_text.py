"""Foreign text where people read it: names, racks and addresses may hold what a terminal obeys, or hides.

Control characters move the cursor, clear the screen and set the clipboard; bidirectional ones show a name backwards.
Whatever is no letter, sign or blank is shown as its escape.
"""

from typing import Final

_LINE_BREAK: Final = "\n"


def safe_text(text: str) -> str:
    """For one line: a line break is an escape, too."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def safe_lines(text: str) -> str:
    """For messages of several lines."""
    return _LINE_BREAK.join(map(safe_text, text.split(_LINE_BREAK)))


def safe_json(text: str) -> str:
    """JSON text with the same meaning: such characters are in its strings only, where they have escapes of their own.
    Line breaks are between its elements."""
    lines = text.split(_LINE_BREAK)
    return _LINE_BREAK.join(
        line if line.isprintable() else "".join(map(_escaped_in_json, line)) for line in lines
    )


def _escaped(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def _escaped_in_json(character: str) -> str:
    if character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
