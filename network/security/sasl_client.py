"""The client's side of SASL on a connection that has just been made."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from network.security.client_security import ClientSecurity
from network.security.names import PLAIN
from network.security.plain import encode_plain
from network.security.sasl_server import UNSUPPORTED_SASL_MECHANISM
from network.security.scram import ScramError
from network.security.scram_client import ScramClient
from wire.protocol.api_keys import ApiKey

Ask = Callable[[int, Mapping[str, object]], Awaitable[Any]]


class SaslRefused(Exception):
    """The server, or our distrust of it, ended the authentication; the message holds no secret."""


async def authenticate(ask: Ask, security: ClientSecurity) -> None:
    """`ask` sends a request and awaits its response. Raises SaslRefused, or what `ask` raises."""
    mechanism = security.mechanism
    assert mechanism is not None
    response = await ask(ApiKey.SASL_HANDSHAKE, {"mechanism": mechanism})
    if response.error_code == UNSUPPORTED_SASL_MECHANISM:
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
    response = await ask(ApiKey.SASL_AUTHENTICATE, {"auth_bytes": data})
    if response.error_code:
        raise SaslRefused(response.error_message or f"error {int(response.error_code)}")
    return bytes(response.auth_bytes)
