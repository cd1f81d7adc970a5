"""The source of a decoder: `decode(buffer, position) -> (entity, position after it)`.

Fixed-width neighbours are read by one `struct` call, and short lengths without a call. The entity of a frozen class is
built as a draft (see `wire.drafts`) and becomes an instance of its class at the end.
"""

from collections.abc import Sequence
from itertools import groupby

from kquorum.wire.codegen.kinds import FIXED, MOST_PACKED, array_unpackers
from kquorum.wire.codegen.lines import Lines
from kquorum.wire.codegen.plan import FieldPlan, StructPlan
from kquorum.wire.codegen.runtime import ElementsLeft
from kquorum.wire.drafts import draft_of

_ELEMENTS = "elements"
_SLICES = {
    "string": "buffer[position:end].decode()",
    "bytes": "buffer[position:end]",
    "records": "memoryview(buffer)[position:end]",
}


def write_decoder(lines: Lines, plan: StructPlan, elements: ElementsLeft | None = None) -> None:
    """Append the function `decode` for `plan`; nested decoders are in the namespace as `decode_<field name>`.
    `elements` bounds what it reads."""
    if elements is not None:
        lines.constant(_ELEMENTS, elements)
    lines.constant("Entity", plan.cls)
    is_frozen: bool = vars(plan.cls)["__dataclass_params__"].frozen
    if is_frozen:
        lines.constant("Draft", draft_of(plan.cls))
    with lines.block("def decode(buffer, position):"):
        if plan.keeps_unknown_tags and not plan.fields and not plan.absent:
            _add_shared_instance(lines, plan.cls)
        lines.add("size = len(buffer)", "entity = Draft()" if is_frozen else "entity = new(Entity)")
        runs = [(is_fixed, tuple(each)) for is_fixed, each in groupby(plan.positional, key=is_single_fixed)]
        for place, (is_fixed, fields) in enumerate(runs, 1):
            if is_fixed:
                # The number of tagged fields is read with the last fixed fields.
                _add_fixed_run(lines, fields, with_count=plan.flexible and place == len(runs))
            else:
                for field in fields:
                    _add_variable(lines, field, plan.flexible)
        for name, default in plan.absent:
            lines.add(f"entity.{name} = {lines.constant(f'default_{name}', default)}")
        if plan.flexible:
            _add_tagged(lines, plan, has_count=bool(runs) and runs[-1][0])
        if is_frozen:
            lines.add("entity.__class__ = Entity")
        lines.add("return entity, position")


def null_mark(field: FieldPlan) -> int:
    """The byte in the place of a struct that is null."""
    return 255 if field.tag is None else 0


def is_single_fixed(field: FieldPlan) -> bool:
    return field.kind in FIXED and not field.is_array


def _add_shared_instance(lines: Lines, cls: type) -> None:
    # Nine of ten records of an idle cluster's log are no-ops: one frozen value serves them all.
    lines.constant("EMPTY", cls())
    with lines.block("if buffer[position] == 0:"):
        lines.add("return EMPTY, position + 1")


def _add_fixed_run(lines: Lines, fields: Sequence[FieldPlan], *, with_count: bool = False) -> None:
    kinds = [FIXED[field.kind] for field in fields]
    unpack = lines.packer("unpack_from", "".join(kind.layout for kind in kinds) + ("B" if with_count else ""))
    targets = [
        f"entity.{field.name}" if kind.is_plain else f"raw_{field.name}"
        for field, kind in zip(fields, kinds, strict=True)
    ] + (["count"] if with_count else [])
    lines.add(f"{', '.join(targets)}, = {unpack}(buffer, position)")
    for field, kind in zip(fields, kinds, strict=True):
        if not kind.is_plain:
            lines.add(f"entity.{field.name} = {kind.from_raw.format(f'raw_{field.name}')}")
    lines.add(f"position += {sum(kind.size for kind in kinds) + with_count}")


def _add_variable(lines: Lines, field: FieldPlan, flexible: bool) -> None:
    target = f"entity.{field.name}"
    if field.kind == "struct" and not field.is_array:
        _add_struct(lines, field, target)
        return
    compact = flexible and not field.legacy
    length_layout = "h" if field.kind == "string" and not field.is_array else "i"
    add_length(
        lines, compact=compact, layout=length_layout, is_text=field.kind == "string" and not field.is_array
    )
    with lines.block("if length < 0:"):
        lines.add(
            f"{target} = None" if field.nullable else f"raise unexpected_null('{field.name}', position)"
        )
    with lines.block("else:"):
        if field.is_array:
            if _ELEMENTS in lines.namespace:
                lines.add(f"{_ELEMENTS}.take(length, position)")
            _add_elements(lines, field, target, compact)
        else:
            _add_text_or_bytes(lines, field.kind, f"{target} = {{0}}")


def add_length(lines: Lines, *, compact: bool, layout: str, is_text: bool) -> None:
    """Read `length`: -1 stands for null."""
    if not compact:
        unpack = lines.packer("unpack_from", layout)
        lines.add(f"length, = {unpack}(buffer, position)", f"position += {4 if layout == 'i' else 2}")
        with lines.block("if length < -1:"):
            lines.add("raise negative_length(length, position)")
        return
    lines.add("length = buffer[position] - 1", "position += 1")
    with lines.block("if length >= 127:"):
        reader = "read_text_length" if is_text else "read_length"
        lines.add(f"length, position = {reader}(buffer, position - 1)")


def _add_text_or_bytes(lines: Lines, kind: str, store: str) -> None:
    lines.add("end = position + length")
    with lines.block("if end > size:"):
        lines.add("raise underflow(length, buffer, position)")
    lines.add(store.format(_SLICES[kind]), "position = end")


def _add_elements(lines: Lines, field: FieldPlan, target: str, compact: bool) -> None:
    if field.kind in FIXED:
        _add_fixed_elements(lines, field, target)
        return
    with lines.block("if length > size - position:"):
        lines.add("raise underflow(length, buffer, position)")
    lines.add("items = []")
    with lines.block("for _ in range(length):"):
        if field.kind == "struct":
            lines.add(f"item, position = decode_{field.name}(buffer, position)", "items.append(item)")
        else:
            layout = "h" if field.kind == "string" else "i"
            add_length(lines, compact=compact, layout=layout, is_text=field.kind == "string")
            with lines.block("if length < 0:"):
                lines.add(f"raise unexpected_null('an element of {field.name}', position)")
            _add_text_or_bytes(lines, field.kind, "items.append({0})")
    lines.add(f"{target} = tuple(items)")


def _add_fixed_elements(lines: Lines, field: FieldPlan, target: str) -> None:
    kind = FIXED[field.kind]
    lines.add(f"end = position + length * {kind.size}")
    with lines.block("if end > size:"):
        lines.add(f"raise underflow(length * {kind.size}, buffer, position)")
    if kind.is_plain:
        name = f"unpack_array_{kind.layout.replace('?', 't')}"
        unpackers = lines.constant(name, array_unpackers(kind.layout))
        with lines.block(f"if length < {MOST_PACKED}:"):
            lines.add(f"{target} = {unpackers}[length](buffer, position)")
        with lines.block("else:"):
            lines.add(f'{target} = unpack_array(f">{{length}}{kind.layout}", buffer, position)')
    else:
        piece = kind.from_raw.format(f"buffer[at:at + {kind.size}]")
        lines.add(f"{target} = tuple([{piece} for at in range(position, end, {kind.size})])")
    lines.add("position = end")


def _add_struct(lines: Lines, field: FieldPlan, target: str) -> None:
    if field.nullable:
        # KIP-893: a nullable struct is preceded by -1 (null) or 1; in a tagged field by 0 or 1.
        lines.add("presence = buffer[position]", "position += 1")
        with lines.block(f"if presence == {null_mark(field)}:"):
            lines.add(f"{target} = None")
        with lines.block("elif presence == 1:"):
            lines.add(f"{target}, position = decode_{field.name}(buffer, position)")
        with lines.block("else:"):
            lines.add(f"raise bad_presence(presence, '{field.name}', position)")
    else:
        lines.add(f"{target}, position = decode_{field.name}(buffer, position)")


def _add_tagged(lines: Lines, plan: StructPlan, *, has_count: bool) -> None:
    """KIP-482: a count, then tag, size and value of each field that is present."""
    for field in plan.tagged:
        lines.add(f"entity.{field.name} = {lines.constant(f'default_{field.name}', field.default)}")
    if plan.keeps_unknown_tags:
        lines.add("entity.unknown_tagged_fields = ()")
    if not has_count:
        lines.add("count = buffer[position]", "position += 1")
    with lines.block("if count:"):
        lines.add("if count > 127: count, position = read_uvarint(buffer, position - 1)", "last_tag = -1")
        if _ELEMENTS in lines.namespace:
            # As tags ascend, those beyond the number of known ones are unknown: two bytes each, and time to pass over.
            known = len(plan.tagged)
            lines.add(f"if count > {known}: {_ELEMENTS}.take(count - {known}, position)")
        if plan.keeps_unknown_tags:
            lines.add("unknown = []")
        with lines.block("for _ in range(count):"):
            _add_tag_header(lines)
            _add_tag_cases(lines, plan)
            with lines.block("if position != field_end:"):
                lines.add("raise wrong_tag_size(tag, position)")
        if plan.keeps_unknown_tags:
            lines.add("entity.unknown_tagged_fields = tuple(unknown)")


def _add_tag_header(lines: Lines) -> None:
    lines.add("tag, length, position = buffer[position], buffer[position + 1], position + 2")
    with lines.block("if tag > 127 or length > 127:"):
        lines.add("tag, length, position = read_long_tag(buffer, position - 2)")
    lines.add("field_end = position + length")
    with lines.block("if tag <= last_tag or field_end > size:"):
        lines.add("raise bad_tag(tag, last_tag, length, buffer, position)")
    lines.add("last_tag = tag")


def _add_tag_cases(lines: Lines, plan: StructPlan) -> None:
    keyword = "if"
    for field in plan.tagged:
        with lines.block(f"{keyword} tag == {field.tag}:"):
            if is_single_fixed(field):
                _add_fixed_run(lines, (field,))
            else:
                _add_variable(lines, field, flexible=True)
        keyword = "elif"
    for tag in plan.forbidden_tags:
        with lines.block(f"{keyword} tag == {tag}:"):
            lines.add(f"raise forbidden_tag({tag}, {plan.version}, position)")
        keyword = "elif"
    keep = "unknown.append((tag, buffer[position:field_end]))" if plan.keeps_unknown_tags else ""
    body = [line for line in (keep, "position = field_end") if line]
    if keyword == "if":
        lines.add(*body)
    else:
        with lines.block("else:"):
            lines.add(*body)
