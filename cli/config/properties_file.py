"""A Kafka `.properties` file: the config of one node, as `kafka-server-start` takes it."""

from collections.abc import Iterator
from pathlib import Path

from cli.config.errors import Place
from cli.config.raw import RawCluster, RawNode, RawValue

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(path: Path) -> RawCluster:
    """The last of several lines with one key wins, as in Java."""
    keys = {
        key: RawValue(value, Place(path, line))
        for line, key, value in parse_properties(path.read_text("utf-8"))
    }
    return RawCluster(path, (RawNode(keys, Place(path)),))


def parse_properties(text: str) -> Iterator[tuple[int, str, str]]:
    """(line, key, value) in the format of java.util.Properties: comments, continued lines, `=`, `:` or a blank."""
    for number, line in _logical_lines(text):
        key, rest = _take_key(line)
        rest = rest.lstrip()
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip()
        yield number, key, _unescape(rest).rstrip()


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


def _take_key(line: str) -> tuple[str, str]:
    position = 0
    while position < len(line) and line[position] not in "=: \t":
        position += 2 if line[position] == "\\" else 1
    return _unescape(line[:position]), line[position:]


def _unescape(text: str) -> str:
    out, position = [], 0
    while position < len(text):
        if text[position] != "\\" or position + 1 == len(text):
            out.append(text[position])
            position += 1
        elif text[position + 1] == "u" and len(text) >= position + 6:
            out.append(chr(int(text[position + 2 : position + 6], 16)))
            position += 6
        else:
            out.append(_ESCAPES.get(text[position + 1], text[position + 1]))
            position += 2
    return "".join(out)
