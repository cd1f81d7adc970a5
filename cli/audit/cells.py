"""Values of Spark's, and of logs, as a terminal and JSON may have them."""

from collections.abc import Iterable
from math import isfinite
from typing import Any

from pyspark.sql import Row


def plain(value: object) -> Any:
    """A value of Spark's as JSON knows it."""
    if isinstance(value, Row):
        return {name: plain(each) for name, each in value.asDict().items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def ids(values: Iterable[int] | None) -> str:
    return "" if values is None else " ".join(map(str, values))


def number(value: int | None) -> str:
    """An id, an offset or an epoch, which nobody reads with commas."""
    return "" if value is None else str(value)


def duration(milliseconds: int | None) -> str:
    """`1 d 02:03:04`, `02:03:04` or `4.250 s`."""
    if milliseconds is None:
        return ""
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.3f} s"
    seconds = milliseconds // 1000
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    text = f"{hours:02d}:{minutes:02d}:{seconds % 60:02d}"
    return f"{days} d {text}" if days else text
