"""The quorum config: `[cluster]`, `[defaults]` and one `[[nodes]]` table for each node, all with Kafka's keys.

TOML reads `process.roles = "broker"` as a table within a table; here it is one key again.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from cli.config.errors import ConfigError, Place, Problem
from cli.config.known_keys import CONTROLLERS_ONLY, nearest
from cli.config.raw import RawCluster, RawNode, RawValue
from cli.config.values import as_items

_SECTIONS = ("cluster", "defaults", "nodes")
_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?")
_ASSIGNMENT = re.compile(r"""\s*([A-Za-z0-9_."'-]+(?:\s*\.\s*[A-Za-z0-9_"'-]+)*)\s*=""")

# (section and the number of its table, key) -> line
_Lines = dict[tuple[str, int, str], int]


def read_toml(path: Path) -> RawCluster:
    """Raises ConfigError when it is not TOML, has other sections or no node."""
    text = path.read_text(encoding="utf-8")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([Problem(f"this is not TOML: {error}", Place(path))]) from error
    lines = _lines_of(text)
    _check_sections(path, document, lines)
    common = dict(_keys(path, document.get("cluster", {}), ("cluster", 0), lines))
    common |= _keys(path, document.get("defaults", {}), ("defaults", 0), lines)
    nodes = []
    for number, table in enumerate(document["nodes"]):
        own = dict(_keys(path, table, ("nodes", number), lines))
        place = Place(path, lines.get(("nodes", number, "")))
        nodes.append(RawNode(_with_node_id(_inherited(common, own) | own), place))
    return RawCluster(path, tuple(nodes))


def flatten(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """(dotted key, value) of every leaf."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _keys(
    path: Path, table: object, section: tuple[str, int], lines: _Lines
) -> Iterator[tuple[str, RawValue]]:
    if not isinstance(table, Mapping):
        raise ConfigError([Problem(f"[{section[0]}] must be a table", Place(path))])
    for key, value in flatten(table):
        yield key, RawValue(value, Place(path, lines.get((*section, key))))


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


def _check_sections(path: Path, document: Mapping[str, object], lines: _Lines) -> None:
    problems = [
        Problem(
            f"unknown section [{name}]{nearest(name, _SECTIONS)}; "
            "a quorum config has [cluster], [defaults] and [[nodes]]",
            Place(path, lines.get((name, 0, "")) or lines.get(("", 0, name))),
        )
        for name in document
        if name not in _SECTIONS
    ]
    nodes = document.get("nodes")
    if not isinstance(nodes, list) or not nodes:
        problems.append(Problem("there are no nodes: add a [[nodes]] table for each", Place(path)))
    if problems:
        raise ConfigError(problems)


def _lines_of(text: str) -> _Lines:
    """Where each section and key is written; tomllib does not tell."""
    lines: _Lines = {}
    section, prefix, counts = "", "", dict.fromkeys(_SECTIONS, -1)
    for number, line in enumerate(text.splitlines(), start=1):
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
