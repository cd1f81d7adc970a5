"""The value of a data record to the columns that depend on nothing else: its type, its JSON, what it is about.

Most values go by a function made for their type and version. The others, and those it does not take, are decoded as
for `log dump`; both ways give the same.
"""

import json
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from kquorum.spark_replay.decode.records import (
    ENTITY_EXPRESSIONS,
    ENTITY_NAMES,
    NOTHING,
    SHORT_VALUE_BYTES,
    Content,
    content_of_value,
    entity_of,
    raw_and_problem,
)
from kquorum.wire.errors import DecodeError
from kquorum.wire.metadata_records.registry import BY_API_KEY
from kquorum.wire.record_frame import FRAME_VERSION, SHORT_FRAME_BYTES
from kquorum.wire.record_json import record_to_json
from kquorum.wire.record_text import Otherwise, row_function

# `json.dumps` with options makes an encoder for each call.
_ENCODE: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_NO_ENTITY: Final = "None, None, None, None"
_NOT_TAKEN: Final = (Otherwise, DecodeError, IndexError, struct.error, UnicodeDecodeError)


class Kind(NamedTuple):
    """What records of one type and version have in common; see `rows.RecordRow`."""

    record_type: str
    api_key: int | None
    version: int | None


# `Kind`, then the columns of a `RecordRow` from its payload (as text) on: a plain tuple is made in half the time.
ValueRow = tuple[Kind, str | None, str | None, str | None, int | None, int | None, bytes | None, str | None]
VALUE_COLUMNS: Final = (
    *("payload", "topic_id", "topic_name", "partition_id", "broker_id"),
    *("raw", "problem"),
)


class ValueReader:
    """`row(value)` of data records; secrets as for `RecordDecoder`."""

    def __init__(self, *, show_secrets: bool) -> None:
        self._show_secrets = show_secrets
        self._functions: dict[bytes, Callable[[bytes], ValueRow]] = {}
        # Nine records of ten in an idle cluster's log are NoOps, and all of them the same four bytes.
        self._row_of_short = lru_cache(maxsize=1024)(self._decoded)

    def row(self, value: bytes) -> ValueRow:
        if len(value) <= SHORT_VALUE_BYTES:
            return self._row_of_short(value)
        frame = value[:SHORT_FRAME_BYTES]
        function = self._functions.get(frame) or self._learn(frame)
        try:
            return function(value)
        except _NOT_TAKEN:
            return self._decoded(value)

    def _learn(self, frame: bytes) -> Callable[[bytes], ValueRow]:
        frame_version, api_key, version = frame
        cls = BY_API_KEY.get(api_key)
        if frame_version != FRAME_VERSION or cls is None or not cls.versions[0] <= version <= cls.versions[1]:
            return self._decoded
        function = _function(api_key, version, show_secrets=self._show_secrets) or self._decoded
        self._functions[frame] = function
        return function

    def _decoded(self, value: bytes) -> ValueRow:
        return row_of_content(content_of_value(value), show_secrets=self._show_secrets)


def row_of_content(content: Content, *, show_secrets: bool) -> ValueRow:
    """The row of a value taken apart, data or control."""
    kind = Kind(content.record_type, content.api_key, content.version)
    known = content.entity
    if known is None:
        return (kind, None, *NOTHING, *raw_and_problem(content, show_secrets=show_secrets))
    payload = _ENCODE(record_to_json(known, show_secrets=show_secrets))
    return (kind, payload, *entity_of(known), None, None)


@lru_cache(maxsize=256)
def _function(api_key: int, version: int, *, show_secrets: bool) -> Callable[[bytes], ValueRow] | None:
    cls = BY_API_KEY[api_key]
    entity = ENTITY_EXPRESSIONS.get(cls.__name__, _NO_ENTITY)
    names: Mapping[str, object] = {"KIND": Kind(cls.__name__, api_key, version), **ENTITY_NAMES}
    result = f"KIND, text, {entity}, None, None"
    return row_function(cls, version, show_secrets=show_secrets, result=result, names=names)
