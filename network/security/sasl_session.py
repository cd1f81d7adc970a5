"""What a server's connection asks of SASL; the mechanisms are behind it.

The connection brings SaslHandshake and SaslAuthenticate here and sends back what this answers. Before an answer
has named a principal, a connection may ask for nothing else but ApiVersions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kquorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kquorum.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kquorum.wire.protocol.headers import RequestHeader

SaslRequest = SaslHandshakeRequest | SaslAuthenticateRequest
SaslResponse = SaslHandshakeResponse | SaslAuthenticateResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAnswer:
    """`response` goes to the peer.

    `principal` ("User:alice") is given by the answer that completes an authentication, and by no other.
    `is_failure`: authentication has failed; the answer goes out `failed_authentication_delay_ms` later and the
    connection is closed behind it. `reason` is for the log, holds no secret, and says more than the error for the peer.
    `session_lifetime_ms`: after so long the client must have authenticated again (KIP-368); 0: never.
    `is_still_valid`: asked before each later request; after a False the connection is closed. None: always valid.
    """

    response: SaslResponse
    principal: str | None = None
    is_token_authenticated: bool = False
    is_failure: bool = False
    reason: str = ""
    session_lifetime_ms: int = 0
    is_still_valid: Callable[[], bool] | None = None


class SaslSession(Protocol):
    """The SASL state of one connection; each connection has its own."""

    def handle(self, header: RequestHeader, request: SaslRequest) -> SaslAnswer:
        """Answer SaslHandshake (17) or SaslAuthenticate (36); neither blocks nor raises for a peer's mistakes."""
        ...
