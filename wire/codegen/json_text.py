"""The source of a function from a message's bytes straight to the JSON text of its fields, without an entity between.

The text is what `json` makes of the entity's fields in their order: compact, uuids in Kafka's form, bytes in Base64.
A message with a tagged field that its class does not know, or with anything wrong, raises Otherwise (or what a short
buffer raises): the caller reads its entity then, which tells.

In the source `v_<field>` is a field's value and `t_<field>` its text. Integers have no text of their own, uuids are
texts without quotes, and lists and structs have no value.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import groupby

from kquorum.wire.codegen.json_runtime import INTEGERS, MOST_KNOWN_BYTES, array_texts_of, value_text
from kquorum.wire.codegen.kinds import FIXED
from kquorum.wire.codegen.lines import Lines
from kquorum.wire.codegen.plan import FieldPlan, StructPlan
from kquorum.wire.codegen.reading import add_length, is_single_fixed

_TAGS = "unknown_tagged_fields"
_SINGLE = INTEGERS | {"uuid", "bool", "float64"}


def has_text(plan: StructPlan) -> bool:
    """Whether such a function can be written for the plan."""
    return plan.flexible and plan.keeps_unknown_tags and all(map(_has_text, plan.fields))


def _has_text(field: FieldPlan) -> bool:
    if field.legacy:
        return False
    if field.nested is not None:
        return has_text(field.nested) and (field.is_array or not (field.nullable or field.tag is not None))
    if field.kind in FIXED:
        return field.kind in (INTEGERS | {"uuid"} if field.is_array else _SINGLE)
    return field.kind == "string" or not field.is_array


def write_text(lines: Lines, plan: StructPlan) -> None:
    """Append `text(buffer, position) -> (text, position after it)`."""
    with lines.block("def text(buffer, position):"):
        _add_reading(lines, plan)
        lines.add(f"return {_literal(plan, ())}, position")


def write_row(lines: Lines, plan: StructPlan, start: int, shown: Mapping[str, str], result: str) -> None:
    """Append `row(buffer)`, for a message that is all of `buffer` from `start` on.

    It answers the expression `result`, in which `text` is the text. `shown` are expressions for the texts of fields
    that are not shown as they are.
    """
    with lines.block("def row(buffer):"):
        lines.add(f"position = {start}")
        _add_reading(lines, plan)
        lines.add("if position != size: raise Otherwise")
        for name, expression in shown.items():
            lines.add(f"t_{name} = {expression}")
        lines.add(f"text = {_literal(plan, tuple(shown))}", f"return {result}")


def _literal(plan: StructPlan, shown: Sequence[str]) -> str:
    """An f-string of the fields in the order of the class; those that the version lacks are part of its constants."""
    present = {field.name: field for field in plan.fields}
    absent = dict(plan.absent)
    pieces = []
    for name in [field.name for field in dataclasses.fields(plan.cls) if field.name != _TAGS]:
        if name in present:
            piece = f"{{t_{name}}}" if name in shown else _piece(present[name])
        else:
            piece = _escaped(value_text(absent[name]))
        pieces.append(f'"{name}":{piece}')
    return f"f'{{{{{','.join(pieces)}}}}}'"


def _piece(field: FieldPlan) -> str:
    if is_single_fixed(field) and field.kind in INTEGERS:
        return f"{{v_{field.name}}}"
    if is_single_fixed(field) and field.kind == "uuid":
        return f'"{{v_{field.name}}}"'
    return f"{{t_{field.name}}}"


def _escaped(text: str) -> str:
    assert not set(text) & set("\\'"), text
    return text.replace("{", "{{").replace("}", "}}")


def _add_reading(lines: Lines, plan: StructPlan) -> None:
    lines.add("size = len(buffer)")
    for is_fixed, fields in groupby(plan.positional, key=is_single_fixed):
        if is_fixed:
            _add_fixed_run(lines, tuple(fields))
        else:
            for field in fields:
                _add_variable(lines, field)
    _add_tagged(lines, plan)


def _add_fixed_run(lines: Lines, fields: Sequence[FieldPlan]) -> None:
    kinds = [FIXED[field.kind] for field in fields]
    unpack = lines.packer("unpack_from", "".join(kind.layout for kind in kinds))
    targets = [f"{'raw' if field.kind == 'uuid' else 'v'}_{field.name}" for field in fields]
    lines.add(f"{', '.join(targets)}, = {unpack}(buffer, position)")
    lines.add(f"position += {sum(kind.size for kind in kinds)}")
    for field in fields:
        if field.kind == "uuid":
            lines.add(f"v_{field.name} = uuid_text(raw_{field.name})")
        elif field.kind == "bool":
            lines.add(f't_{field.name} = "true" if v_{field.name} else "false"')
        elif field.kind == "float64":
            lines.add(f"t_{field.name} = float_text(v_{field.name})")


def _add_variable(lines: Lines, field: FieldPlan) -> None:
    name = field.name
    if field.kind == "struct" and not field.is_array:
        lines.add(f"t_{name}, position = text_{name}(buffer, position)")
        return
    is_text = field.kind == "string" and not field.is_array
    add_length(lines, compact=True, layout="i", is_text=is_text)
    with lines.block("if length < 0:"):
        lines.add(f'v_{name}, t_{name} = None, "null"' if field.nullable else "raise Otherwise")
    with lines.block("else:"):
        if not field.is_array:
            _add_content(lines, field.kind, f"v_{name}", f"t_{name} = {{0}}")
        elif field.kind in FIXED:
            _add_fixed_elements(lines, field)
        else:
            _add_elements(lines, field)


def _add_content(lines: Lines, kind: str, value: str, store: str) -> None:
    """A string or bytes of `length`."""
    lines.add("end = position + length", "if end > size: raise Otherwise")
    if kind == "string":
        lines.add(f"{value} = buffer[position:end].decode()", store.format(f"quote({value})"))
    else:
        lines.add(f"{value} = buffer[position:end]", store.format(f"base64_text({value})"))
    lines.add("position = end")


def _add_fixed_elements(lines: Lines, field: FieldPlan) -> None:
    size = FIXED[field.kind].size
    known, made = array_texts_of(field.kind)
    known_text, text = lines.constant(f"known_{field.kind}s", known), lines.constant(f"{field.kind}s", made)
    lines.add(f"end = position + length * {size}", "if end > size: raise Otherwise")
    with lines.block("if length == 0:"):
        lines.add(f't_{field.name} = "[]"')
    with lines.block(f"elif length <= {MOST_KNOWN_BYTES // size}:"):
        lines.add(f"t_{field.name} = {known_text}(buffer[position:end])")
    with lines.block("else:"):
        lines.add(f"t_{field.name} = {text}(buffer[position:end])")
    lines.add("position = end")


def _add_elements(lines: Lines, field: FieldPlan) -> None:
    lines.add("if length > size - position: raise Otherwise", "items = []")
    with lines.block("for _ in range(length):"):
        if field.kind == "struct":
            lines.add(f"item, position = text_{field.name}(buffer, position)", "items.append(item)")
        else:
            add_length(lines, compact=True, layout="h", is_text=True)
            lines.add("if length < 0: raise Otherwise")
            _add_content(lines, "string", "item", "items.append({0})")
    lines.add(f't_{field.name} = "[" + ",".join(items) + "]"')


def _add_tagged(lines: Lines, plan: StructPlan) -> None:
    """KIP-482: a count, then tag, size and value of each field that is present."""
    for field in plan.tagged:
        _add_default(lines, field)
    lines.add("count = buffer[position]", "position += 1")
    with lines.block("if count:"):
        if not plan.tagged:
            lines.add("raise Otherwise")
            return
        lines.add("if count > 127: raise Otherwise", "last_tag = -1")
        with lines.block("for _ in range(count):"):
            _add_tag(lines, plan.tagged)


def _add_default(lines: Lines, field: FieldPlan) -> None:
    text = value_text(field.default)
    if _piece(field).startswith('"'):
        lines.add(f"v_{field.name} = {text}")
    elif is_single_fixed(field) and field.kind in INTEGERS:
        lines.add(f"v_{field.name} = {field.default!r}")
    else:
        lines.add(f"t_{field.name} = {text!r}")


def _add_tag(lines: Lines, fields: Sequence[FieldPlan]) -> None:
    lines.add("tag, length, position = buffer[position], buffer[position + 1], position + 2")
    with lines.block("if tag > 127 or length > 127:"):
        lines.add("tag, length, position = read_long_tag(buffer, position - 2)")
    lines.add("field_end = position + length")
    lines.add("if tag <= last_tag or field_end > size: raise Otherwise", "last_tag = tag")
    keyword = "if"
    for field in fields:
        with lines.block(f"{keyword} tag == {field.tag}:"):
            if is_single_fixed(field):
                _add_fixed_run(lines, (field,))
            else:
                _add_variable(lines, field)
        keyword = "elif"
    lines.add("else: raise Otherwise", "if position != field_end: raise Otherwise")
