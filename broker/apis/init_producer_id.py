"""InitProducerId (api key 22): an id for an idempotent producer, from this broker's block; or, with a transactional id,
the producer id and the epoch with which a producer takes over that id from the one before.
"""

from __future__ import annotations

from typing import Final

from kquorum.broker.apis.api import Authorized, LocalAsync
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.log.producer_state import ProducerEpoch
from kquorum.broker.transactions.shard import NO_PRODUCER_EPOCH
from kquorum.metadata.authorizer.access import Access
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kquorum.wire.protocol.api_keys import ApiKey

# Clients ask again after COORDINATOR_LOAD_IN_PROGRESS, so the controller's answer need not be waited for at length.
WAIT_FOR_BLOCK_MS: Final = 2_000
_UNKNOWN: Final = -1
_FIRST_WITH_PRODUCER_FENCED: Final = 4


async def handle_init_producer_id(
    context: RequestContext, request: InitProducerIdRequest, services: BrokerServices
) -> InitProducerIdResponse:
    access = services.access(context)
    transactional_id = request.transactional_id
    if transactional_id is not None:
        if not access.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
            return _refusal(ErrorCode.transactional_id_authorization_failed)
    elif not _may_write(access):
        return _refusal(ErrorCode.cluster_authorization_failed)
    if (request.producer_id == _UNKNOWN) != (request.producer_epoch == _UNKNOWN):
        return _refusal(ErrorCode.invalid_request)
    if transactional_id is not None:
        return await _init_transactional(context, transactional_id, request, services)
    await _wait_for_block(services)
    producer_id = services.data.producer_ids.take()
    if producer_id is None:
        return _refusal(ErrorCode.coordinator_load_in_progress)
    # A new id with epoch 0, whatever the producer had: it counts its epochs itself.
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


# WRITE on the transactional id; without one IDEMPOTENT_WRITE on the cluster, or WRITE on any topic. Version 6 is for
# transactions of two phases (KIP-939), which Kafka 4.3 does not offer as stable.
API: Final = LocalAsync(
    ApiKey.INIT_PRODUCER_ID, Authorized.IN_HANDLER, latest_version=5, handle=handle_init_producer_id
)


async def _init_transactional(
    context: RequestContext, transactional_id: str, request: InitProducerIdRequest, services: BrokerServices
) -> InitProducerIdResponse:
    transactions = services.transactions
    if not transactional_id:
        return _refusal(ErrorCode.invalid_request)
    if not 0 < request.transaction_timeout_ms <= transactions.settings.max_timeout_ms:
        return _refusal(ErrorCode.invalid_transaction_timeout)
    if isinstance(refusal := transactions.shard_of(transactional_id), ErrorCode):
        return _refusal(refusal)
    # Before the decision, which cannot wait.
    await _wait_for_block(services)
    shard = transactions.shard_of(transactional_id)
    if isinstance(shard, ErrorCode):
        return _refusal(shard)
    written = services.new_delayed_operation()
    outcome = (ErrorCode.coordinator_not_available, NO_PRODUCER_EPOCH)

    def done(error: ErrorCode, given: ProducerEpoch) -> None:
        nonlocal outcome
        outcome = (error, given)
        written.complete()

    expected = None
    if request.producer_id != _UNKNOWN:
        expected = ProducerEpoch(request.producer_id, request.producer_epoch)
    shard.init_producer_id(
        services.data.now_ms(),
        transactional_id,
        timeout_ms=request.transaction_timeout_ms,
        expected=expected,
        done=done,
    )
    services.data.settle_soon()
    # The shard ends the wait: after the transaction's time at the latest.
    await written.wait(request.transaction_timeout_ms)
    error, given = outcome
    if error is ErrorCode.producer_fenced and context.header.api_version < _FIRST_WITH_PRODUCER_FENCED:
        error = ErrorCode.invalid_producer_epoch
    return InitProducerIdResponse(error_code=error, producer_id=given.producer_id, producer_epoch=given.epoch)


async def _wait_for_block(services: BrokerServices) -> None:
    """Until there is an id to be had, or for a while."""
    ids = services.data.producer_ids
    if ids.has_one():
        return
    allotted = services.new_delayed_operation()
    withdraw = ids.when_there(allotted.complete)
    try:
        await allotted.wait(WAIT_FOR_BLOCK_MS)
    finally:
        withdraw()


def _may_write(access: Access) -> bool:
    if access.allows_on_cluster(Operation.IDEMPOTENT_WRITE, is_asked=False):
        return True
    if access.allows_on_any(Operation.WRITE, ResourceType.TOPIC):
        return True
    return access.allows_on_cluster(Operation.IDEMPOTENT_WRITE)


def _refusal(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
