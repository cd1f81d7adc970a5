"""InitProducerId (api key 22) without a transactional id: an id for an idempotent producer, from this broker's block.

With a transactional id it is the transaction coordinator's business, which does not exist yet.
"""

from __future__ import annotations

from typing import Final

from kquorum.broker.apis.api import Authorized, LocalAsync
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.metadata.authorizer.access import Access
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kquorum.wire.protocol.api_keys import ApiKey

# Clients ask again after COORDINATOR_LOAD_IN_PROGRESS, so the controller's answer need not be waited for at length.
WAIT_FOR_BLOCK_MS: Final = 2_000
_UNKNOWN: Final = -1


async def handle_init_producer_id(
    context: RequestContext, request: InitProducerIdRequest, services: BrokerServices
) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        is_named = bool(request.transactional_id)
        return _refusal(
            ErrorCode.transactional_id_authorization_failed if is_named else ErrorCode.invalid_request
        )
    if not _may_write(services.access(context)):
        return _refusal(ErrorCode.cluster_authorization_failed)
    if (request.producer_id == _UNKNOWN) != (request.producer_epoch == _UNKNOWN):
        return _refusal(ErrorCode.invalid_request)
    ids = services.data.producer_ids
    producer_id = ids.take()
    if producer_id is None:
        allotted = services.new_delayed_operation()
        withdraw = ids.when_there(allotted.complete)
        try:
            await allotted.wait(WAIT_FOR_BLOCK_MS)
        finally:
            withdraw()
        producer_id = ids.take()
    if producer_id is None:
        return _refusal(ErrorCode.coordinator_load_in_progress)
    # A new id with epoch 0, whatever the producer had: it counts its epochs itself.
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


# IDEMPOTENT_WRITE on the cluster, or WRITE on any topic. Version 6 is for transactions of two phases (KIP-939), which
# Kafka 4.3 does not offer as stable.
API: Final = LocalAsync(
    ApiKey.INIT_PRODUCER_ID, Authorized.IN_HANDLER, latest_version=5, handle=handle_init_producer_id
)


def _may_write(access: Access) -> bool:
    if access.allows_on_cluster(Operation.IDEMPOTENT_WRITE, is_asked=False):
        return True
    if access.allows_on_any(Operation.WRITE, ResourceType.TOPIC):
        return True
    return access.allows_on_cluster(Operation.IDEMPOTENT_WRITE)


def _refusal(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
