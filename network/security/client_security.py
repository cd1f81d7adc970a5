"""How this program's own connections are protected, and which identity they present."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

from kquorum.network.security.errors import SecurityConfigError
from kquorum.network.security.jaas import JaasEntry, JaasError, parse_jaas
from kquorum.network.security.names import MECHANISMS, PLAIN, PLAINTEXT, PROTOCOLS, WITH_SASL, WITH_TLS
from kquorum.network.security.reloading import reloading_context
from kquorum.network.security.tls import client_context

_MODULES = {PLAIN: "PlainLoginModule"}
_JAAS = "sasl.jaas.config"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecurity:
    """`protocol` as in ListenerSecurity; `mechanism` is None without SASL. The context checks the host if it is to."""

    protocol: int = PLAINTEXT
    ssl_context: ssl.SSLContext | None = None
    mechanism: str | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    is_token: bool = False


def client_security(keys: Mapping[str, str]) -> ClientSecurity:
    """From the keys of a Kafka client: security.protocol, ssl.*, sasl.mechanism, sasl.jaas.config.

    Raises SecurityConfigError.
    """
    name = keys.get("security.protocol", "PLAINTEXT").strip().upper()
    if name not in PROTOCOLS:
        raise SecurityConfigError("security.protocol", f"{name!r} is none of {', '.join(PROTOCOLS)}")
    protocol = PROTOCOLS[name]
    context = (
        reloading_context("connections to others", keys, client_context) if protocol in WITH_TLS else None
    )
    if protocol not in WITH_SASL:
        return ClientSecurity(protocol=protocol, ssl_context=context)
    mechanism = keys.get("sasl.mechanism", "").strip().upper()
    if mechanism not in MECHANISMS:
        said = f"{mechanism} is none of" if mechanism else "it must be one of"
        raise SecurityConfigError("sasl.mechanism", f"{said} {', '.join(MECHANISMS)}")
    entry = login_entry(_JAAS, keys.get(_JAAS), mechanism)
    if not entry.username or not entry.password:
        raise SecurityConfigError(_JAAS, f"{entry.module} needs username and password")
    return ClientSecurity(
        protocol=protocol,
        ssl_context=context,
        mechanism=mechanism,
        username=entry.username,
        password=entry.password,
        is_token=entry.is_token,
    )


def login_entry(key: str, text: str | None, mechanism: str) -> JaasEntry:
    """Raises SecurityConfigError when it lacks or is not for this mechanism."""
    module = _MODULES.get(mechanism, "ScramLoginModule")
    if not text:
        message = f"{mechanism} needs a login: `{module} required username=... password=...;`"
        raise SecurityConfigError(key, message)
    try:
        entry = parse_jaas(text)
    except JaasError as error:
        raise SecurityConfigError(key, str(error)) from None
    if entry.module != module:
        raise SecurityConfigError(key, f"{mechanism} goes with {module}, not with {entry.module}")
    return entry
