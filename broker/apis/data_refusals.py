"""The answers to clients that want records or group coordination, which these brokers do not have.

Not to offer these APIs would be simpler, but clients in the field take that badly: librdkafka's consumer spins
or stays silent for ever, franz-go takes a broker without Produce for one whose versions it does not know, and
kafka-python for one of release 1.0. So they are offered in every version, and refused with an error that all
of these clients take as final. There is no code for "not here"; no client retries for want of authorization.
"""

from collections.abc import Mapping
from typing import Any

from kio.schema.errors import ErrorCode

from kquorum.broker.apis.group_refusals import NO_GROUPS
from kquorum.metadata.controller.requests import Values
from kquorum.wire.messages import fetch
from kquorum.wire.messages.fetch import FetchRequest, FetchResponse

NO_RECORDS = "this kquorum broker serves metadata only and stores no records"
NO_TRANSACTIONS = "this kquorum broker serves metadata only and coordinates no transactions"
_GROUP_KEY, _TRANSACTION_KEY = 0, 1
_COORDINATORS: Mapping[int, tuple[ErrorCode, str]] = {
    _GROUP_KEY: (ErrorCode.group_authorization_failed, NO_GROUPS),
    _TRANSACTION_KEY: (ErrorCode.transactional_id_authorization_failed, NO_TRANSACTIONS),
}
# Coordinators of share groups are asked for by brokers only; as Kafka's brokers without one.
_NO_SUCH_KIND = (ErrorCode.invalid_request, "there is no coordinator of this kind here")


def refuse_produce(request: Any, _version: int) -> Values | None:
    """None for acks=0: such a producer awaits no answer, so only its connection can tell it (as in Kafka)."""
    if request.acks == 0:
        return None
    return {
        "responses": [
            _topic(topic)
            | {"partition_responses": [_produced(partition) for partition in topic.partition_data]}
            for topic in request.topic_data
        ]
    }


def _produced(partition: Any) -> Values:
    return {
        "index": partition.index,
        "error_code": ErrorCode.topic_authorization_failed,
        "base_offset": -1,
        "log_append_time": None,
        "log_start_offset": -1,
        "record_errors": [],
        "error_message": NO_RECORDS,
    }


def refuse_fetch(request: FetchRequest, _version: int) -> FetchResponse:
    return FetchResponse(
        responses=tuple(
            [
                fetch.FetchableTopicResponse(
                    topic=topic.topic,
                    topic_id=topic.topic_id,
                    partitions=tuple([_fetched(partition.partition) for partition in topic.partitions]),
                )
                for topic in request.topics
            ]
        )
    )


def _fetched(index: int) -> fetch.PartitionData:
    """Records are empty, not null: librdkafka takes null for damage and asks again at once."""
    return fetch.PartitionData(
        partition_index=index,
        error_code=ErrorCode.topic_authorization_failed,
        high_watermark=-1,
        aborted_transactions=None,
    )


def refuse_find_coordinator(request: Any, version: int) -> Values:
    """Each kind of coordinator with its own code: producers ask for ever when they are told of a group."""
    error, message = _COORDINATORS.get(getattr(request, "key_type", _GROUP_KEY), _NO_SUCH_KIND)
    refusal: Values = {
        "error_code": error,
        "error_message": message,
        "node_id": -1,
        "host": "",
        "port": -1,
    }
    if version < 4:
        return refusal
    return {"coordinators": [refusal | {"key": key} for key in request.coordinator_keys]}


def refuse_init_producer_id(_request: Any, _version: int) -> Values:
    return {
        "error_code": ErrorCode.cluster_authorization_failed,
        "producer_id": -1,
        "producer_epoch": -1,
    }


def refuse_delete_records(request: Any, _version: int) -> Values:
    refused = {"low_watermark": -1, "error_code": ErrorCode.topic_authorization_failed}
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    {"partition_index": each.partition_index, **refused} for each in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    }


def refuse_offset_for_leader_epoch(request: Any, _version: int) -> Values:
    refused = {"error_code": ErrorCode.topic_authorization_failed, "leader_epoch": -1, "end_offset": -1}
    return {
        "topics": [
            {
                "topic": topic.topic,
                "partitions": [{"partition": each.partition, **refused} for each in topic.partitions],
            }
            for topic in request.topics
        ]
    }


def refuse_alter_replica_log_dirs(request: Any, _version: int) -> Values:
    """A response is by topic, a request by directory first."""
    partitions: dict[str, list[int]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            partitions.setdefault(topic.name, []).extend(topic.partitions)
    refused = {"error_code": ErrorCode.cluster_authorization_failed}
    return {
        "results": [
            {
                "topic_name": name,
                "partitions": [{"partition_index": index, **refused} for index in indexes],
            }
            for name, indexes in partitions.items()
        ]
    }


def refuse_describe_producers(request: Any, _version: int) -> Values:
    refused = {
        "error_code": ErrorCode.topic_authorization_failed,
        "error_message": NO_RECORDS,
        "active_producers": (),
    }
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [{"partition_index": index, **refused} for index in topic.partition_indexes],
            }
            for topic in request.topics
        ]
    }


def _topic(topic: Any) -> Values:
    return {"name": getattr(topic, "name", ""), "topic_id": getattr(topic, "topic_id", None)}
