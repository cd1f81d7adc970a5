"""ListTransactions (66) and DescribeTransactions (65, KIP-664): the transactional ids that this broker coordinates.

A client asks every broker for the list, and the coordinator of an id for its description.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from kquorum.broker.apis.api import Advance, Authorized, Sliced
from kquorum.broker.apis.growing_body import GrowingBody
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.coordinators.loading import ShardState
from kquorum.broker.coordinators.regexes import InvalidRegex, compiled
from kquorum.broker.transactions.transaction import STATES_BY_TITLE, Transaction
from kquorum.metadata.authorizer.access import Access
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.wire.messages import describe_transactions, list_transactions
from kquorum.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import EncodedBody, encode_body

_IN_A_SLICE: Final = 1_000
# So many characters of an id take about as long as another id, or a partition.
_CHARACTERS_OF_ONE: Final = 200


def begin_list(
    context: RequestContext, request: ListTransactionsRequest, services: BrokerServices
) -> Advance:
    """Without the right to describe an id, it is not there. While a shard loads, the whole list would be wrong."""
    version = context.header.api_version
    if any(shard.state is ShardState.LOADING for shard in services.transactions.shards.values()):
        refused = ListTransactionsResponse(error_code=ErrorCode.coordinator_load_in_progress)
        return lambda: EncodedBody(encode_body(refused, version))
    try:
        pattern = compiled(request.transactional_id_pattern) if request.transactional_id_pattern else None
    except InvalidRegex:
        invalid = ListTransactionsResponse(error_code=ErrorCode.invalid_regular_expression)
        return lambda: EncodedBody(encode_body(invalid, version))
    access = services.access(context)
    states = {STATES_BY_TITLE[each] for each in request.state_filters if each in STATES_BY_TITLE}
    unknown = [each for each in request.state_filters if each not in STATES_BY_TITLE]
    producers = frozenset(request.producer_id_filters)
    now_ms = services.data.now_ms()

    def is_asked_for(transactional_id: str, found: Transaction) -> bool:
        if producers and found.producer_id not in producers:
            return False
        if request.state_filters and found.state not in states:
            return False
        # Without a transaction the start is -1, so it counts as long ago, as with Kafka.
        if request.duration_filter >= 0 and now_ms - found.start_ms <= request.duration_filter:
            return False
        if pattern is not None and pattern.fullmatch(transactional_id) is None:
            return False
        return access.allows(
            Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id, is_asked=False
        )

    left = (pair for shard in services.transactions.active() for pair in shard.transactions())
    body = GrowingBody(
        lambda entries: ListTransactionsResponse(
            unknown_state_filters=tuple(unknown), transaction_states=entries
        ),
        version,
        context.making.note_made,
    )

    def advance() -> EncodedBody | None:
        looked = tuple(islice(left, _IN_A_SLICE))
        body.add(
            [
                list_transactions.TransactionState(
                    transactional_id=transactional_id,
                    producer_id=found.producer_id,
                    transaction_state=found.state.title,
                )
                for transactional_id, found in looked
                if is_asked_for(transactional_id, found)
            ]
        )
        return None if len(looked) == _IN_A_SLICE else body.whole()

    return advance


# DESCRIBE on each transactional id that is listed.
LIST: Final = Sliced(ApiKey.LIST_TRANSACTIONS, Authorized.IN_HANDLER, begin=begin_list)


def begin_describe(
    context: RequestContext, request: DescribeTransactionsRequest, services: BrokerServices
) -> Advance:
    """An id that is named often is described once: a few bytes of a request ask for all partitions of its
    transaction."""
    access = services.access(context)
    version = context.header.api_version
    left = iter(dict.fromkeys(request.transactional_ids))
    described: list[describe_transactions.TransactionState] = []

    def advance() -> EncodedBody | None:
        size = 0
        for transactional_id in left:
            described.append(_described(access, services, transactional_id))
            size += 1 + len(transactional_id) // _CHARACTERS_OF_ONE
            size += sum(len(topic.partitions) for topic in described[-1].topics)
            if size >= _IN_A_SLICE:
                return None
        response = DescribeTransactionsResponse(transaction_states=tuple(described))
        return EncodedBody(encode_body(response, version))

    return advance


# DESCRIBE on each transactional id, and on each topic of the answer.
DESCRIBE: Final = Sliced(ApiKey.DESCRIBE_TRANSACTIONS, Authorized.IN_HANDLER, begin=begin_describe)


def _described(
    access: Access, services: BrokerServices, transactional_id: str
) -> describe_transactions.TransactionState:
    found = _found(access, services, transactional_id)
    if isinstance(found, ErrorCode):
        return describe_transactions.TransactionState(error_code=found, transactional_id=transactional_id)
    topics: dict[str, list[int]] = {}
    for each in sorted(found.partitions):
        topics.setdefault(each.topic, []).append(each.partition)
    return describe_transactions.TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.state.title,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.epoch,
        topics=tuple(
            [
                TopicData(topic=topic, partitions=tuple(indexes))
                for topic, indexes in topics.items()
                if access.allows_on_topic(Operation.DESCRIBE, topic, is_asked=False)
            ]
        ),
    )


def _found(access: Access, services: BrokerServices, transactional_id: str) -> Transaction | ErrorCode:
    if not access.allows(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return ErrorCode.transactional_id_authorization_failed
    if not transactional_id:
        return ErrorCode.invalid_request
    shard = services.transactions.shard_of(transactional_id)
    if isinstance(shard, ErrorCode):
        return shard
    return shard.find(transactional_id) or ErrorCode.transactional_id_not_found
