"""Kafka's keys for TLS and SASL: which there are, which of them hold secrets, and what they are for one listener.

Each may be said for one listener alone, as `listener.name.<listener in lower case>.<key>`, and then goes before what
is said for all. A login, and how long it counts, may be for one mechanism:
`listener.name.<listener>.<mechanism>.sasl.jaas.config`.
"""

from collections.abc import Iterable, Iterator, Mapping

from kquorum.metadata.configs.table import FILE_CONFIGS
from kquorum.metadata.configs.used_by import TLS_AND_SASL
from kquorum.network.security.names import MECHANISMS, PROTOCOLS

LISTENER_PREFIX = "listener.name."
JAAS = "sasl.jaas.config"
MAX_REAUTH = "connections.max.reauth.ms"
MECHANISMS_KEY = "sasl.enabled.mechanisms"
CONTROLLER_MECHANISM = "sasl.mechanism.controller.protocol"
INTER_BROKER_MECHANISM = "sasl.mechanism.inter.broker.protocol"
DEFAULT_PROTOCOL = "PLAINTEXT"
# Keys for the gRPC listener alone are said as if it were a listener of this name.
GRPC = "GRPC"

SECURITY_KEYS = frozenset(each.name for each in FILE_CONFIGS.values() if each.used_by is TLS_AND_SASL)
_NUMBERS = (
    MAX_REAUTH,
    "connection.failed.authentication.delay.ms",
    "sasl.server.max.receive.size",
)
_OF_MECHANISMS = (JAAS, MAX_REAUTH)


def base_key(key: str) -> str | None:
    """The key without its listener and mechanism; None if it is no key of TLS or SASL."""
    if not key.startswith(LISTENER_PREFIX):
        return key if key in SECURITY_KEYS else None
    # A listener's name may have dots in it, so its end is found from the other side.
    rest = key.removeprefix(LISTENER_PREFIX)
    return next(
        (base for base in SECURITY_KEYS if rest.endswith(f".{base}") and len(rest) > len(base) + 1), None
    )


def is_security_key(key: str) -> bool:
    return base_key(key) is not None


def is_secret_key(key: str) -> bool:
    """Whether its value must not be shown: passwords, keys, and logins."""
    definition = FILE_CONFIGS.get(base_key(key) or key)
    return definition is not None and definition.is_sensitive


def listener_of(key: str) -> str | None:
    """The listener, in upper case, that a key is for; None if it is for all."""
    base = base_key(key)
    if base is None or not key.startswith(LISTENER_PREFIX):
        return None
    name = key.removeprefix(LISTENER_PREFIX).removesuffix(f".{base}").upper()
    if base in _OF_MECHANISMS:
        for mechanism in MECHANISMS:
            name = name.removesuffix(f".{mechanism}")
    return name


def listener_keys(keys: Mapping[str, str], name: str, protocol: str) -> dict[str, str]:
    """What holds for one listener, under Kafka's plain keys. What is for one mechanism is under `<mechanism in lower
    case>.`.

    On a listener with SASL, SASL authenticates the peer: clients are asked for certificates there only if the listener
    itself says so (KIP-684).
    """
    prefix = f"{LISTENER_PREFIX}{name.lower()}."
    common = {key: value for key, value in keys.items() if not key.startswith(LISTENER_PREFIX)}
    if protocol.startswith("SASL_"):
        common.pop("ssl.client.auth", None)
    own = {key.removeprefix(prefix): value for key, value in keys.items() if key.startswith(prefix)}
    return common | own


def protocol_name(entries: Iterable[str], name: str) -> str:
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL: as `listener.security.protocol.map` has it, or as the name itself
    says, or PLAINTEXT."""
    mapped = dict(entry.rsplit(":", 1) for entry in entries if ":" in entry)
    return mapped.get(name) or (name if name in PROTOCOLS else DEFAULT_PROTOCOL)


def map_problems(entries: Iterable[str], listeners: Iterable[str]) -> Iterator[str]:
    """What is wrong with `listener.security.protocol.map`, which is empty or names every listener."""
    known: set[str] = set()
    for entry in entries:
        name, separator, protocol = entry.rpartition(":")
        if not separator or not name:
            yield f"{entry!r} is not LISTENER:PROTOCOL"
        elif protocol not in PROTOCOLS:
            yield f"listener {name} is mapped to {protocol or 'nothing'}; there are {', '.join(PROTOCOLS)}"
        elif name in known:
            yield f"listener {name} is mapped twice"
        known.add(name)
    if known:
        for name in sorted(set(listeners) - known - set(PROTOCOLS)):
            yield f"listener {name} is not mapped, and the others are; add {name}:PROTOCOL"


def case_problem(key: str) -> str | None:
    """Kafka looks for the keys of a listener in lower case and passes all others over, so that what is said would
    not hold."""
    if not key.startswith(LISTENER_PREFIX) or key.islower():
        return None
    return f"{key} must be written in lower case, as in Kafka, whatever the listener is called: {key.lower()}"


def key_problems(keys: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(key, message) for what must be in lower case and is not, and what must be a number and is none."""
    for key, value in keys.items():
        if (message := case_problem(key)) is not None:
            yield key, message
        if base_key(key) in _NUMBERS and not (value.isascii() and value.isdigit()):
            yield key, f"{key} must be a number, 0 or more"
