"""Functions from the bytes of metadata records to rows with their JSON text: what `record_to_json` says, made directly.

For readers of whole logs: neither a record's entity nor a dictionary of its fields is built.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any, Final

from kquorum.wire.codegen.compiler import compile_row
from kquorum.wire.codegen.json_runtime import Otherwise
from kquorum.wire.record_frame import SHORT_FRAME_BYTES
from kquorum.wire.record_json import REDACTED, SECRET_FIELDS, redacted_token
from kquorum.wire.schema import MetadataRecord, plan_of
from kquorum.wire.sensitive_configs import is_sensitive_config

__all__ = ["Otherwise", "row_function"]

_is_sensitive = lru_cache(maxsize=4096)(is_sensitive_config)
_REDACTED_TEXT: Final = encode_basestring(REDACTED)


def row_function(
    cls: type[MetadataRecord],
    version: int,
    *,
    show_secrets: bool,
    result: str = "text",
    names: Mapping[str, object] | None = None,
) -> Callable[[bytes], Any] | None:
    """A function from a record's value, whose frame is of three bytes, to the Python expression `result`.

    In it `text` is the record's JSON, `v_<field>` the value of a field, and whatever is in `names`. None where no such
    function can be made. It raises Otherwise, DecodeError, IndexError, struct.error or UnicodeDecodeError for a value
    that has to be read by `decode_record`, be it lawful or not.
    """
    shown = {} if show_secrets else _shown(cls.__name__)
    return compile_row(
        plan_of(cls, version),
        SHORT_FRAME_BYTES,
        shown=shown,
        result=result,
        names={**(names or {}), **_NAMES},
    )


def _shown(class_name: str) -> dict[str, str]:
    if class_name == "ConfigRecord":
        return {"value": "config_value_text(v_name, v_value, t_value)"}
    return {
        name: f"token_text(v_{name})" if name == "token_id" else "REDACTED_TEXT"
        for name in SECRET_FIELDS.get(class_name, ())
    }


def _config_value_text(name: str, value: str | None, text: str) -> str:
    return text if value is None or not _is_sensitive(name) else _REDACTED_TEXT


def _token_text(token_id: str) -> str:
    return encode_basestring(redacted_token(token_id))


_NAMES: Final[Mapping[str, object]] = {
    "config_value_text": _config_value_text,
    "token_text": _token_text,
    "REDACTED_TEXT": _REDACTED_TEXT,
}
