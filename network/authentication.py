"""The identity of the peer of one connection, and what it may send before that is known (KIP-43, KIP-152, KIP-368)."""

from collections.abc import Callable

from kquorum.network.requests import ANONYMOUS
from kquorum.network.security.listener_security import ListenerSecurity
from kquorum.network.security.sasl_session import SaslAnswer, SaslRequest
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from kquorum.wire.messages.sasl_handshake import SaslHandshakeResponse
from kquorum.wire.protocol.apis import ApiKey
from kquorum.wire.protocol.headers import RequestHeader

SASL_APIS = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
# Version 0 of SaslHandshake is followed by tokens that are no requests; no client of this decade asks for it first.
SASL_VERSIONS = {ApiKey.SASL_HANDSHAKE: (1, 1), ApiKey.SASL_AUTHENTICATE: (0, 2)}

BEFORE_AUTHENTICATION = SASL_APIS | {ApiKey.API_VERSIONS}


class Authentication:
    """`principal` is None until SASL is through. Times are of the loop's clock."""

    __slots__ = ("_expires_at_s", "_is_still_valid", "_session", "is_token_authenticated", "principal")

    def __init__(self, security: ListenerSecurity, certificate: bytes | None) -> None:
        """`certificate` is the peer's, in DER, where it showed one."""
        self._session = None if security.new_session is None else security.new_session()
        self._expires_at_s: float | None = None
        self._is_still_valid: Callable[[], bool] | None = None
        self.principal: str | None = None
        self.is_token_authenticated = False
        if self._session is None:
            is_tls = security.ssl_context is not None
            self.principal = security.principal_of_certificate(certificate) if is_tls else ANONYMOUS

    def end(self) -> None:
        """The connection has closed: what the exchange keeps of the peer's messages is let go."""
        self._session = self._is_still_valid = None

    def may_ask(self, api_key: int, now_s: float) -> bool:
        """As in Kafka: a session that has expired is good for authenticating again, and not even for ApiVersions.

        Other than Kafka's, the session of a delegation token ends with the token, also when the owner expires it.
        """
        if self.principal is None:
            return api_key in BEFORE_AUTHENTICATION
        if self._is_still_valid is not None and not self._is_still_valid():
            return api_key in SASL_APIS
        return self._expires_at_s is None or now_s < self._expires_at_s or api_key in SASL_APIS

    def handle(self, header: RequestHeader, request: SaslRequest, now_s: float) -> SaslAnswer:
        """Answers SaslHandshake and SaslAuthenticate."""
        if self._session is None:
            return _out_of_place(header, "this listener asks for no SASL authentication")
        is_again = self.principal is not None and header.api_key == ApiKey.SASL_HANDSHAKE
        if is_again and self._expires_at_s is None:
            return _out_of_place(header, "the connection is authenticated")
        answer = self._session.handle(header, request)
        if answer.principal is None:
            return answer
        if self.principal not in (None, answer.principal):
            return _another_principal(answer.principal, self.principal)
        self.principal = answer.principal
        self.is_token_authenticated = answer.is_token_authenticated
        lifetime_ms = answer.session_lifetime_ms
        self._is_still_valid = answer.is_still_valid
        self._expires_at_s = now_s + lifetime_ms / 1000 if lifetime_ms else None
        return answer


def _out_of_place(header: RequestHeader, reason: str) -> SaslAnswer:
    """As Kafka answers a SASL request that has no business where it is; the connection stays."""
    if header.api_key == ApiKey.SASL_HANDSHAKE:
        return SaslAnswer(
            response=SaslHandshakeResponse(error_code=ErrorCode.illegal_sasl_state), reason=reason
        )
    response = SaslAuthenticateResponse(error_code=ErrorCode.illegal_sasl_state, error_message=reason)
    return SaslAnswer(response=response, reason=reason)


def _another_principal(principal: str, before: str | None) -> SaslAnswer:
    message = "a connection must authenticate again as the principal that it had"
    response = SaslAuthenticateResponse(
        error_code=ErrorCode.sasl_authentication_failed, error_message=message
    )
    return SaslAnswer(response=response, is_failure=True, reason=f"{principal} in place of {before}")
