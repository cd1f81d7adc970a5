"""How the connections of one listener are protected, and which principals their peers have."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass

from kquorum.network.requests import ANONYMOUS
from kquorum.network.security.names import PLAINTEXT
from kquorum.network.security.sasl_session import SaslSession


def anonymous(_certificate: bytes | None) -> str:
    return ANONYMOUS


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSecurity:
    """`protocol` as in Kafka's registrations: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.

    `principal_of_certificate` takes the peer's certificate in DER (`ssl_object.getpeercert(binary_form=True)`),
    None when it showed none; it is of use on a listener with TLS and without SASL.
    `new_session` is None where there is no SASL. Each connection has a session of its own, and until it is
    authenticated sends frames of at most `max_unauthenticated_bytes` (Kafka: `sasl.server.max.receive.size`).
    """

    protocol: int = PLAINTEXT
    ssl_context: ssl.SSLContext | None = None
    new_session: Callable[[], SaslSession] | None = None
    principal_of_certificate: Callable[[bytes | None], str] = anonymous
    handshake_timeout_ms: int = 10_000
    failed_authentication_delay_ms: int = 100
    max_unauthenticated_bytes: int = 524_288


UNSECURED = ListenerSecurity()
