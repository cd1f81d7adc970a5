"""ElectLeaders (43), versions 0 to 2. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class PartitionResult(Struct):
    partition_id: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)


@struct
class ReplicaElectionResult(Struct):
    topic: str = kafka("string", default="")
    partition_result: tuple[PartitionResult, ...] = kafka([PartitionResult], default=())


@message(versions=(0, 2), flexible_since=2, api_key=43)
class ElectLeadersResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none, since=1)
    replica_election_results: tuple[ReplicaElectionResult, ...] = kafka([ReplicaElectionResult], default=())


@struct
class TopicPartitions(Struct):
    topic: str = kafka("string", default="")
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@message(versions=(0, 2), flexible_since=2, api_key=43, response=ElectLeadersResponse)
class ElectLeadersRequest(Request[ElectLeadersResponse]):
    election_type: int = kafka("int8", default=0, since=1)
    topic_partitions: tuple[TopicPartitions, ...] | None = kafka([TopicPartitions], default=(), nullable=True)
    timeout_ms: int = kafka("int32", default=60000)
