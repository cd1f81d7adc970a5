"""CreateTopics (19), versions 2 to 7. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@struct
class CreatableTopicConfigs(Struct):
    name: str = kafka("string", default="")
    value: str | None = kafka("string", default="", nullable=True)
    read_only: bool = kafka("bool", default=False)
    config_source: int = kafka("int8", default=-1)
    is_sensitive: bool = kafka("bool", default=False)


@struct
class CreatableTopicResult(Struct):
    name: str = kafka("string", default="")
    topic_id: UUID = kafka("uuid", default=ZERO_UUID, since=7)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)
    topic_config_error_code: int = kafka("int16", default=0, since=5, tag=0)
    num_partitions: int = kafka("int32", default=-1, since=5)
    replication_factor: int = kafka("int16", default=-1, since=5)
    configs: tuple[CreatableTopicConfigs, ...] | None = kafka(
        [CreatableTopicConfigs], default=(), since=5, nullable=True
    )


@message(versions=(2, 7), flexible_since=5, api_key=19)
class CreateTopicsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    topics: tuple[CreatableTopicResult, ...] = kafka([CreatableTopicResult], default=())


@struct
class CreatableReplicaAssignment(Struct):
    partition_index: int = kafka("int32", default=0)
    broker_ids: tuple[int, ...] = kafka("[]int32", default=())


@struct
class CreatableTopicConfig(Struct):
    name: str = kafka("string", default="")
    value: str | None = kafka("string", default="", nullable=True)


@struct
class CreatableTopic(Struct):
    name: str = kafka("string", default="")
    num_partitions: int = kafka("int32", default=0)
    replication_factor: int = kafka("int16", default=0)
    assignments: tuple[CreatableReplicaAssignment, ...] = kafka([CreatableReplicaAssignment], default=())
    configs: tuple[CreatableTopicConfig, ...] = kafka([CreatableTopicConfig], default=())


@message(versions=(2, 7), flexible_since=5, api_key=19, response=CreateTopicsResponse)
class CreateTopicsRequest(Request[CreateTopicsResponse]):
    topics: tuple[CreatableTopic, ...] = kafka([CreatableTopic], default=())
    timeout_ms: int = kafka("int32", default=60000)
    validate_only: bool = kafka("bool", default=False)
