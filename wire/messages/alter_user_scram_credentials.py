"""AlterUserScramCredentials (51), version 0. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class AlterUserScramCredentialsResult(Struct):
    user: str = kafka("string", default="")
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)


@message(versions=(0, 0), flexible_since=0, api_key=51)
class AlterUserScramCredentialsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    results: tuple[AlterUserScramCredentialsResult, ...] = kafka(
        [AlterUserScramCredentialsResult], default=()
    )


@struct
class ScramCredentialDeletion(Struct):
    name: str = kafka("string", default="")
    mechanism: int = kafka("int8", default=0)


@struct
class ScramCredentialUpsertion(Struct):
    name: str = kafka("string", default="")
    mechanism: int = kafka("int8", default=0)
    iterations: int = kafka("int32", default=0)
    salt: bytes = kafka("bytes", default=b"")
    salted_password: bytes = kafka("bytes", default=b"", is_secret=True)


@message(versions=(0, 0), flexible_since=0, api_key=51, response=AlterUserScramCredentialsResponse)
class AlterUserScramCredentialsRequest(Request[AlterUserScramCredentialsResponse]):
    deletions: tuple[ScramCredentialDeletion, ...] = kafka([ScramCredentialDeletion], default=())
    upsertions: tuple[ScramCredentialUpsertion, ...] = kafka([ScramCredentialUpsertion], default=())
