"""StreamsGroupDescribe (89), version 0. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, frozen_struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


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
class Subtopology(Struct):
    subtopology_id: str = kafka("string", default="")
    source_topics: tuple[str, ...] = kafka("[]string", default=())
    repartition_sink_topics: tuple[str, ...] = kafka("[]string", default=())
    state_changelog_topics: tuple[TopicInfo, ...] = kafka([TopicInfo], default=())
    repartition_source_topics: tuple[TopicInfo, ...] = kafka([TopicInfo], default=())


@struct
class Topology(Struct):
    epoch: int = kafka("int32", default=0)
    subtopologies: tuple[Subtopology, ...] | None = kafka([Subtopology], default=(), nullable=True)


@struct
class Endpoint(Struct):
    host: str = kafka("string", default="")
    port: int = kafka("uint16", default=0)


@struct
class TaskOffset(Struct):
    subtopology_id: str = kafka("string", default="")
    partition: int = kafka("int32", default=0)
    offset: int = kafka("int64", default=0)


@struct
class TaskIds(Struct):
    subtopology_id: str = kafka("string", default="")
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@frozen_struct
class Assignment(Struct):
    active_tasks: tuple[TaskIds, ...] = kafka([TaskIds], default=())
    standby_tasks: tuple[TaskIds, ...] = kafka([TaskIds], default=())
    warmup_tasks: tuple[TaskIds, ...] = kafka([TaskIds], default=())


@struct
class Member(Struct):
    member_id: str = kafka("string", default="")
    member_epoch: int = kafka("int32", default=0)
    instance_id: str | None = kafka("string", default=None, nullable=True)
    rack_id: str | None = kafka("string", default=None, nullable=True)
    client_id: str = kafka("string", default="")
    client_host: str = kafka("string", default="")
    topology_epoch: int = kafka("int32", default=0)
    process_id: str = kafka("string", default="")
    user_endpoint: Endpoint | None = kafka(Endpoint, default=None, nullable=True)
    client_tags: tuple[KeyValue, ...] = kafka([KeyValue], default=())
    task_offsets: tuple[TaskOffset, ...] = kafka([TaskOffset], default=())
    task_end_offsets: tuple[TaskOffset, ...] = kafka([TaskOffset], default=())
    assignment: Assignment = kafka(Assignment, default=Assignment())
    target_assignment: Assignment = kafka(Assignment, default=Assignment())
    is_classic: bool = kafka("bool", default=False)


@struct
class DescribedGroup(Struct):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)
    group_id: str = kafka("string", default="")
    group_state: str = kafka("string", default="")
    group_epoch: int = kafka("int32", default=0)
    assignment_epoch: int = kafka("int32", default=0)
    topology: Topology | None = kafka(Topology, default=None, nullable=True)
    members: tuple[Member, ...] = kafka([Member], default=())
    authorized_operations: int = kafka("int32", default=-2147483648)


@message(versions=(0, 0), flexible_since=0, api_key=89)
class StreamsGroupDescribeResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    groups: tuple[DescribedGroup, ...] = kafka([DescribedGroup], default=())


@message(versions=(0, 0), flexible_since=0, api_key=89, response=StreamsGroupDescribeResponse)
class StreamsGroupDescribeRequest(Request[StreamsGroupDescribeResponse]):
    group_ids: tuple[str, ...] = kafka("[]string", default=())
    include_authorized_operations: bool = kafka("bool", default=False)
