"""From a config's text to its value, as Kafka's ConfigDef reads it; what the value may be; and the words for a value
that is not lawful, which clients know from Kafka."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

ConfigValue = bool | int | float | str | tuple[str, ...]

# What Java's `trim` takes off: everything up to a blank.
_TRIMMED = "".join(map(chr, range(33)))
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?(NaN|Infinity|((\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?)[fFdD]?)", re.ASCII)
# What Java takes for blanks around commas.
_BLANKS = " \t\n\r\f\v"
_BLANK = re.compile(f"[{_BLANKS}]")
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
    if not trimmed:
        return ()
    items = trimmed.split(",")
    # A list of 32 KB may have 8,000 items.
    return tuple([item.strip(_BLANKS) for item in items] if _BLANK.search(trimmed) else items)


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

Check = Callable[[str, ConfigValue, str], None]


class InvalidConfigRequestError(Exception):
    """The request asks for what cannot be, whatever the values; the words are for the client."""


class InvalidConfigError(Exception):
    """A name or value is not lawful; the words are for the client."""


def invalid_value(name: str, text: str, problem: str) -> InvalidConfigError:
    return InvalidConfigError(f"Invalid value {text} for configuration {name}: {problem}")


@dataclass(frozen=True, slots=True)
class Validator:
    """`words` say what is lawful. `check(name, value, text)` raises InvalidConfigError for what is not.

    `low` and `high` bound a number, `min_length` a text or list: node.config checks the same rules by them.
    """

    words: str
    check: Check
    low: float | None = None
    high: float | None = None
    min_length: int = 0


def _simple(
    words: str,
    problem_of: Callable[[ConfigValue], str | None],
    *,
    low: float | None = None,
    high: float | None = None,
) -> Validator:
    def check(name: str, value: ConfigValue, text: str) -> None:
        problem = problem_of(value)
        if problem is not None:
            raise invalid_value(name, text.strip(), problem)

    return Validator(words, check, low, high)


def at_least(low: int) -> Validator:
    return _simple(f"at least {low}", lambda value: _below(value, low), low=low)


def between(low: float, high: float) -> Validator:
    def problem(value: ConfigValue) -> str | None:
        assert isinstance(value, int | float)
        return _below(value, low) or (f"Value must be no more than {high}" if value > high else None)

    return _simple(f"{low} to {high}", problem, low=low, high=high)


def _below(value: ConfigValue, low: float) -> str | None:
    assert isinstance(value, int | float)
    return f"Value must be at least {low}" if value < low else None


def between_or_default(low: int, high: int, default: int) -> Validator:
    """gzip's level: -1 stands for its own default."""

    def problem(value: ConfigValue) -> str | None:
        assert isinstance(value, int)
        is_lawful = value == default or low <= value <= high
        return None if is_lawful else f"Value must be between {low} and {high} or equal to {default}"

    return _simple(f"{low} to {high}, or {default}", problem)


def one_of(*allowed: str) -> Validator:
    words = ", ".join(allowed)
    return _simple(words, lambda value: None if value in allowed else f"String must be one of: {words}")


def one_of_any_case(*allowed: str) -> Validator:
    words = ", ".join(allowed)
    problem = f"String must be one of (case insensitive): {words}"
    return _simple(words, lambda value: None if str(value).upper() in allowed else problem)


def not_empty() -> Validator:
    def check(name: str, value: ConfigValue, text: str) -> None:
        if not value:
            raise invalid_value(name, text, "String must be non-empty")

    return Validator("not empty", check, min_length=1)


def list_of(*allowed: str, may_be_empty: bool = True) -> Validator:
    """Without `allowed`, anything; no item may be empty."""
    words = ", ".join(allowed) or "any values"

    def check(name: str, value: ConfigValue, _text: str) -> None:
        assert isinstance(value, tuple)
        if not value and not may_be_empty:
            lawful = f"[{words}]" if allowed else "any non-empty value"
            raise InvalidConfigError(
                f"Configuration '{name}' must not be empty. Valid values include: {lawful}"
            )
        for item in value:
            if not item:
                raise InvalidConfigError(f"Configuration '{name}' values must not be empty.")
            if allowed and item not in allowed:
                raise invalid_value(name, item, f"String must be one of: {words}")

    shown = f"any of {words}" if allowed else "" if may_be_empty else "not empty"
    return Validator(shown, check, min_length=0 if may_be_empty else 1)


_PAIRS = re.compile(r"[0-9]+:[0-9]+(,[0-9]+:[0-9]+)*")


def throttled_replicas() -> Validator:
    """Nothing, "*", or pairs of partition and broker."""
    form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."

    def check(name: str, value: ConfigValue, _text: str) -> None:
        assert isinstance(value, tuple)
        # One match over all items: none of them has a comma.
        if value not in ((), ("*",)) and _PAIRS.fullmatch(",".join(value)) is None:
            problem = f"{name} must be the literal '*' or a list of replicas in the following format: {form}"
            raise invalid_value(name, f"[{', '.join(value)}]", problem)

    return Validator("* or partition:broker pairs", check)


_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)
_BY_DURATION = "by_duration:"
_DURATION_DIGITS_AT_MOST = 40


def auto_offset_reset() -> Validator:
    """Where a share group begins (KIP-932); a duration is ISO 8601's, as Java reads it, and not negative."""

    def check(name: str, value: ConfigValue, _text: str) -> None:
        assert isinstance(value, str)
        if value in ("earliest", "latest"):
            return
        if value.startswith(_BY_DURATION) and _is_duration(value.removeprefix(_BY_DURATION)):
            return
        problem = (
            f"Invalid value `{value}` for configuration {name}. The value must be either 'earliest', 'latest' or of "
            "the format 'by_duration:<PnDTnHnMn.nS>'."
        )
        raise invalid_value(name, value, problem)

    return Validator("latest, earliest or by_duration:PnDTnHnMn.nS", check)


def _is_duration(text: str) -> bool:
    """Java counts the seconds in a long."""
    found = _DURATION.fullmatch(text)
    if found is None or text[-1].upper() in "PT":
        return False
    sign, days, _, hours, minutes, seconds, fraction = found.groups()
    counts = (days or "0", hours or "0", minutes or "0", seconds or "0")
    if max(map(len, counts)) > _DURATION_DIGITS_AT_MOST:
        return False
    total = sum(int(count) * unit for count, unit in zip(counts, (86_400, 3600, 60, 1), strict=True))
    nanoseconds = int((fraction or "0").ljust(9, "0")) * (-1 if counts[3].startswith("-") else 1)
    total_ns = (total * 10**9 + nanoseconds) * (-1 if sign == "-" else 1)
    return 0 <= total_ns < 2**63 * 10**9
