"""StreamsGroupHeartbeat (88), version 0. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, frozen_struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class Status(Struct):
    status_code: int = kafka("int8", default=0)
    status_detail: str = kafka("string", default="")


@struct
class ResponseTaskIds(Struct):
    subtopology_id: str = kafka("string", default="")
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@frozen_struct
class ResponseEndpoint(Struct):
    host: str = kafka("string", default="")
    port: int = kafka("uint16", default=0)


@struct
class TopicPartition(Struct):
    topic: str = kafka("string", default="")
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@struct
class EndpointToPartitions(Struct):
    user_endpoint: ResponseEndpoint = kafka(ResponseEndpoint, default=ResponseEndpoint())
    active_partitions: tuple[TopicPartition, ...] = kafka([TopicPartition], default=())
    standby_partitions: tuple[TopicPartition, ...] = kafka([TopicPartition], default=())


@message(versions=(0, 0), flexible_since=0, api_key=88)
class StreamsGroupHeartbeatResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)
    member_id: str = kafka("string", default="")
    member_epoch: int = kafka("int32", default=0)
    heartbeat_interval_ms: int = kafka("int32", default=0)
    acceptable_recovery_lag: int = kafka("int32", default=0)
    task_offset_interval_ms: int = kafka("int32", default=0)
    status: tuple[Status, ...] | None = kafka([Status], default=(), nullable=True)
    active_tasks: tuple[ResponseTaskIds, ...] | None = kafka([ResponseTaskIds], default=(), nullable=True)
    standby_tasks: tuple[ResponseTaskIds, ...] | None = kafka([ResponseTaskIds], default=(), nullable=True)
    warmup_tasks: tuple[ResponseTaskIds, ...] | None = kafka([ResponseTaskIds], default=(), nullable=True)
    endpoint_information_epoch: int = kafka("int32", default=0)
    partitions_by_user_endpoint: tuple[EndpointToPartitions, ...] | None = kafka(
        [EndpointToPartitions], default=(), nullable=True
    )


@struct
class KeyValue(Struct):
    key: str = kafka("string", default="")
    value: str = kafka("string", default="")


@struct
class TopicInfo(Struct):
    name: str = kafka("string", default="")
    partitions: int = kafka("int32", default=0)
    replication_factor: int = kafka("int16", default=0)
    topic_configs: tuple[KeyValue, ...] = kafka([KeyValue], default=())


@struct
class CopartitionGroup(Struct):
    source_topics: tuple[int, ...] = kafka("[]int16", default=())
    source_topic_regex: tuple[int, ...] = kafka("[]int16", default=())
    repartition_source_topics: tuple[int, ...] = kafka("[]int16", default=())


@struct
class Subtopology(Struct):
    subtopology_id: str = kafka("string", default="")
    source_topics: tuple[str, ...] = kafka("[]string", default=())
    source_topic_regex: tuple[str, ...] = kafka("[]string", default=())
    state_changelog_topics: tuple[TopicInfo, ...] = kafka([TopicInfo], default=())
    repartition_sink_topics: tuple[str, ...] = kafka("[]string", default=())
    repartition_source_topics: tuple[TopicInfo, ...] = kafka([TopicInfo], default=())
    copartition_groups: tuple[CopartitionGroup, ...] = kafka([CopartitionGroup], default=())


@struct
class Topology(Struct):
    epoch: int = kafka("int32", default=0)
    subtopologies: tuple[Subtopology, ...] = kafka([Subtopology], default=())


@struct
class RequestTaskIds(Struct):
    subtopology_id: str = kafka("string", default="")
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@struct
class RequestEndpoint(Struct):
    host: str = kafka("string", default="")
    port: int = kafka("uint16", default=0)


@struct
class TaskOffset(Struct):
    subtopology_id: str = kafka("string", default="")
    partition: int = kafka("int32", default=0)
    offset: int = kafka("int64", default=0)


@message(versions=(0, 0), flexible_since=0, api_key=88, response=StreamsGroupHeartbeatResponse)
class StreamsGroupHeartbeatRequest(Request[StreamsGroupHeartbeatResponse]):
    group_id: str = kafka("string", default="")
    member_id: str = kafka("string", default="")
    member_epoch: int = kafka("int32", default=0)
    endpoint_information_epoch: int = kafka("int32", default=0)
    instance_id: str | None = kafka("string", default=None, nullable=True)
    rack_id: str | None = kafka("string", default=None, nullable=True)
    rebalance_timeout_ms: int = kafka("int32", default=-1)
    topology: Topology | None = kafka(Topology, default=None, nullable=True)
    active_tasks: tuple[RequestTaskIds, ...] | None = kafka([RequestTaskIds], default=(), nullable=True)
    standby_tasks: tuple[RequestTaskIds, ...] | None = kafka([RequestTaskIds], default=(), nullable=True)
    warmup_tasks: tuple[RequestTaskIds, ...] | None = kafka([RequestTaskIds], default=(), nullable=True)
    process_id: str | None = kafka("string", default=None, nullable=True)
    user_endpoint: RequestEndpoint | None = kafka(RequestEndpoint, default=None, nullable=True)
    client_tags: tuple[KeyValue, ...] | None = kafka([KeyValue], default=(), nullable=True)
    task_offsets: tuple[TaskOffset, ...] | None = kafka([TaskOffset], default=(), nullable=True)
    task_end_offsets: tuple[TaskOffset, ...] | None = kafka([TaskOffset], default=(), nullable=True)
    shutdown_application: bool = kafka("bool", default=False)
