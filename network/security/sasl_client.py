"""The client's side of SASL on a connection that has just been made."""

from typing import Protocol

from kquorum.network.security.client_security import ClientSecurity
from kquorum.network.security.names import PLAIN
from kquorum.network.security.plain import encode_plain
from kquorum.network.security.scram import ScramError
from kquorum.network.security.scram_client import ScramClient
from kquorum.wire.message_schema import R, Request
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kquorum.wire.messages.sasl_handshake import SaslHandshakeRequest


class Ask(Protocol):
    """Sends a request and awaits its response."""

    async def __call__(self, request: Request[R]) -> R: ...


class SaslRefused(Exception):
    """The server, or our distrust of it, ended the authentication; the message holds no secret."""


async def authenticate(ask: Ask, security: ClientSecurity) -> None:
    """Raises SaslRefused, or what `ask` raises."""
    mechanism = security.mechanism
    assert mechanism is not None
    response = await ask(SaslHandshakeRequest(mechanism=mechanism))
    if response.error_code is ErrorCode.unsupported_sasl_mechanism:
        offered = ", ".join(response.mechanisms) or "none"
        raise SaslRefused(f"it does not offer the SASL mechanism {mechanism}; offered: {offered}")
    if response.error_code:
        raise SaslRefused(
            f"it refuses SaslHandshake with error {int(response.error_code)}: does it want SASL at all?"
        )
    if mechanism == PLAIN:
        await _token(ask, encode_plain(security.username, security.password))
        return
    scram = ScramClient(mechanism, security.username, security.password, is_token=security.is_token)
    try:
        answer = await _token(ask, scram.first())
        scram.check(await _token(ask, scram.final(answer)))
    except ScramError as error:
        raise SaslRefused(str(error)) from None


async def _token(ask: Ask, data: bytes) -> bytes:
    response = await ask(SaslAuthenticateRequest(auth_bytes=data))
    if response.error_code:
        raise SaslRefused(response.error_message or f"error {int(response.error_code)}")
    return response.auth_bytes
