"""WriteTxnMarkers (27), versions 1 to 2. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)


@struct
class WritableTxnMarkerTopicResult(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[WritableTxnMarkerPartitionResult, ...] = kafka(
        [WritableTxnMarkerPartitionResult], default=()
    )


@struct
class WritableTxnMarkerResult(Struct):
    producer_id: int = kafka("int64", default=0)
    topics: tuple[WritableTxnMarkerTopicResult, ...] = kafka([WritableTxnMarkerTopicResult], default=())


@message(versions=(1, 2), flexible_since=1, api_key=27)
class WriteTxnMarkersResponse(Response):
    markers: tuple[WritableTxnMarkerResult, ...] = kafka([WritableTxnMarkerResult], default=())


@struct
class WritableTxnMarkerTopic(Struct):
    name: str = kafka("string", default="")
    partition_indexes: tuple[int, ...] = kafka("[]int32", default=())


@struct
class WritableTxnMarker(Struct):
    producer_id: int = kafka("int64", default=0)
    producer_epoch: int = kafka("int16", default=0)
    transaction_result: bool = kafka("bool", default=False)
    topics: tuple[WritableTxnMarkerTopic, ...] = kafka([WritableTxnMarkerTopic], default=())
    coordinator_epoch: int = kafka("int32", default=0)
    transaction_version: int = kafka("int8", default=0, since=2, is_ignorable=True)


@message(versions=(1, 2), flexible_since=1, api_key=27, response=WriteTxnMarkersResponse)
class WriteTxnMarkersRequest(Request[WriteTxnMarkersResponse]):
    markers: tuple[WritableTxnMarker, ...] = kafka([WritableTxnMarker], default=())
