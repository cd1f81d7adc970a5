"""What a compiler of codecs has to know about a message: its fields in wire order, of one class at one version."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """One field as it is on the wire.

    `kind` is a key of `kinds.FIXED`, or "string", "bytes", "records" (bytes that are not copied) or "struct" (then
    `nested` is set). `default` is what a tagged field has when it is not on the wire. `legacy` forces the fixed-width
    string length of old messages.
    """

    name: str
    kind: str
    is_array: bool = False
    nullable: bool = False
    tag: int | None = None
    default: object = None
    nested: "StructPlan | None" = None
    legacy: bool = False


@dataclass(frozen=True, slots=True)
class StructPlan:
    """One class at one version.

    `absent` names the fields that this version lacks, with the defaults they read as; the encoder refuses other values
    of those in `refused` (None: of all) and drops other values of the rest. `forbidden_tags` are known to other
    versions only. With `keeps_unknown_tags` the class has a field `unknown_tagged_fields` for the rest.
    """

    cls: type
    version: int
    flexible: bool
    fields: tuple[FieldPlan, ...]
    absent: tuple[tuple[str, object], ...] = ()
    refused: frozenset[str] | None = None
    forbidden_tags: tuple[int, ...] = ()
    keeps_unknown_tags: bool = False

    @property
    def positional(self) -> tuple[FieldPlan, ...]:
        return tuple(field for field in self.fields if field.tag is None)

    @property
    def tagged(self) -> tuple[FieldPlan, ...]:
        return tuple(
            sorted(
                (field for field in self.fields if field.tag is not None), key=lambda field: field.tag or 0
            )
        )
