"""ListTransactions (66), versions 0 to 2. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class TransactionState(Struct):
    transactional_id: str = kafka("string", default="")
    producer_id: int = kafka("int64", default=0)
    transaction_state: str = kafka("string", default="")


@message(versions=(0, 2), flexible_since=0, api_key=66)
class ListTransactionsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    unknown_state_filters: tuple[str, ...] = kafka("[]string", default=())
    transaction_states: tuple[TransactionState, ...] = kafka([TransactionState], default=())


@message(versions=(0, 2), flexible_since=0, api_key=66, response=ListTransactionsResponse)
class ListTransactionsRequest(Request[ListTransactionsResponse]):
    state_filters: tuple[str, ...] = kafka("[]string", default=())
    producer_id_filters: tuple[int, ...] = kafka("[]int64", default=())
    duration_filter: int = kafka("int64", default=-1, since=1)
    transactional_id_pattern: str | None = kafka("string", default=None, since=2, nullable=True)
