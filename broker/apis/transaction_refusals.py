"""The answers to transactional producers and to questions about transactions: this broker has none.

To list or describe them is answered truly; to take part in one is refused with an error that no client retries
(`broker.apis.data_refusals` says why).
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from kquorum.broker.apis.group_refusals import topics_refused
from kquorum.metadata.controller.requests import Values

_REFUSED = ErrorCode.transactional_id_authorization_failed
_FIRST_IN_BATCHES = 4
# As Kafka's TransactionState names them.
TRANSACTION_STATES: Final = frozenset(
    {
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    }
)


def refuse_add_partitions(request: Any, version: int) -> Values:
    """From version 4 on in batches of transactions, which only brokers send (KIP-890)."""
    if version < _FIRST_IN_BATCHES:
        return {"results_by_topic_v3_and_below": _added(request.v3_and_below_topics)}
    return {
        "error_code": ErrorCode.none,
        "results_by_transaction": [
            {"transactional_id": each.transactional_id, "topic_results": _added(each.topics)}
            for each in request.transactions
        ],
    }


def _added(topics: Any) -> list[Values]:
    return [
        {
            "name": topic.name,
            "results_by_partition": [
                {"partition_index": index, "partition_error_code": _REFUSED} for index in topic.partitions
            ],
        }
        for topic in topics
    ]


def refuse_add_offsets(_request: Any, _version: int) -> Values:
    return {"error_code": _REFUSED}


def refuse_end(_request: Any, _version: int) -> Values:
    return {"error_code": _REFUSED, "producer_id": -1, "producer_epoch": -1}


def refuse_offset_commit(request: Any, _version: int) -> Values:
    return {"topics": topics_refused(request.topics, _REFUSED)}


def refuse_markers(request: Any, _version: int) -> Values:
    """An administrator sends them, to end a transaction that hangs."""
    return {
        "markers": [
            {
                "producer_id": marker.producer_id,
                "topics": [
                    {
                        "name": topic.name,
                        "partitions": [
                            {"partition_index": index, "error_code": ErrorCode.cluster_authorization_failed}
                            for index in topic.partition_indexes
                        ],
                    }
                    for topic in marker.topics
                ],
            }
            for marker in request.markers
        ]
    }


def list_no_transactions(request: Any, _version: int) -> Values:
    return {
        "error_code": ErrorCode.none,
        "unknown_state_filters": [each for each in request.state_filters if each not in TRANSACTION_STATES],
        "transaction_states": (),
    }


def describe_absent_transactions(request: Any, _version: int) -> Values:
    return {
        "transaction_states": [
            {
                "error_code": ErrorCode.transactional_id_not_found,
                "transactional_id": transactional_id,
                "transaction_state": "",
                "transaction_timeout": 0,
                "transaction_start_time": 0,
                "producer_id": 0,
                "producer_epoch": 0,
                "topics": (),
            }
            for transactional_id in request.transactional_ids
        ]
    }
