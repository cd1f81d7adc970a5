"""A login entry as Kafka's `sasl.jaas.config` has it: `Module required name="value" ...;`."""

import re
from dataclasses import dataclass, field

_WORD = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^\s=;"]+))', re.DOTALL)
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
_USER_PREFIX = "user_"


class JaasError(ValueError):
    """Never quotes the entry, which holds passwords."""


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """`module` is the last part of the class name: PlainLoginModule, ScramLoginModule."""

    module: str
    options: dict[str, str] = field(repr=False)

    @property
    def username(self) -> str | None:
        return self.options.get("username")

    @property
    def password(self) -> str | None:
        return self.options.get("password")

    @property
    def is_token(self) -> bool:
        return self.options.get("tokenauth", "").lower() == "true"

    @property
    def users(self) -> dict[str, str]:
        """The users that may log in here with PLAIN: the options `user_<name>`."""
        return {
            key.removeprefix(_USER_PREFIX): value
            for key, value in self.options.items()
            if key.startswith(_USER_PREFIX)
        }


def parse_jaas(text: str) -> JaasEntry:
    """Raises JaasError."""
    if not text.rstrip().endswith(";"):
        raise JaasError("the entry does not end with a semicolon")
    module, position = _word(text, 0)
    flag, position = _word(text, position)
    if flag.lower() not in _FLAGS:
        raise JaasError("the entry lacks the word `required` behind the login module")
    options: dict[str, str] = {}
    while (rest := text[position:].strip()) != ";":
        name, position = _word(text, position)
        equals = re.compile(r"\s*=").match(text, position)
        if equals is None:
            raise JaasError(
                f"an option at character {position} of {len(text)} has no value (name=value)" if rest else ""
            )
        options[name], position = _word(text, equals.end())
    return JaasEntry(module.rpartition(".")[2], options)


def _word(text: str, position: int) -> tuple[str, int]:
    match = _WORD.match(text, position)
    if match is None:
        raise JaasError(f"the entry cannot be read at character {position} of {len(text)}")
    quoted, bare = match[1], match[2]
    return (re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else bare), match.end()
