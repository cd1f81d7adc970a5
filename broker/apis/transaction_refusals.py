"""The answers to transactional producers and to questions about transactions: this broker has none.

To list or describe them is answered truly; to take part in one is refused with an error that no client retries
(`broker.apis.data_refusals` says why).
"""

from collections.abc import Iterable
from typing import Final

from kquorum.wire.messages import (
    add_partitions_to_txn,
    describe_transactions,
    txn_offset_commit,
)
from kquorum.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kquorum.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

_REFUSED = ErrorCode.transactional_id_authorization_failed
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


def refuse_add_partitions(
    request: add_partitions_to_txn.AddPartitionsToTxnRequest, _version: int
) -> add_partitions_to_txn.AddPartitionsToTxnResponse:
    """From version 4 on in batches of transactions, which only brokers send (KIP-890). The fields of the other
    versions are empty."""
    return add_partitions_to_txn.AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=_added(request.v3_and_below_topics),
        results_by_transaction=tuple(
            [
                add_partitions_to_txn.AddPartitionsToTxnResult(
                    transactional_id=each.transactional_id, topic_results=_added(each.topics)
                )
                for each in request.transactions
            ]
        ),
    )


def _added(
    topics: Iterable[add_partitions_to_txn.AddPartitionsToTxnTopic],
) -> tuple[add_partitions_to_txn.AddPartitionsToTxnTopicResult, ...]:
    return tuple(
        [
            add_partitions_to_txn.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    [
                        add_partitions_to_txn.AddPartitionsToTxnPartitionResult(
                            partition_index=index, partition_error_code=_REFUSED
                        )
                        for index in topic.partitions
                    ]
                ),
            )
            for topic in topics
        ]
    )


def refuse_add_offsets(_request: AddOffsetsToTxnRequest, _version: int) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=_REFUSED)


def refuse_end(_request: EndTxnRequest, _version: int) -> EndTxnResponse:
    return EndTxnResponse(error_code=_REFUSED)


def refuse_offset_commit(
    request: txn_offset_commit.TxnOffsetCommitRequest, _version: int
) -> txn_offset_commit.TxnOffsetCommitResponse:
    return txn_offset_commit.TxnOffsetCommitResponse(
        topics=tuple(
            [
                txn_offset_commit.TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        [
                            txn_offset_commit.TxnOffsetCommitResponsePartition(
                                partition_index=partition.partition_index, error_code=_REFUSED
                            )
                            for partition in topic.partitions
                        ]
                    ),
                )
                for topic in request.topics
            ]
        )
    )


def list_no_transactions(request: ListTransactionsRequest, _version: int) -> ListTransactionsResponse:
    return ListTransactionsResponse(
        unknown_state_filters=tuple(
            [each for each in request.state_filters if each not in TRANSACTION_STATES]
        )
    )


def describe_absent_transactions(
    request: describe_transactions.DescribeTransactionsRequest, _version: int
) -> describe_transactions.DescribeTransactionsResponse:
    return describe_transactions.DescribeTransactionsResponse(
        transaction_states=tuple(
            [
                describe_transactions.TransactionState(
                    error_code=ErrorCode.transactional_id_not_found, transactional_id=transactional_id
                )
                for transactional_id in request.transactional_ids
            ]
        )
    )
