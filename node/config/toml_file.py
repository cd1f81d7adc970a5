"""The quorum config: `[cluster]`, `[defaults]` and one `[[nodes]]` table for each node, all with Kafka's keys.

TOML reads `process.roles = "broker"` as a table within a table; here it is one key again.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from kquorum.node.config.config_file import read_config_text
from kquorum.node.config.errors import ConfigError, Place, Problem
from kquorum.node.config.key_hints import nearest
from kquorum.node.config.raw import RawCluster, RawNode, RawValue
from kquorum.node.config.values import as_items

_SECTIONS = ("cluster", "defaults", "nodes")
# In [defaults] these are meant for the controllers; a broker that has one itself is a mistake.
CONTROLLERS_ONLY = frozenset({"controller.quorum.auto.join.enable"})
_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?")
_ASSIGNMENT = re.compile(r"""\s*([A-Za-z0-9_."'-]+(?:\s*\.\s*[A-Za-z0-9_"'-]+)*)\s*=""")

_INT_BITS = 64

# Each is read and checked by itself, with the defaults of all.
MOST_NODES: Final = 1_000
# Several times as many as there are; each node has a copy of them.
MOST_COMMON_KEYS: Final = 2_000
# To read a key with dots takes a time that grows with the square of their number.
_MOST_PARTS: Final = 100
_NOT_OF_A_KEY = re.compile(r"""[^\w."' \t-]+""")
# What stands before the equals sign; the patterns above take long for a long line of a text.
_BEGINNING_CHARACTERS: Final = 1_000

# (section and the number of its table, key) -> line
_Lines = dict[tuple[str, int, str], int]


def read_toml(path: Path) -> RawCluster:
    """Raises ConfigError when it is not TOML or has no node."""
    text = read_config_text(path)
    if any(part.count(".") > _MOST_PARTS for part in _NOT_OF_A_KEY.split(text)):
        raise ConfigError([Problem("it is nested too deeply to be a config", Place(path))])
    try:
        return _read(path, text, _document(path, text))
    except RecursionError:
        raise ConfigError([Problem("it is nested too deeply to be a config", Place(path))]) from None


def _document(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([Problem(f"this is not TOML: {error}", Place(path))]) from error
    except ValueError as error:  # Python's limit of the digits that it takes
        raise ConfigError([Problem("this is not TOML: a number has too many digits", Place(path))]) from error


def _read(path: Path, text: str, document: dict[str, Any]) -> RawCluster:
    lines = _lines_of(text)
    problems = list(_section_problems(path, document, lines))
    common = _keys(path, document.get("cluster", {}), ("cluster", 0), lines, problems)
    common |= _keys(path, document.get("defaults", {}), ("defaults", 0), lines, problems)
    if len(common) > MOST_COMMON_KEYS:
        message = f"[cluster] and [defaults] have {len(common):,} keys, and may have {MOST_COMMON_KEYS:,}"
        raise ConfigError([Problem(message, Place(path))])
    tables = document.get("nodes")
    if not isinstance(tables, list) or not tables:
        problems.append(Problem("there are no nodes: add a [[nodes]] table for each", Place(path)))
        raise ConfigError(problems)
    if len(tables) > MOST_NODES:
        message = f"there are {len(tables):,} nodes, and a config may have {MOST_NODES:,}: divide it into several files"
        raise ConfigError([Problem(message, Place(path))])
    nodes = []
    for number, table in enumerate(tables):
        own = _keys(path, table, ("nodes", number), lines, problems)
        place = Place(path, lines.get(("nodes", number, "")))
        nodes.append(RawNode(_with_node_id(_inherited(common, own) | own), place))
    return RawCluster(path, tuple(nodes), tuple(problems))


def flatten(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """(dotted key, value) of every leaf."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _keys(
    path: Path, table: object, section: tuple[str, int], lines: _Lines, problems: list[Problem]
) -> dict[str, RawValue]:
    """What is wrong is added to `problems`, and left out."""
    if not isinstance(table, Mapping):
        problems.append(Problem(f"[{section[0]}] must be a table", Place(path)))
        return {}
    keys: dict[str, RawValue] = {}
    for key, value in flatten(table):
        place = Place(path, lines.get((*section, key)))
        if (fault := _fault(value)) is None:
            keys[key] = RawValue(value, place)
        else:
            problems.append(Problem(f"{key} {fault}", place))
    return keys


def _fault(value: object) -> str | None:
    """Why no config holds such a value, whatever its key is; None if one may."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, list):
            return "is a list of lists, which no config holds"
        if isinstance(item, str) and "\0" in item:
            return "holds the character U+0000, which no value may hold"
        if isinstance(item, int) and item.bit_length() > _INT_BITS:
            return f"is a number that no config holds: it has more than {_INT_BITS} bits"
    return None


def _inherited(common: dict[str, RawValue], own: dict[str, RawValue]) -> dict[str, RawValue]:
    """The defaults that are meant for this node: what only a controller may say passes the others by."""
    roles = (common | own).get("process.roles")
    if roles is None or "controller" in as_items(roles.value):
        return common
    return {key: raw for key, raw in common.items() if key not in CONTROLLERS_ONLY}


def _with_node_id(keys: dict[str, RawValue]) -> dict[str, RawValue]:
    """`{node.id}` in a text stands for the node's id, so that one default can serve all nodes."""
    if "node.id" not in keys:
        return keys
    node_id = str(keys["node.id"].value)
    return {
        key: RawValue(raw.value.replace("{node.id}", node_id), raw.place)
        if isinstance(raw.value, str)
        else raw
        for key, raw in keys.items()
    }


def _section_problems(path: Path, document: Mapping[str, object], lines: _Lines) -> Iterator[Problem]:
    for name in document:
        if name not in _SECTIONS:
            yield Problem(
                f"unknown section [{name}]{nearest(name, _SECTIONS)}; "
                "a quorum config has [cluster], [defaults] and [[nodes]]",
                Place(path, lines.get((name, 0, "")) or lines.get(("", 0, name))),
            )


def _lines_of(text: str) -> _Lines:
    """Where each section and key is written; tomllib does not tell."""
    lines: _Lines = {}
    section, prefix, counts = "", "", dict.fromkeys(_SECTIONS, -1)
    for number, whole in enumerate(text.splitlines(), start=1):
        line = whole[:_BEGINNING_CHARACTERS]
        if header := _HEADER.fullmatch(line):
            name = _unquoted(header[2])
            section, _, rest = name.partition(".")
            prefix = f"{rest}." if rest else ""
            if not rest:
                counts[section] = counts.get(section, -1) + 1
            lines.setdefault((section, max(counts.get(section, 0), 0), ""), number)
        elif assignment := _ASSIGNMENT.match(line):
            table = max(counts.get(section, 0), 0)
            lines.setdefault((section, table, prefix + _unquoted(assignment[1])), number)
    return lines


def _unquoted(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))
