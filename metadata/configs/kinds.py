"""Short ways to write a definition: one function for each type; a default of None means that there is no value."""

from metadata.configs.definition import ConfigDefinition, ConfigType, Importance, Update
from metadata.configs.validators import Validator

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


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
        importance: Importance = Importance.MEDIUM,
        update: Update = Update.READ_ONLY,
        is_internal: bool = False,
    ) -> ConfigDefinition:
        text = None if default is None else str(default)
        if isinstance(default, bool):
            text = str(default).lower()
        return ConfigDefinition(
            name, self._type, text, importance, documentation, validator, update, is_internal
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
