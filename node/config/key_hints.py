"""What a wrong key or value of a config file was probably meant to be."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from kquorum.metadata.configs.definition import ConfigDefinition, ConfigType
from kquorum.metadata.configs.table import FILE_CONFIGS, LISTENER_LIMITS, TOPIC_CONFIGS
from kquorum.node.config.security_keys import LISTENER_PREFIX, SECURITY_KEYS
from kquorum.wire.near_names import near_names

_CUTOFF = 0.6
# Names that are almost as near as the nearest are named too.
_ALMOST = 0.03

# As the last word of a key -> its unit.
_KEY_UNITS: Mapping[str, str] = {
    "ms": "milliseconds",
    "millis": "milliseconds",
    "milliseconds": "milliseconds",
    "s": "seconds",
    "sec": "seconds",
    "secs": "seconds",
    "seconds": "seconds",
    "minutes": "minutes",
    "hours": "hours",
    "days": "days",
    "bytes": "bytes",
    "kb": "KiB",
    "mb": "MiB",
    "gb": "GiB",
}
# As the end of a value -> its size in milliseconds, or in bytes.
_TIMES = {"ms": 1, "s": 1000, "sec": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZES = {"b": 1, "k": 1024, "kb": 1024, "m": 1024**2, "mb": 1024**2, "g": 1024**3, "gb": 1024**3}
_SIZES |= {"kib": 1024, "mib": 1024**2, "gib": 1024**3}
_MS_OF = {"milliseconds": 1, "seconds": 1000, "minutes": 60_000, "hours": 3_600_000, "days": 86_400_000}
_NUMBER_WITH_UNIT = re.compile(r"(\d{1,15})\s*([a-zA-Z]+)", re.ASCII)
_NUMBERS = (ConfigType.INT, ConfigType.SHORT, ConfigType.LONG)


def nearest(name: str, known: Iterable[str]) -> str:
    """` (did you mean X?)` for the known names most like `name`, or nothing when none is."""
    found = near_names(name, known, cutoff=_CUTOFF)
    ratios = [difflib.SequenceMatcher(None, each, name).ratio() for each in found]
    near = [each for each, ratio in zip(found, ratios, strict=True) if ratio >= ratios[0] - _ALMOST]
    return f" (did you mean {' or '.join(near)}?)" if near else ""


@lru_cache(maxsize=1_000)  # a default with a wrong key is one of each node
def unknown_key(name: str) -> str:
    """What to say behind `unknown key <name>`; empty when no key is like it."""
    return _of_a_topic(name) or _in_another_unit(name) or _of_a_listener(name) or nearest(name, FILE_CONFIGS)


def _of_a_topic(name: str) -> str:
    definition = TOPIC_CONFIGS.get(name)
    if definition is None:
        return ""
    default = f"; {definition.synonyms[0].name} is the default of all topics" if definition.synonyms else ""
    return f" ({name} is a config of topics, which `kquorum configs alter --topic` sets{default})"


def _in_another_unit(name: str) -> str:
    head, _, last = name.rpartition(".")
    stem = head if last in _KEY_UNITS else name
    found = [
        f"{key}, in {_KEY_UNITS[unit]}" for unit in _KEY_UNITS if (key := f"{stem}.{unit}") in FILE_CONFIGS
    ]
    return f" (did you mean {' or '.join(found)}?)" if found else ""


def _of_a_listener(name: str) -> str:
    """` (did you mean listener.name.client.plain.sasl.jaas.config?)` for a misspelt key of one listener."""
    parts = name.split(".")
    if not name.startswith(LISTENER_PREFIX):
        return ""
    heads = (".".join(parts[:end]) for end in range(3, len(parts)))
    bases = (*SECURITY_KEYS, *LISTENER_LIMITS)
    return nearest(name, [f"{head}.{base}" for head in heads for base in bases])


def value_in_a_unit(name: str, value: object) -> str:
    """`; write 9000: the key is in milliseconds` for a value such as `9s`, where a plain number belongs."""
    definition = FILE_CONFIGS.get(name)
    found = _NUMBER_WITH_UNIT.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or definition is None or definition.type not in _NUMBERS:
        return ""
    number, unit = int(found[1]), found[2].lower()
    for key_unit, written in _numbers_of(definition, number, unit):
        return f"; write {written}: the key is in {key_unit}"
    return "; write the number alone"


def _numbers_of(definition: ConfigDefinition, number: int, unit: str) -> Iterator[tuple[str, int]]:
    """(unit of the key, the value in it), if the key has a unit and the value is a whole number of it."""
    key_unit = _KEY_UNITS.get(definition.name.rpartition(".")[2])
    if key_unit in _MS_OF and unit in _TIMES and number * _TIMES[unit] % _MS_OF[key_unit] == 0:
        yield key_unit, number * _TIMES[unit] // _MS_OF[key_unit]
    elif key_unit == "bytes" and unit in _SIZES:
        yield key_unit, number * _SIZES[unit]
