"""ShareAcknowledge (79), versions 1 to 2. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, frozen_struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@frozen_struct
class LeaderIdAndEpoch(Struct):
    leader_id: int = kafka("int32", default=0)
    leader_epoch: int = kafka("int32", default=0)


@struct
class PartitionData(Struct):
    partition_index: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)
    current_leader: LeaderIdAndEpoch = kafka(LeaderIdAndEpoch, default=LeaderIdAndEpoch())


@struct
class ShareAcknowledgeTopicResponse(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[PartitionData, ...] = kafka([PartitionData], default=())


@struct
class NodeEndpoint(Struct):
    node_id: int = kafka("int32", default=0)
    host: str = kafka("string", default="")
    port: int = kafka("int32", default=0)
    rack: str | None = kafka("string", default=None, nullable=True)


@message(versions=(1, 2), flexible_since=1, api_key=79)
class ShareAcknowledgeResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)
    acquisition_lock_timeout_ms: int = kafka("int32", default=0, since=2)
    responses: tuple[ShareAcknowledgeTopicResponse, ...] = kafka([ShareAcknowledgeTopicResponse], default=())
    node_endpoints: tuple[NodeEndpoint, ...] = kafka([NodeEndpoint], default=())


@struct
class AcknowledgementBatch(Struct):
    first_offset: int = kafka("int64", default=0)
    last_offset: int = kafka("int64", default=0)
    acknowledge_types: tuple[int, ...] = kafka("[]int8", default=())


@struct
class AcknowledgePartition(Struct):
    partition_index: int = kafka("int32", default=0)
    acknowledgement_batches: tuple[AcknowledgementBatch, ...] = kafka([AcknowledgementBatch], default=())


@struct
class AcknowledgeTopic(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[AcknowledgePartition, ...] = kafka([AcknowledgePartition], default=())


@message(versions=(1, 2), flexible_since=1, api_key=79, response=ShareAcknowledgeResponse)
class ShareAcknowledgeRequest(Request[ShareAcknowledgeResponse]):
    group_id: str | None = kafka("string", default=None, nullable=True)
    member_id: str | None = kafka("string", default="", nullable=True)
    share_session_epoch: int = kafka("int32", default=0)
    is_renew_ack: bool = kafka("bool", default=False, since=2)
    topics: tuple[AcknowledgeTopic, ...] = kafka([AcknowledgeTopic], default=())
