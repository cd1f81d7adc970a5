"""AddRaftVoter (80), versions 0 to 1. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@message(versions=(0, 1), flexible_since=0, api_key=80)
class AddRaftVoterResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)


@struct
class Listener(Struct):
    name: str = kafka("string", default="")
    host: str = kafka("string", default="")
    port: int = kafka("uint16", default=0)


@message(versions=(0, 1), flexible_since=0, api_key=80, response=AddRaftVoterResponse)
class AddRaftVoterRequest(Request[AddRaftVoterResponse]):
    cluster_id: str | None = kafka("string", default="", nullable=True)
    timeout_ms: int = kafka("int32", default=0)
    voter_id: int = kafka("int32", default=0)
    voter_directory_id: UUID = kafka("uuid", default=ZERO_UUID)
    listeners: tuple[Listener, ...] = kafka([Listener], default=())
    ack_when_committed: bool = kafka("bool", default=True, since=1)
