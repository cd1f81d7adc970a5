"""What the table says of one config key (Kafka's ConfigDef; the numbers of types are DescribeConfigsResponse's), and
one function for each type, which writes a definition in a few words."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from kquorum.metadata.configs.used_by import Use
from kquorum.metadata.configs.validators import PARSERS, ConfigValue, Validator, invalid_value

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


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
class Synonym:
    """The broker's key that is the default of a topic's or a group's; its value times `factor` is theirs."""

    name: str
    factor: int = 1


@dataclass(frozen=True, slots=True)
class ConfigDefinition:
    """`default` is text, as it would be set; None is no value. DescribeConfigs does not list an internal config."""

    name: str
    type: ConfigType
    default: str | None
    importance: Importance
    documentation: str
    used_by: Use
    validator: Validator | None = None
    update: Update = Update.READ_ONLY
    is_internal: bool = False
    synonyms: tuple[Synonym, ...] = ()

    @property
    def is_sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    @property
    def lawful(self) -> str:
        """The validator's words."""
        return "" if self.validator is None else self.validator.words

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


class _Kind:
    def __init__(self, config_type: ConfigType) -> None:
        self._type = config_type

    def __call__(
        self,
        name: str,
        default: str | bool | float | None,
        documentation: str,
        validator: Validator | None = None,
        *,
        used_by: Use,
        importance: Importance = Importance.MEDIUM,
        update: Update = Update.READ_ONLY,
        is_internal: bool = False,
        synonyms: tuple[Synonym, ...] = (),
    ) -> ConfigDefinition:
        text = None if default is None else str(default)
        if isinstance(default, bool):
            text = str(default).lower()
        return ConfigDefinition(
            name,
            self._type,
            text,
            importance,
            documentation,
            used_by,
            validator,
            update,
            is_internal,
            synonyms,
        )


boolean = _Kind(ConfigType.BOOLEAN)
string = _Kind(ConfigType.STRING)
short = _Kind(ConfigType.SHORT)
integer = _Kind(ConfigType.INT)
long = _Kind(ConfigType.LONG)
double = _Kind(ConfigType.DOUBLE)
names = _Kind(ConfigType.LIST)
klass = _Kind(ConfigType.CLASS)
password = _Kind(ConfigType.PASSWORD)
