"""Records as text: what `kquorum produce` reads, and what `kquorum consume` prints."""

import base64
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kquorum.cli.failures import CliError, ExitStatus, usage_error
from kquorum.wire.record_parsing import Record

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class NewRecord:
    """`partition` is None where the key decides."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int
    partition: int | None

    @property
    def size_bytes(self) -> int:
        return len(self.key or b"") + len(self.value or b"") + 100

    def at(self, index: int) -> Record:
        """As the record of this place in its batch."""
        return Record(index, self.timestamp_ms, self.key, self.value, self.headers)


class RecordReader:
    """Makes a record of each line: its value, after `key_separator` if there is one; or all of it, from JSON."""

    def __init__(
        self,
        *,
        key: str | None,
        key_separator: str | None,
        headers: Sequence[str],
        partition: int | None,
        is_json: bool,
    ) -> None:
        self._key = None if key is None else key.encode()
        self._separator = None if key_separator is None else key_separator.encode()
        self._headers = tuple(_header(text) for text in headers)
        self._partition = partition
        self._is_json = is_json

    def records(self, lines: Iterable[bytes]) -> Iterator[NewRecord]:
        """Raises CliError for a line that cannot be read, with its number."""
        for number, line in enumerate(lines, 1):
            if self._is_json:
                if line.strip():
                    yield self._from_json(number, line)
            else:
                yield self._from_line(number, line)

    def _from_line(self, number: int, line: bytes) -> NewRecord:
        key, value = self._key, line
        if self._separator is not None:
            found, separator, value = line.partition(self._separator)
            if not separator:
                text = self._separator.decode()
                raise CliError(
                    f"line {number} has no {text!r} between key and value", status=ExitStatus.DAMAGED_INPUT
                )
            key = found
        return NewRecord(key, value, self._headers, _now_ms(), self._partition)

    def _from_json(self, number: int, line: bytes) -> NewRecord:
        try:
            told = json.loads(line)
            if not isinstance(told, dict):
                raise ValueError("it is no object")
            record = NewRecord(
                _bytes(told, "key"),
                _bytes(told, "value"),
                tuple((str(each["name"]), _bytes(each, "value")) for each in told.get("headers", ())),
                int(told.get("timestamp_ms", _now_ms())),
                self._partition,
            )
        except (ValueError, TypeError, KeyError) as error:
            raise CliError(
                f"line {number} is no record in JSON: {error}", status=ExitStatus.DAMAGED_INPUT
            ) from None
        return replace(record, headers=(*record.headers, *self._headers))


def _header(text: str) -> tuple[str, bytes]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise usage_error(f"--header {text!r} is not NAME=VALUE")
    return name, value.encode()


def _bytes(told: dict[str, Any], name: str) -> bytes | None:
    coded = told.get(f"{name}_base64")
    if coded is not None:
        return base64.b64decode(coded, validate=True)
    text = told.get(name)
    if text is not None and not isinstance(text, str):
        raise ValueError(f"{name} is no text")
    return None if text is None else text.encode()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def record_as_json(partition: int, record: Record) -> dict[str, object]:
    """What is no text is in base64, under another name."""
    return {
        "partition": partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        **_text("key", record.key),
        **_text("value", record.value),
        "headers": [{"name": name, **_text("value", value)} for name, value in record.headers],
    }


def _text(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def murmur2(data: bytes) -> int:
    """Austin Appleby's MurmurHash2 (32 bits) with the seed by which Kafka's clients place keys (KIP-480)."""
    mask, multiplier = 0xFFFF_FFFF, 0x5BD1_E995
    length = len(data)
    result = 0x9747_B28C ^ length
    whole = length & ~3
    for position in range(0, whole, 4):
        block = int.from_bytes(data[position : position + 4], "little") * multiplier & mask
        block = (block ^ block >> 24) * multiplier & mask
        result = result * multiplier & mask ^ block
    if length > whole:
        result = (result ^ int.from_bytes(data[whole:], "little")) * multiplier & mask
    result = (result ^ result >> 13) * multiplier & mask
    return result ^ result >> 15
