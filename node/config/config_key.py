"""A field of the node's config, as the table of configs (metadata.configs) defines its key."""

from collections.abc import Callable
from typing import Any, Final

from pydantic import Field

from kquorum.metadata.configs.definition import INT_MAX, LONG_MAX, ConfigDefinition, ConfigType
from kquorum.metadata.configs.table import FILE_CONFIGS

REQUIRED: Final = ...
_AS_THE_TABLE: Final = object()
_LARGEST = {ConfigType.INT: INT_MAX, ConfigType.LONG: LONG_MAX}


def config_key(
    name: str,
    *,
    unless_set: object = _AS_THE_TABLE,
    derived: Callable[[dict[str, Any]], object] | None = None,
) -> Any:
    """Name, default and bounds are the table's; the annotation of the field says what the value is parsed to.

    `unless_set` replaces the default where a node must tell "not set" from a value, or cannot do without one
    (REQUIRED). `derived` makes the default from other fields.
    """
    definition = FILE_CONFIGS[name]
    options: dict[str, Any] = {"alias": name, "repr": not definition.is_sensitive, **_bounds(definition)}
    if derived is not None:
        return Field(default_factory=derived, **options)
    if unless_set is not _AS_THE_TABLE:
        return Field(unless_set, **options)
    if definition.default is None:
        return Field(None, **options)
    # The table's default is text, and is parsed as a value of a file is.
    return Field(definition.parse(definition.default), validate_default=True, **options)


def _bounds(definition: ConfigDefinition) -> dict[str, Any]:
    validator = definition.validator
    if definition.type in _LARGEST:
        largest = _LARGEST[definition.type]
        high = largest if validator is None or validator.high is None else validator.high
        low = None if validator is None else validator.low
        return {"le": high} if low is None else {"ge": low, "le": high}
    return {"min_length": validator.min_length} if validator is not None and validator.min_length else {}
