"""DescribeCluster (60), versions 0 to 2. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class DescribeClusterBroker(Struct):
    broker_id: int = kafka("int32", default=0)
    host: str = kafka("string", default="")
    port: int = kafka("int32", default=0)
    rack: str | None = kafka("string", default=None, nullable=True)
    is_fenced: bool = kafka("bool", default=False, since=2)


@message(versions=(0, 2), flexible_since=0, api_key=60)
class DescribeClusterResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)
    endpoint_type: int = kafka("int8", default=1, since=1)
    cluster_id: str = kafka("string", default="")
    controller_id: int = kafka("int32", default=-1)
    brokers: tuple[DescribeClusterBroker, ...] = kafka([DescribeClusterBroker], default=())
    cluster_authorized_operations: int = kafka("int32", default=-2147483648)


@message(versions=(0, 2), flexible_since=0, api_key=60, response=DescribeClusterResponse)
class DescribeClusterRequest(Request[DescribeClusterResponse]):
    include_cluster_authorized_operations: bool = kafka("bool", default=False)
    endpoint_type: int = kafka("int8", default=1, since=1)
    include_fenced_brokers: bool = kafka("bool", default=False, since=2)
