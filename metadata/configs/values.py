"""From a config's text to its value, as Kafka's ConfigDef reads it."""

import re
from collections.abc import Callable, Mapping

ConfigValue = bool | int | float | str | tuple[str, ...]

# What Java's `trim` takes off: everything up to a blank.
_TRIMMED = "".join(map(chr, range(33)))
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?(NaN|Infinity|((\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?)[fFdD]?)", re.ASCII)
# What Java takes for blanks around commas.
_BLANKS = " \t\n\r\f\v"
_DIGITS_AT_MOST = 40


def _boolean(text: str) -> bool:
    word = text.strip(_TRIMMED).lower()
    if word not in ("true", "false"):
        raise ValueError("Expected value to be either true or false")
    return word == "true"


def _integer(kind: str, bits: int) -> Callable[[str], int]:
    limit = 1 << (bits - 1)

    def parse(text: str) -> int:
        trimmed = text.strip(_TRIMMED)
        if _INTEGER.fullmatch(trimmed) and len(trimmed) <= _DIGITS_AT_MOST:
            number = int(trimmed)
            if -limit <= number < limit:
                return number
        raise ValueError(f"Not a number of type {kind}")

    return parse


def _double(text: str) -> float:
    trimmed = text.strip(_TRIMMED)
    if _DOUBLE.fullmatch(trimmed) is None:
        raise ValueError("Not a number of type DOUBLE")
    return float(trimmed if trimmed.endswith(("NaN", "Infinity")) else trimmed.rstrip("fFdD"))


def _string(text: str) -> str:
    return text.strip(_TRIMMED)


def _list(text: str) -> tuple[str, ...]:
    trimmed = text.strip(_TRIMMED)
    return tuple(item.strip(_BLANKS) for item in trimmed.split(",")) if trimmed else ()


# By the name of the type.
PARSERS: Mapping[str, Callable[[str], ConfigValue]] = {
    "BOOLEAN": _boolean,
    "STRING": _string,
    "CLASS": _string,
    "PASSWORD": _string,
    "SHORT": _integer("SHORT", 16),
    "INT": _integer("INT", 32),
    "LONG": _integer("LONG", 64),
    "DOUBLE": _double,
    "LIST": _list,
}
