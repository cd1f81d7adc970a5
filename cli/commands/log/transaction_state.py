"""A record of `__transaction_state` as `log dump` shows it: what the coordinator wrote."""

from typing import Any

from kquorum.broker.transactions.transaction import TransactionState
from kquorum.wire.errors import DecodeError
from kquorum.wire.record_parsing import Record
from kquorum.wire.transaction_records import (
    NO_PRODUCER,
    decode_transaction_key,
    decode_transaction_value,
)


def transaction_fields(record: Record) -> dict[str, Any]:
    """Fields with their default are left out. Raises DecodeError for what no coordinator writes."""
    if record.key is None:
        raise DecodeError("a record of __transaction_state has no key")
    transactional_id = decode_transaction_key(record.key)
    if transactional_id is None:
        return {"record_type": int.from_bytes(record.key[:2], signed=True)}
    if record.value is None:
        return {"transactional_id": transactional_id, "state": None}
    value = decode_transaction_value(record.value)
    told: dict[str, Any] = {
        "transactional_id": transactional_id,
        "state": _state(value.status),
        "producer_id": value.producer_id,
        "producer_epoch": value.producer_epoch,
        "timeout_ms": value.timeout_ms,
        "start_timestamp_ms": value.start_timestamp_ms,
        "last_update_timestamp_ms": value.last_update_timestamp_ms,
    }
    if value.previous_producer_id != NO_PRODUCER:
        told["previous_producer_id"] = value.previous_producer_id
    if value.next_producer_id != NO_PRODUCER:
        told["next_producer_id"] = value.next_producer_id
    if value.client_transaction_version:
        told["client_transaction_version"] = value.client_transaction_version
    if value.partitions:
        told["partitions"] = [
            f"{topic.topic}-{partition}" for topic in value.partitions for partition in topic.partition_ids
        ]
    return told


def _state(status: int) -> str:
    try:
        return TransactionState(status).title
    except ValueError:
        return str(status)
