"""RemoveRaftVoter (81), version 0. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, kafka, message
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@message(versions=(0, 0), flexible_since=0, api_key=81)
class RemoveRaftVoterResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)


@message(versions=(0, 0), flexible_since=0, api_key=81, response=RemoveRaftVoterResponse)
class RemoveRaftVoterRequest(Request[RemoveRaftVoterResponse]):
    cluster_id: str | None = kafka("string", default="", nullable=True)
    voter_id: int = kafka("int32", default=0)
    voter_directory_id: UUID = kafka("uuid", default=ZERO_UUID)
