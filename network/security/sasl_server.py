"""The server's side of SASL on one connection: SaslHandshake, then SaslAuthenticate until the principal is known.

KIP-43 (handshake), KIP-152 (tokens within SaslAuthenticate), KIP-368 (re-authentication), KIP-84 (SCRAM). The peer gets
the same error for all wrong credentials. The log says more; neither contains a password.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kquorum.network.security.names import PLAIN
from kquorum.network.security.plain import PlainError, check_plain
from kquorum.network.security.sasl_session import SaslAnswer, SaslRequest
from kquorum.network.security.scram import ScramError
from kquorum.network.security.scram_server import ScramLookup, ScramServer
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kquorum.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kquorum.wire.protocol.headers import RequestHeader

_FIRST_VERSION_WITH_TOKENS_IN_REQUESTS = 1
_LONGEST_NAME_IN_LOG = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    """What the sessions of one listener share. `plain_users` are names and passwords; `max_reauth_ms` is for the
    mechanisms that `max_reauth_ms_by_mechanism` lacks; 0 is no limit."""

    mechanisms: tuple[str, ...]
    plain_users: Mapping[str, str] = field(default_factory=dict, repr=False)
    scram: ScramLookup | None = field(default=None, repr=False)
    max_reauth_ms: int = 0
    max_reauth_ms_by_mechanism: Mapping[str, int] = field(default_factory=dict)
    now_ms: Callable[[], int] = lambda: 0


@dataclass(frozen=True, slots=True)
class _Authenticated:
    principal: str
    is_token_authenticated: bool = False
    expires_at_ms: int | None = None
    is_still_valid: Callable[[], bool] | None = None


class _Refused(Exception):
    """The message is for the log."""


class SaslServerSession:
    """Satisfies network.security.sasl_session.SaslSession."""

    def __init__(self, settings: SaslSettings) -> None:
        self._settings = settings
        self._mechanism: str | None = None
        self._scram: ScramServer | None = None
        self._is_expecting_tokens = False
        # Of the authentication that is done, which a later one must not change.
        self._principal: str | None = None
        self._lifetime_ms = 0

    def handle(self, header: RequestHeader, request: SaslRequest) -> SaslAnswer:
        if isinstance(request, SaslHandshakeRequest):
            return self._handle_handshake(header.api_version, request)
        return self._handle_token(request)

    def _handle_handshake(self, version: int, request: SaslHandshakeRequest) -> SaslAnswer:
        if self._principal is not None and not self._lifetime_ms:
            return self._handshake_answer(ErrorCode.illegal_sasl_state)
        if version < _FIRST_VERSION_WITH_TOKENS_IN_REQUESTS:
            reason = "its SaslHandshake is of version 0, behind which tokens have no header: too old a client"
            return self._handshake_answer(ErrorCode.illegal_sasl_state, reason)
        if request.mechanism not in self._settings.mechanisms:
            offered = ", ".join(self._settings.mechanisms)
            reason = f"it asks for the SASL mechanism {_shown(request.mechanism)}; offered are {offered}"
            return self._handshake_answer(ErrorCode.unsupported_sasl_mechanism, reason)
        if self._principal is not None and request.mechanism != self._mechanism:
            reason = f"it authenticates again with {request.mechanism} instead of {self._mechanism}"
            return self._handshake_answer(ErrorCode.illegal_sasl_state, reason)
        self._mechanism = request.mechanism
        self._is_expecting_tokens = True
        if self._mechanism != PLAIN:
            assert self._settings.scram is not None
            self._scram = ScramServer(request.mechanism, self._settings.scram)
        return self._handshake_answer(ErrorCode.none)

    def _handshake_answer(self, error_code: ErrorCode, reason: str = "") -> SaslAnswer:
        response = SaslHandshakeResponse(error_code=error_code, mechanisms=self._settings.mechanisms)
        return SaslAnswer(response=response, is_failure=bool(reason), reason=reason)

    def _handle_token(self, request: SaslAuthenticateRequest) -> SaslAnswer:
        if not self._is_expecting_tokens:
            message = "SaslAuthenticate must follow a SaslHandshake"
            is_failure = self._principal is None or bool(self._lifetime_ms)
            return _failed(
                ErrorCode.illegal_sasl_state,
                message,
                "SaslAuthenticate came before SaslHandshake",
                is_failure=is_failure,
            )
        try:
            answer, user = self._step(bytes(request.auth_bytes))
            if user is None:
                return SaslAnswer(response=_token_response(answer))
            return self._authenticated(answer, user)
        except (_Refused, ScramError, PlainError) as error:
            self._is_expecting_tokens = False
            who = "" if self._scram is None else self._scram.claimed_name
            text = f"Authentication failed: invalid credentials with SASL mechanism {self._mechanism}"
            reason = f"{self._mechanism} authentication{' of ' + _shown(who) if who else ''} failed: {error}"
            return _failed(ErrorCode.sasl_authentication_failed, text, reason)

    def _step(self, data: bytes) -> tuple[bytes, _Authenticated | None]:
        """The bytes for the client, and its principal once that is known."""
        if self._mechanism == PLAIN:
            name = check_plain(data, self._settings.plain_users)
            return b"", _Authenticated(f"User:{name}")
        assert self._scram is not None
        answer, user = self._scram.step(data), self._scram.authenticated
        if user is None:
            return answer, None
        who = _Authenticated(
            user.principal, user.is_token_authenticated, user.expires_at_ms, user.is_still_valid
        )
        return answer, who

    def _authenticated(self, answer: bytes, user: _Authenticated) -> SaslAnswer:
        if self._principal is not None and user.principal != self._principal:
            raise _Refused(f"{self._principal} may not become {user.principal} on one connection")
        self._is_expecting_tokens = False
        self._principal = user.principal
        self._lifetime_ms = self._session_lifetime_ms(user)
        return SaslAnswer(
            response=_token_response(answer, self._lifetime_ms),
            principal=user.principal,
            is_token_authenticated=user.is_token_authenticated,
            session_lifetime_ms=self._lifetime_ms,
            is_still_valid=user.is_still_valid,
        )

    def _session_lifetime_ms(self, user: _Authenticated) -> int:
        """Not beyond the life of a token; 0 where there is no limit."""
        settings = self._settings
        limit_ms = settings.max_reauth_ms_by_mechanism.get(self._mechanism or "", settings.max_reauth_ms)
        if user.expires_at_ms is None:
            return limit_ms
        left_ms = max(user.expires_at_ms - self._settings.now_ms(), 1)
        return min(limit_ms, left_ms) if limit_ms else left_ms


def _failed(error_code: ErrorCode, message: str, reason: str, *, is_failure: bool = True) -> SaslAnswer:
    response = SaslAuthenticateResponse(error_code=error_code, error_message=message)
    return SaslAnswer(response=response, is_failure=is_failure, reason=reason)


def _token_response(answer: bytes, lifetime_ms: int = 0) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_message=None, auth_bytes=answer, session_lifetime_ms=lifetime_ms)


def _shown(name: str) -> str:
    """What a peer wrote, fit for one line of a log."""
    return repr(name if len(name) <= _LONGEST_NAME_IN_LOG else name[:_LONGEST_NAME_IN_LOG] + "...")
