"""The name in a client's certificate as Kafka prints it: RFC 2253 in the form of Java's X500Principal.

`User:CN=alice,OU=ops,C=DE`: last part first, attributes that RFC 2253 does not name as number and hexadecimal DER,
and a backslash in front of each of `,=+<>#;"\\` and of blanks at either end. ACLs and super.users hold such names.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kquorum.network.requests import ANONYMOUS
from kquorum.network.security.errors import UnnamedCertificate

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ESCAPED = frozenset(',=+<>#;"\\')
_BLANKS = " \r"
_PART = r"(?:\\.|[^\\/])*"
# The patterns of rules may take time that grows with a power of it.
MOST_NAME_CHARACTERS = 1_000
_SHOWN_CHARACTERS = 100
_RULE = re.compile(rf"\s*(?:(DEFAULT)|RULE:({_PART})/({_PART})/([LU]?))\s*(?:,\s*|$)")


@dataclass(frozen=True, slots=True)
class MappingRule:
    """`pattern` None is DEFAULT: the name as it is."""

    pattern: re.Pattern[str] | None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """None where the rule does not fit the whole name."""
        if self.pattern is None:
            return name
        match = self.pattern.fullmatch(name)
        if match is None:
            return None
        mapped = match.expand(self.replacement)
        return mapped.lower() if self.case == "L" else mapped.upper() if self.case == "U" else mapped


def parse_mapping_rules(text: str) -> tuple[MappingRule, ...]:
    """Of `ssl.principal.mapping.rules`: DEFAULT and RULE:pattern/replacement/[LU], the first that fits counts.

    Raises ValueError.
    """
    rules, position = [], 0
    while position < len(text):
        match = _RULE.match(text, position)
        if match is None or match.end() == position:
            rest = text[position : position + _SHOWN_CHARACTERS]
            raise ValueError(f"{rest!r} is neither DEFAULT nor RULE:pattern/replacement/[LU]")
        position = match.end()
        rules.append(MappingRule(None) if match[1] else _rule(match[2], match[3], match[4]))
    return tuple(rules) or (MappingRule(None),)


def principal_of_certificate(rules: tuple[MappingRule, ...]) -> Callable[[bytes | None], str]:
    """For ListenerSecurity: "User:" and the mapped name; the anonymous principal without a certificate.

    The function raises UnnamedCertificate if no rule fits, as Kafka does: without DEFAULT only certificates that a rule
    names are accepted.
    """

    def principal(der: bytes | None) -> str:
        if der is None:
            return ANONYMOUS
        name = rfc_2253_name(der)
        if len(name) > MOST_NAME_CHARACTERS:
            raise UnnamedCertificate(
                f"its certificate's name is longer than {MOST_NAME_CHARACTERS} characters"
            )
        for rule in rules:
            if (mapped := rule.apply(name)) is not None:
                return f"User:{mapped}"
        raise UnnamedCertificate(f"no rule of ssl.principal.mapping.rules fits its certificate {name!r}")

    return principal


@lru_cache(maxsize=1_000)  # gRPC names its caller again at each call
def rfc_2253_name(der: bytes) -> str:
    """The subject of a certificate in DER."""
    from cryptography.x509 import load_der_x509_certificate

    subject = load_der_x509_certificate(der).subject
    return ",".join("+".join(map(_attribute, rdn)) for rdn in reversed(list(subject.rdns)))


def _attribute(attribute: Any) -> str:
    oid = attribute.oid.dotted_string
    if oid not in _KEYWORDS or not isinstance(attribute.value, str):
        return f"{oid}=#{_der(attribute).hex()}"
    return f"{_KEYWORDS[oid]}={_escaped(attribute.value)}"


def _der(attribute: Any) -> bytes:
    """Tag, length and value: only short values have names that are not of RFC 2253."""
    kind = attribute._type
    encoding = {"BMPString": "utf_16_be", "UniversalString": "utf_32_be"}.get(kind.name, "utf-8")
    value = attribute.value if isinstance(attribute.value, bytes) else attribute.value.encode(encoding)
    size = len(value)
    length = bytes([size]) if size < 0x80 else _long_length(size)
    return bytes([kind.value]) + length + value


def _long_length(size: int) -> bytes:
    digits = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes([0x80 | len(digits)]) + digits


def _escaped(value: str) -> str:
    text = "".join(f"\\{c}" if c in _ESCAPED else "\\00" if c == "\0" else c for c in value)
    lead = len(text) - len(text.lstrip(_BLANKS))
    trail = len(text.rstrip(_BLANKS))
    return "".join(f"\\{c}" if not lead <= index < max(trail, lead) else c for index, c in enumerate(text))


def _rule(pattern: str, replacement: str, case: str) -> MappingRule:
    # Java writes $1 where Python writes \g<1>.
    expanded = re.sub(r"\$(\d+)", r"\\g<\1>", replacement)
    shown = pattern if len(pattern) <= _SHOWN_CHARACTERS else f"{pattern[:_SHOWN_CHARACTERS]}..."
    try:
        compiled = re.compile(pattern)
    except (RecursionError, OverflowError):
        raise ValueError(
            f"the pattern {shown!r} cannot be used: it is nested too deeply, or too large"
        ) from None
    except re.error as error:
        raise ValueError(f"the pattern {shown!r} cannot be used: {error}") from error
    try:
        compiled.sub(expanded, "")  # the replacement is read whether or not the pattern fits
    except (re.error, IndexError) as error:
        instead = replacement[:_SHOWN_CHARACTERS]
        raise ValueError(f"the replacement {instead!r} of {shown!r} cannot be used: {error}") from error
    return MappingRule(compiled, expanded, case)
