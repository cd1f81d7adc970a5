"""A listener with SASL PLAIN, and requests to it."""

from typing import Any

from kquorum.network.security.listener_security import ListenerSecurity
from kquorum.network.security.sasl_session import SaslAnswer
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from kquorum.wire.messages.sasl_handshake import SaslHandshakeResponse
from kquorum.wire.protocol.apis import ApiKey
from kquorum.wire.protocol.frames import encode_frame
from kquorum.wire.protocol.headers import RequestHeader
from tests.support.api_calls import request_of
from tests.support.kio.frames import decode_response, encode_request
from tests.support.network.peers import (
    RawClient,
)

SASL_PLAINTEXT = 2


class PasswordSession:
    """Takes the token `<user>:right`, and asks for a new one after `lifetime_ms`, or what `<user>:right:<ms>` says."""

    def __init__(self, lifetime_ms: int = 0) -> None:
        self._lifetime_ms = lifetime_ms

    def handle(self, header: RequestHeader, request: Any) -> SaslAnswer:
        if header.api_key == ApiKey.SASL_HANDSHAKE:
            return SaslAnswer(response=SaslHandshakeResponse(mechanisms=("PLAIN",)))
        user, password, *lifetime_ms = request.auth_bytes.decode().split(":")
        if password != "right":
            refusal = SaslAuthenticateResponse(
                error_code=ErrorCode.sasl_authentication_failed, error_message="no"
            )
            return SaslAnswer(response=refusal, is_failure=True, reason="wrong password")
        lasts_ms = int(lifetime_ms[0]) if lifetime_ms else self._lifetime_ms
        return SaslAnswer(
            response=SaslAuthenticateResponse(session_lifetime_ms=lasts_ms),
            principal=f"User:{user}",
            is_token_authenticated=user == "token",
            session_lifetime_ms=lasts_ms,
        )


def sasl(lifetime_ms: int = 0, **arguments: Any) -> ListenerSecurity:
    return ListenerSecurity(
        protocol=SASL_PLAINTEXT,
        new_session=lambda: PasswordSession(lifetime_ms),
        failed_authentication_delay_ms=50,
        **arguments,
    )


async def ask(client: RawClient, api_key: ApiKey, version: int, values: dict[str, Any]) -> Any:
    entity = request_of(api_key, version, values)
    client.writer.write(encode_frame(encode_request(api_key, version, 3, "test", entity)))
    frame = await client.next_frame()
    return None if frame is None else decode_response(api_key, version, frame)[1]
