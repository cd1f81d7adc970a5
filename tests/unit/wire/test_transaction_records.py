"""The records of `__transaction_state`, as bytes that Kafka 4.3 wrote or reads."""

import pytest

from kquorum.wire.errors import DecodeError
from kquorum.wire.transaction_records import (
    PartitionsOfTopic,
    TransactionValue,
    decode_transaction_key,
    decode_transaction_value,
    encode_transaction_key,
    encode_transaction_value,
)

VALUE = TransactionValue(
    producer_id=5,
    producer_epoch=1,
    timeout_ms=1_000,
    status=1,
    partitions=(PartitionsOfTopic(topic="a", partition_ids=(1, 2)),),
    last_update_timestamp_ms=7,
    start_timestamp_ms=6,
)
WITH_TAGS = TransactionValue(
    producer_id=5,
    producer_epoch=1,
    timeout_ms=1_000,
    status=1,
    partitions=(PartitionsOfTopic(topic="a", partition_ids=(1, 2)),),
    last_update_timestamp_ms=7,
    start_timestamp_ms=6,
    previous_producer_id=4,
    client_transaction_version=2,
)


def test_a_key() -> None:
    assert encode_transaction_key("mine").hex() == "000000046d696e65"
    assert decode_transaction_key(bytes.fromhex("000000046d696e65")) == "mine"


@pytest.mark.parametrize(
    ("value", "version", "data"),
    [
        (
            VALUE,
            0,
            "0000 0000000000000005 0001 000003e8 01 00000001 000161 00000002 00000001 00000002"
            "0000000000000007 0000000000000006",
        ),
        (
            VALUE,
            1,
            "0001 0000000000000005 0001 000003e8 01 02 0261 03 00000001 00000002 00"
            "0000000000000007 0000000000000006 00",
        ),
        (
            WITH_TAGS,
            1,
            "0001 0000000000000005 0001 000003e8 01 02 0261 03 00000001 00000002 00"
            "0000000000000007 0000000000000006 02 00 08 0000000000000004 02 02 0002",
        ),
    ],
)
def test_a_value(value: TransactionValue, version: int, data: str) -> None:
    assert encode_transaction_value(value, version) == bytes.fromhex(data)
    assert decode_transaction_value(bytes.fromhex(data)) == value


@pytest.mark.parametrize(("version", "null"), [(0, "ffffffff"), (1, "00")])
def test_an_empty_transaction_has_no_partitions_at_all(version: int, null: str) -> None:
    encoded = encode_transaction_value(TransactionValue(partitions=None), version)
    assert encoded[17 : 17 + len(null) // 2].hex() == null


def test_version_0_has_no_room_for_tags() -> None:
    assert decode_transaction_value(encode_transaction_value(WITH_TAGS, 0)) == VALUE


def test_a_tag_of_a_later_release_is_skipped() -> None:
    data = encode_transaction_value(VALUE, 1)[:-1] + bytes.fromhex("01 63 02 abcd")
    assert decode_transaction_value(data) == VALUE


def test_a_type_of_a_later_release_is_none() -> None:
    assert decode_transaction_key(b"\x00\x07whatever") is None


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x02" + bytes(60), b"\x00\x00" + bytes(10)])
def test_what_is_no_value(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_transaction_value(data)


@pytest.mark.parametrize("data", [b"", b"\x00\x00\x00", b"\x00\x00\x00\x01ab"])
def test_what_is_no_key(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_transaction_key(data)
