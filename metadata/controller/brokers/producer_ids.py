"""AllocateProducerIds: blocks of ids for idempotent producers (KIP-730)."""

from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.features import ProducerIdsRecord

BLOCK_SIZE = 1000
_MAX_PRODUCER_ID = 2**63 - 1


def allocate_producer_ids(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    body: AllocateProducerIdsRequest = request.body
    context.check_broker_epoch(body.broker_id, body.broker_epoch)
    first = max(0, context.image.producer_ids.next_producer_id)
    if first > _MAX_PRODUCER_ID - BLOCK_SIZE:
        raise ApiError(ErrorCode.unknown_server_error, "All producer ids are used up.")
    record = ProducerIdsRecord(
        broker_id=body.broker_id, broker_epoch=body.broker_epoch, next_producer_id=first + BLOCK_SIZE
    )
    return ControllerResult(
        records=(record,),
        response=AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE),
    )
