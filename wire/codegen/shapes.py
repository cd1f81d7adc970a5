"""The source of a decoder for messages of one shape: `decode(value) -> entity`, or None for one of another shape.

Messages of a log repeat each other: partition records of three replicas differ in ids and epochs, but each length and
each tag stands at the same place. So a message is taken as a pattern: its lengths and tags become constants, everything
else is read by a single `struct` call, and the constants are compared. A message that differs in one of them, or in
its size, has another shape and is for the general decoder. Two messages of one shape are well-formed alike.
"""

from kquorum.wire.codegen.kinds import FIXED
from kquorum.wire.codegen.lines import Lines
from kquorum.wire.codegen.plan import FieldPlan, StructPlan
from kquorum.wire.codegen.reading import is_single_fixed
from kquorum.wire.drafts import draft_of

_MOST_ELEMENTS = 16
_MOST_SIZE = 512
_INTEGER_LAYOUTS = {1: "B", 2: "H", 4: "I", 8: "Q"}


class _NoPattern(Exception):
    """The message has what no pattern is made for: nested structs, long lists, unknown tags."""


def write_shape_decoder(lines: Lines, plan: StructPlan, value: bytes, start: int) -> bool:
    """Append `decode` for messages like the one in `value` from `start` on, which the general decoder can read.

    What stands before `start` is not looked at. False if no pattern is made for it.
    """
    if len(value) > _MOST_SIZE or not plan.keeps_unknown_tags or not plan.flexible:
        return False
    pattern = _Pattern(lines, value, start)
    try:
        pattern.take(plan)
    except _NoPattern:
        return False
    pattern.write(plan, start)
    return True


class _Pattern:
    """Walks over one message. `_constant` are the bytes since the last field that stand for no value."""

    def __init__(self, lines: Lines, value: bytes, start: int) -> None:
        self._lines = lines
        self._value = value
        self._position = start
        self._constant = b""
        self._layout = ""
        self._targets: list[str] = []
        self._checks: list[str] = []
        self._assignments: list[str] = []

    def take(self, plan: StructPlan) -> None:
        for field in plan.positional:
            self._take_field(field)
        for name, default in plan.absent:
            self._assign_constant(name, default)
        self._take_tagged(plan)
        self._end_constant()

    def write(self, plan: StructPlan, start: int) -> None:
        lines = self._lines
        unpack = lines.packer("unpack", f"{start}x{self._layout}")
        is_empty = not plan.fields and not plan.absent
        with lines.block("def decode(value):"):
            if not is_empty:
                lines.constant("Entity", plan.cls)
                lines.constant("Draft", draft_of(plan.cls))
                lines.add("entity = Draft()")
            lines.add(f"{', '.join(self._targets)}, = {unpack}(value)")
            lines.add(f"if {' or '.join(self._checks)}: return None")
            if is_empty:
                lines.add(f"return {lines.constant('EMPTY', plan.cls())}")
            else:
                lines.add(*self._assignments, "entity.unknown_tagged_fields = ()")
                lines.add("entity.__class__ = Entity", "return entity")

    def _take_tagged(self, plan: StructPlan) -> None:
        fields = {field.tag: field for field in plan.tagged}
        for _ in range(self._take_short()):
            field = fields.pop(self._take_short(), None)
            self._take_short()
            if field is None:
                raise _NoPattern
            self._take_field(field)
        for field in fields.values():
            self._assign_constant(field.name, field.default)

    def _take_field(self, field: FieldPlan) -> None:
        target = f"entity.{field.name}"
        if is_single_fixed(field):
            kind = FIXED[field.kind]
            if kind.is_plain:
                self._read(kind.layout, kind.size, target)
            else:
                self._read(kind.layout, kind.size, f"raw_{field.name}")
                self._assignments.append(f"{target} = {kind.from_raw.format(f'raw_{field.name}')}")
            return
        if field.kind == "struct" or field.legacy:
            raise _NoPattern
        length = self._take_short() - 1
        if length < 0:
            self._assignments.append(f"{target} = None")
        elif field.is_array:
            self._take_elements(field, length, target)
        elif length == 0:
            self._assign_constant(field.name, "" if field.kind == "string" else b"")
        else:
            self._read(f"{length}s", length, f"raw_{field.name}")
            decoded = ".decode()" if field.kind == "string" else ""
            self._assignments.append(f"{target} = raw_{field.name}{decoded}")

    def _take_elements(self, field: FieldPlan, length: int, target: str) -> None:
        kind = FIXED.get(field.kind)
        if kind is None or length > _MOST_ELEMENTS:
            raise _NoPattern
        if length == 0:
            self._assignments.append(f"{target} = ()")
        elif field.kind == "uuid":
            self._read(f"{16 * length}s", 16 * length, f"raw_{field.name}")
            self._assignments.append(f"{target} = uuids_of(raw_{field.name})")
        elif kind.is_plain:
            names = [f"{field.name}_{number}" for number in range(length)]
            for name in names:
                self._read(kind.layout, kind.size, name)
            self._assignments.append(f"{target} = ({', '.join(names)},)")
        else:
            raise _NoPattern

    def _take_short(self) -> int:
        """A number of one byte, which is a constant of the shape."""
        number = self._value[self._position]
        if number > 127:
            raise _NoPattern
        self._constant += self._value[self._position : self._position + 1]
        self._position += 1
        return number

    def _read(self, layout: str, size: int, target: str) -> None:
        self._end_constant()
        self._layout += layout
        self._targets.append(target)
        self._position += size

    def _end_constant(self) -> None:
        expected, self._constant = self._constant, b""
        while expected:
            size = next(size for size in (8, 4, 2, 1) if size <= len(expected))
            name = f"constant_{len(self._checks)}"
            self._layout += _INTEGER_LAYOUTS[size]
            self._targets.append(name)
            self._checks.append(f"{name} != {int.from_bytes(expected[:size], 'big')}")
            expected = expected[size:]

    def _assign_constant(self, name: str, default: object) -> None:
        self._assignments.append(f"entity.{name} = {self._lines.constant(f'default_{name}', default)}")
