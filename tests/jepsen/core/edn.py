"""A history in EDN, one operation a line, as Knossos and Elle read it.

Keys of maps, types and names of operations become keywords. What Knossos' models expect as values differs from
what our workloads write, so a hook may turn each operation's value: see `register_value` and `version_value`.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.jepsen.core.history import History, Op, OpType

_KEYWORD = re.compile(r"[A-Za-z*!_?$%&=<>][\w*!?$%&=<>.+-]*")
_ESCAPED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_LONG_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Keyword:
    name: str


ValueOf = Callable[[Op], Any]


def write_history_edn(history: History, path: Path, value_of: ValueOf | None = None) -> None:
    """`value_of` gives the value to write for an operation of a client; without, it is the operation's own."""
    with path.open("w", encoding="utf-8") as lines:
        for op in history:
            value = value_of(op) if value_of is not None and op.is_client else op.value
            lines.write(edn_of(_as_map(op, value)) + "\n")


def _as_map(op: Op, value: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "index": op.index,
        # The nemesis' operations are `info` on both sides: no client waits for them.
        "type": Keyword(op.type.value if op.is_client else OpType.INFO.value),
        "process": op.process if op.is_client else Keyword("nemesis"),
        "f": Keyword(op.f),
        "value": value,
        "time": op.time_ns,
    }
    extra = {"node": op.node, "error": op.error, "final": op.final or None}
    return values | {key: each for key, each in extra.items() if each is not None}


def edn_of(value: Any) -> str:
    """Lists and tuples become vectors. Raises TypeError for what EDN has no form for."""
    match value:
        case None:
            return "nil"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if -_LONG_MAX - 1 <= value <= _LONG_MAX else f"{value}N"
        case float():
            return _float(value)
        case str():
            return '"' + "".join(_character(each) for each in value) + '"'
        case Keyword(name):
            return f":{name}"
        case Mapping():
            return "{" + ", ".join(f"{_key(key)} {edn_of(each)}" for key, each in value.items()) + "}"
        case list() | tuple():
            return "[" + " ".join(map(edn_of, value)) + "]"
        case set() | frozenset():
            return "#{" + " ".join(sorted(map(edn_of, value))) + "}"
    raise TypeError(f"{type(value).__name__} has no form in EDN")


def _key(key: Any) -> str:
    return f":{key}" if isinstance(key, str) and _KEYWORD.fullmatch(key) else edn_of(key)


def _float(value: float) -> str:
    if math.isnan(value):
        return "##NaN"
    if math.isinf(value):
        return "##Inf" if value > 0 else "##-Inf"
    return repr(value)


def _character(character: str) -> str:
    if character in _ESCAPED:
        return _ESCAPED[character]
    return f"\\u{ord(character):04x}" if ord(character) < 0x20 else character


def register_value(op: Op) -> Any:
    """For independent keys and Knossos' cas-register: `[key value]`, and `[key [old new]]` for a cas."""
    if isinstance(op.value, Mapping) and "key" in op.value:
        return [op.value["key"], op.value.get("value")]
    return op.value


def version_value(op: Op, step: int = 1) -> Any:
    """The versioned register as a cas-register that holds the version alone: a cas is `[key [expected new]]`.

    Knossos compares old values, which no cas of ours names; the version stands for the value, as it is written once.
    """
    if not (isinstance(op.value, Mapping) and "key" in op.value):
        return op.value
    if "expected" in op.value:
        expected = op.value["expected"]
        return [op.value["key"], [expected, expected + step]]
    return [op.value["key"], op.value.get("version")]
