"""Compiles a plan into a codec: the one place that runs generated source."""

import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from kquorum.wire.codegen import json_runtime
from kquorum.wire.codegen.json_text import has_text, write_row, write_text
from kquorum.wire.codegen.lines import Lines
from kquorum.wire.codegen.plan import StructPlan
from kquorum.wire.codegen.reading import write_decoder
from kquorum.wire.codegen.runtime import NAMESPACE, ElementsLeft
from kquorum.wire.codegen.shapes import write_shape_decoder
from kquorum.wire.codegen.writing import write_encoder

Encoder = Callable[[Any, bytearray], None]
Decoder = Callable[[bytes, int], tuple[Any, int]]


@dataclass(frozen=True, slots=True)
class Codec:
    """`encode(entity, out)` appends; `decode(buffer, position)` answers the entity and the position after it.

    Both are raw: a short buffer shows as struct.error or IndexError, bad UTF-8 as UnicodeDecodeError. The
    public functions of `wire.codec` and `wire.record_frame` turn these into DecodeErrors. `source` is for
    eyes only.
    """

    encode: Encoder
    decode: Decoder
    source: str


def compile_codec(plan: StructPlan, elements: ElementsLeft | None = None) -> Codec:
    """With `elements` its `decode` takes the lengths of all arrays, and the numbers of unknown tagged fields, off it
    and ends where nothing is left."""
    encoder, decoder = _compiled_encoder(plan), _compiled_decoder(plan, elements)
    return Codec(
        encode=cast(Encoder, encoder.namespace["encode"]),
        decode=cast(Decoder, decoder.namespace["decode"]),
        source=f"{encoder.source}\n\n{decoder.source}",
    )


def compile_encoder(plan: StructPlan) -> Encoder:
    """The half of `compile_codec` that a sender needs."""
    return cast(Encoder, _compiled_encoder(plan).namespace["encode"])


def compile_decoder(plan: StructPlan, elements: ElementsLeft | None = None) -> Decoder:
    """The half of `compile_codec` that a reader needs."""
    return cast(Decoder, _compiled_decoder(plan, elements).namespace["decode"])


def _compiled_encoder(plan: StructPlan) -> Lines:
    nested = {
        f"encode_{field.name}": compile_encoder(field.nested)
        for field in plan.fields
        if field.nested is not None
    }
    lines = Lines({**NAMESPACE, **nested})
    write_encoder(lines, plan)
    _run(lines.source, f"<encoder of {_name_of(plan)}>", lines.namespace)
    return lines


def _compiled_decoder(plan: StructPlan, elements: ElementsLeft | None) -> Lines:
    nested = {
        f"decode_{field.name}": compile_decoder(field.nested, elements)
        for field in plan.fields
        if field.nested is not None
    }
    lines = Lines({**NAMESPACE, **nested})
    write_decoder(lines, plan, elements)
    kind = "decoder" if elements is None else "bounded decoder"
    _run(lines.source, f"<{kind} of {_name_of(plan)}>", lines.namespace)
    return lines


def _name_of(plan: StructPlan) -> str:
    return f"{plan.cls.__module__}.{plan.cls.__name__} v{plan.version}"


def compile_shape(plan: StructPlan, value: bytes, start: int) -> Callable[[bytes], Any] | None:
    """A decoder of messages that look like this one; None where there is nothing to gain. See `wire.codegen.shapes`."""
    lines = Lines(dict(NAMESPACE))
    if not write_shape_decoder(lines, plan, value, start):
        return None
    _run(lines.source, f"<shape of {plan.cls.__name__} v{plan.version}, {len(value)} bytes>", lines.namespace)
    return cast(Callable[[bytes], Any], lines.namespace["decode"])


def compile_row(
    plan: StructPlan, start: int, *, shown: Mapping[str, str], result: str, names: Mapping[str, object]
) -> Callable[[bytes], tuple[Any, ...]] | None:
    """A function from messages to rows with their JSON text; None where none can be made. See `wire.codegen.json_text`;
    `names` are those in `shown` and `result`."""
    if not has_text(plan):
        return None
    lines = Lines({**_text_namespace(plan), **names})
    write_row(lines, plan, start, shown, result)
    _run(lines.source, f"<row of {plan.cls.__name__} v{plan.version}>", lines.namespace)
    return cast(Callable[[bytes], tuple[Any, ...]], lines.namespace["row"])


def _text_namespace(plan: StructPlan) -> dict[str, object]:
    """What the text of `plan` needs, the functions for its structs among them."""
    namespace: dict[str, object] = {**NAMESPACE, **json_runtime.NAMESPACE}
    for field in plan.fields:
        if field.nested is not None:
            lines = Lines(_text_namespace(field.nested))
            write_text(lines, field.nested)
            nested = field.nested
            _run(lines.source, f"<text of {nested.cls.__name__} v{nested.version}>", lines.namespace)
            namespace[f"text_{field.name}"] = lines.namespace["text"]
    return namespace


def _run(source: str, file_name: str, namespace: dict[str, object]) -> None:
    # The line cache lets tracebacks and debuggers show generated lines.
    linecache.cache[file_name] = (len(source), None, source.splitlines(keepends=True), file_name)
    # The source is assembled from the field tables of this program, never from anything read.
    exec(compile(source, file_name, "exec"), namespace)  # noqa: S102
