"""What is known of one config key (Kafka's ConfigDef; the numbers of types are DescribeConfigsResponse's)."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from metadata.configs.validators import Validator, invalid_value
from metadata.configs.values import PARSERS, ConfigValue


class ConfigType(IntEnum):
    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Importance(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Update(StrEnum):
    """Whether a broker's config may change while it runs (KIP-226): never, of one broker, or of all at once too."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


@dataclass(frozen=True, slots=True)
class ConfigDefinition:
    """`default` is text, as it would be set; None is no value. An internal config is listed to nobody."""

    name: str
    type: ConfigType
    default: str | None
    importance: Importance
    documentation: str
    validator: Validator | None = None
    update: Update = Update.READ_ONLY
    is_internal: bool = False

    @property
    def is_sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str) -> ConfigValue:
        """The value that `text` stands for. Raises InvalidConfigError in Kafka's words; a secret is not quoted."""
        shown = "[hidden]" if self.is_sensitive else text
        try:
            value = PARSERS[self.type.name](text)
        except ValueError as error:
            raise invalid_value(self.name, shown, str(error)) from None
        if self.validator is not None:
            self.validator.check(self.name, value, shown)
        return value
