"""The source of an encoder: `encode(entity, out)` appends the entity to the bytearray `out`."""

from collections.abc import Sequence
from itertools import groupby

from kquorum.wire.codegen.kinds import FIXED, MOST_PACKED, array_packers
from kquorum.wire.codegen.lines import Lines
from kquorum.wire.codegen.plan import FieldPlan, StructPlan
from kquorum.wire.codegen.reading import is_single_fixed, null_mark


def write_encoder(lines: Lines, plan: StructPlan) -> None:
    """Append the function `encode` for `plan`; nested encoders are in the namespace as `encode_<field name>`."""
    with lines.block("def encode(entity, out):"):
        lines.add(
            "pass" if not plan.fields and not plan.flexible else f"# {plan.cls.__name__} v{plan.version}"
        )
        for name, default in plan.absent:
            if plan.refused is not None and name not in plan.refused:
                continue
            constant = lines.constant(f"default_{name}", default)
            with lines.block(f"if entity.{name} != {constant}:"):
                lines.add(f"raise absent_field(entity, '{name}', {plan.version})")
        # A struct that can have no tagged fields ends with their number, 0, which goes out with the last fixed fields.
        ends_in_zero = plan.flexible and not plan.tagged and not plan.keeps_unknown_tags
        runs = [(is_fixed, tuple(each)) for is_fixed, each in groupby(plan.positional, key=is_single_fixed)]
        for place, (is_fixed, fields) in enumerate(runs, 1):
            if is_fixed:
                is_end = ends_in_zero and place == len(runs)
                _add_fixed_run(lines, fields, "out", tail="x" if is_end else "")
                ends_in_zero = ends_in_zero and not is_end
            else:
                for field in fields:
                    _add_variable(lines, field, plan.flexible, "out")
        if ends_in_zero:
            lines.add("out.append(0)")
        elif plan.tagged or plan.keeps_unknown_tags:
            _add_tagged(lines, plan)


def _add_fixed_run(lines: Lines, fields: Sequence[FieldPlan], out: str, tail: str = "") -> None:
    kinds = [FIXED[field.kind] for field in fields]
    pack = lines.packer("pack", "".join(kind.layout for kind in kinds) + tail)
    values = [kind.to_raw.format(f"entity.{field.name}") for field, kind in zip(fields, kinds, strict=True)]
    lines.add(f"{out} += {pack}({', '.join(values)})")


def _add_variable(lines: Lines, field: FieldPlan, flexible: bool, out: str) -> None:
    compact = flexible and not field.legacy
    lines.add(f"value = entity.{field.name}")
    if not field.nullable:
        _add_present(lines, field, compact, out)
        return
    with lines.block("if value is None:"):
        lines.add(_null(lines, field, compact, out))
    with lines.block("else:"):
        if field.kind == "struct" and not field.is_array:
            lines.add(f"{out}.append(1)")
        _add_present(lines, field, compact, out)


def _null(lines: Lines, field: FieldPlan, compact: bool, out: str) -> str:
    if field.kind == "struct" and not field.is_array:
        return f"{out}.append({null_mark(field)})"
    if compact:
        return f"{out}.append(0)"
    layout = "h" if field.kind == "string" and not field.is_array else "i"
    return f"{out} += {lines.packer('pack', layout)}(-1)"


def _add_present(lines: Lines, field: FieldPlan, compact: bool, out: str) -> None:
    if field.is_array:
        _add_array(lines, field, compact, out)
    elif field.kind == "struct":
        lines.add(f"encode_{field.name}(value, {out})")
    else:
        _add_text_or_bytes(lines, field.kind, "value", compact, out)


def _add_text_or_bytes(lines: Lines, kind: str, value: str, compact: bool, out: str) -> None:
    is_text = kind == "string"
    lines.add(f"raw = {value}.encode()" if is_text else f"raw = {value}")
    _add_length(
        lines,
        "raw",
        compact,
        "h" if is_text else "i",
        "write_text_length" if is_text else "write_uvarint",
        out,
    )
    if kind == "records":
        lines.add(f"{out}.add_batches(raw)")
    else:
        lines.add(f"{out} += raw")


def _add_length(lines: Lines, sized: str, compact: bool, layout: str, long_writer: str, out: str) -> None:
    if not compact:
        lines.add(f"{out} += {lines.packer('pack', layout)}(len({sized}))")
        return
    lines.add(f"length = len({sized}) + 1")
    lines.add(f"if length < 128: {out}.append(length)", f"else: {long_writer}({out}, length)")


def _add_array(lines: Lines, field: FieldPlan, compact: bool, out: str) -> None:
    kind = FIXED.get(field.kind)
    if kind is not None and kind.is_plain:
        _add_plain_array(lines, kind.layout, compact, out)
        return
    _add_length(lines, "value", compact, "i", "write_uvarint", out)
    if kind is None:
        with lines.block("for item in value:"):
            if field.kind == "struct":
                lines.add(f"encode_{field.name}(item, {out})")
            else:
                _add_text_or_bytes(lines, field.kind, "item", compact, out)
        return
    pack = "" if kind.layout == "16s" else lines.packer("pack", kind.layout)
    lines.add(f'{out} += b"".join([{pack}({kind.to_raw.format("item")}) for item in value])')


def _add_plain_array(lines: Lines, layout: str, compact: bool, out: str) -> None:
    """Short arrays, as lists of replicas are, go out by one call, with their length."""
    name = f"pack_array_{'compact' if compact else 'plain'}_{layout.replace('?', 't')}"
    packers = lines.constant(name, array_packers("B" if compact else "i", layout))
    lines.add("length = len(value)")
    with lines.block(f"if length < {MOST_PACKED}:"):
        lines.add(f"{out} += {packers}[length](length{' + 1' if compact else ''}, *value)")
    with lines.block("else:"):
        _add_length(lines, "value", compact, "i", "write_uvarint", out)
        lines.add(f'{out} += pack_array(f">{{len(value)}}{layout}", *value)')


def _add_tagged(lines: Lines, plan: StructPlan) -> None:
    if not plan.tagged:
        lines.add("if entity.unknown_tagged_fields: write_tagged(out, [], entity.unknown_tagged_fields)")
        lines.add("else: out.append(0)")
        return
    lines.add("tagged = []")
    for field in plan.tagged:
        default = lines.constant(f"default_{field.name}", field.default)
        condition = f"entity.{field.name} is not {default}"
        if field.default is not None:
            # UUIDs and structs compare slowly, and most are the default itself.
            condition += f" and entity.{field.name} != {default}"
        with lines.block(f"if {condition}:"):
            lines.add("part = bytearray()")
            if is_single_fixed(field):
                _add_fixed_run(lines, (field,), "part")
            else:
                _add_variable(lines, field, flexible=True, out="part")
            lines.add(f"tagged.append(({field.tag}, part))")
    unknown = "entity.unknown_tagged_fields" if plan.keeps_unknown_tags else "()"
    condition = f"if tagged or {unknown}" if plan.keeps_unknown_tags else "if tagged"
    lines.add(f"{condition}: write_tagged(out, tagged, {unknown})", "else: out.append(0)")
