"""UpdateRaftVoter (82), version 0. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, frozen_struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@frozen_struct
class CurrentLeader(Struct):
    leader_id: int = kafka("int32", default=-1)
    leader_epoch: int = kafka("int32", default=-1)
    host: str = kafka("string", default="")
    port: int = kafka("int32", default=0)


@message(versions=(0, 0), flexible_since=0, api_key=82)
class UpdateRaftVoterResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    current_leader: CurrentLeader = kafka(CurrentLeader, default=CurrentLeader(), tag=0)


@struct
class Listener(Struct):
    name: str = kafka("string", default="")
    host: str = kafka("string", default="")
    port: int = kafka("uint16", default=0)


@frozen_struct
class KRaftVersionFeature(Struct):
    min_supported_version: int = kafka("int16", default=0)
    max_supported_version: int = kafka("int16", default=0)


@message(versions=(0, 0), flexible_since=0, api_key=82, response=UpdateRaftVoterResponse)
class UpdateRaftVoterRequest(Request[UpdateRaftVoterResponse]):
    cluster_id: str | None = kafka("string", default="", nullable=True)
    current_leader_epoch: int = kafka("int32", default=0)
    voter_id: int = kafka("int32", default=0)
    voter_directory_id: UUID = kafka("uuid", default=ZERO_UUID)
    listeners: tuple[Listener, ...] = kafka([Listener], default=())
    k_raft_version_feature: KRaftVersionFeature = kafka(KRaftVersionFeature, default=KRaftVersionFeature())
