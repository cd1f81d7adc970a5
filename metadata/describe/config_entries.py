"""One config as DescribeConfigs tells it; the value of a secret is left out wherever it would stand."""

from collections.abc import Sequence
from dataclasses import dataclass

from metadata.config_definitions.definition import ConfigDefinition, ConfigType
from metadata.config_definitions.resolution import SOURCE_DEFAULT, Found
from metadata.config_definitions.table import definition_of, is_sensitive
from metadata.config_definitions.validators import InvalidConfigError
from metadata.config_definitions.values import ConfigValue
from wire.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the request wants to be told besides the values."""

    synonyms: bool
    documentation: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """`value` counts; `found` is under which names and where values are set, the one that counts first."""

    resource_type: int
    name: str
    value: str | None
    found: Sequence[Found]
    read_only: bool = False

    def described(self, wanted: Wanted) -> DescribeConfigsResourceResult:
        definition = definition_of(self.resource_type, self.name)
        is_secret = is_sensitive(self.resource_type, self.name)
        source = self.found[0].source if self.found else SOURCE_DEFAULT
        shown = None if is_secret else shown_value(definition, self.value)
        synonyms = [
            DescribeConfigsSynonym(
                name=each.name, value=None if is_secret else each.value, source=each.source
            )
            for each in self.found
            if wanted.synonyms
        ]
        return DescribeConfigsResourceResult(
            name=self.name,
            value=shown,
            read_only=self.read_only,
            config_source=source,
            is_sensitive=is_secret,
            synonyms=tuple(synonyms),
            config_type=ConfigType.UNKNOWN if definition is None else definition.type,
            documentation=definition.documentation if definition and wanted.documentation else None,
        )


def shown_value(definition: ConfigDefinition | None, value: str | None) -> str | None:
    """As Kafka writes what it understood: `TRUE` is true, ` 5 ` is 5; anything else as it is."""
    if definition is None or value is None:
        return value
    try:
        return _text(definition.parse(value))
    except InvalidConfigError:
        return value


def _text(value: ConfigValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)
