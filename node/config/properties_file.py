"""A Kafka `.properties` file: the config of one node, as `kafka-server-start` takes it."""

import re
from collections.abc import Iterator
from pathlib import Path

from kquorum.node.config.config_file import read_config_text
from kquorum.node.config.errors import ConfigError, Place, Problem
from kquorum.node.config.raw import RawCluster, RawNode, RawValue

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# Without the text, which may be a password.
_NO_ESCAPE = "after \\u there must be four hex digits; a backslash that is meant is written \\\\"
_HALF_A_CHARACTER = (
    "an escape between \\ud800 and \\udfff is half of a character, and its other half is not there"
)
_FOUR_HEX_DIGITS = re.compile(r"[0-9A-Fa-f]{4}")


class PropertiesError(ValueError):
    """The text is not that of a .properties file; says why, and in which line."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


def read_properties(path: Path) -> RawCluster:
    """The last of several lines with one key wins, as in Java. Raises as properties_of."""
    keys = {key: RawValue(value, Place(path, line)) for line, key, value in properties_of(path)}
    return RawCluster(path, (RawNode(keys, Place(path)),))


def properties_of(path: Path) -> list[tuple[int, str, str]]:
    """(line, key, value). Raises ConfigError with every bad line, OSError and UnicodeDecodeError."""
    found: list[tuple[int, str, str]] = []
    problems: list[Problem] = []
    for number, line in _logical_lines(read_config_text(path)):
        try:
            found.append(_key_and_value(number, line))
        except PropertiesError as error:
            problems.append(Problem(str(error), Place(path, error.line)))
    if problems:
        raise ConfigError(problems)
    return found


def _key_and_value(number: int, line: str) -> tuple[int, str, str]:
    """Raises PropertiesError."""
    end = _end_of_key(line)
    rest = line[end:].lstrip()
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip()
    try:
        key, value = _unescape(line[:end]), _unescape(rest).rstrip()
    except ValueError as error:
        raise PropertiesError(number, str(error)) from error
    if "\0" in key + value:
        name = "a key" if "\0" in key else key
        raise PropertiesError(number, f"{name} holds the character U+0000, which no value may hold")
    return number, key, value


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    pending, first = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.lstrip()
        if not pending and (not stripped or stripped[0] in "#!"):
            continue
        first = first if pending else number
        trailing = len(stripped) - len(stripped.rstrip("\\"))
        if trailing % 2:
            pending += stripped[:-1]
            continue
        yield first, pending + stripped
        pending = ""
    if pending:
        yield first, pending


def _end_of_key(line: str) -> int:
    position = 0
    while position < len(line) and line[position] not in "=: \t":
        position += 2 if line[position] == "\\" else 1
    return position


def _unescape(text: str) -> str:
    """Raises ValueError. Java's escapes are units of UTF-16: two of them may be one character."""
    out, position = [], 0
    while position < len(text):
        if text[position] != "\\" or position + 1 == len(text):
            out.append(text[position])
            position += 1
        elif text[position + 1] == "u":
            digits = text[position + 2 : position + 6]
            if _FOUR_HEX_DIGITS.fullmatch(digits) is None:
                raise ValueError(_NO_ESCAPE)
            out.append(chr(int(digits, 16)))
            position += 6
        else:
            out.append(_ESCAPES.get(text[position + 1], text[position + 1]))
            position += 2
    try:
        return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError(_HALF_A_CHARACTER) from None
