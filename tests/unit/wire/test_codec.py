"""What the codec does beyond kio's: unknown tagged fields, unknown error codes, and errors that say what is wrong."""

import datetime as dt
from typing import Any
from uuid import UUID

import pytest
from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.fetch.v10.response import FetchResponse as OldFetchResponse
from kio.schema.fetch.v17.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse

from kquorum.wire.errors import BufferUnderflow, DecodeError
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.kio.codec import codec_of, decode, encode

UNKNOWN = bytes([1, 0xD8, 0x36, 3]) + b"abc"  # one tagged field, tag 7000, of 3 bytes


def fetch_request(**changes: Any) -> FetchRequest:
    partition = FetchPartition(
        partition=0, fetch_offset=7, partition_max_bytes=0, replica_directory_id=UUID(int=9)
    )
    values: dict[str, Any] = {
        "max_wait": dt.timedelta(milliseconds=500),
        "min_bytes": 0,
        "topics": (FetchTopic(topic_id=UUID(int=1), partitions=(partition,)),),
        "forgotten_topics_data": (),
    }
    return FetchRequest(**values | changes)  # type: ignore[arg-type]


def test_unknown_tagged_fields_are_skipped_at_the_top() -> None:
    request = UnregisterBrokerRequest(broker_id=5)
    encoded = encode(request)
    assert decode(UnregisterBrokerRequest, encoded[:-1] + UNKNOWN) == (
        request,
        len(encoded) - 1 + len(UNKNOWN),
    )


def test_unknown_tagged_fields_are_skipped_beside_known_ones_and_in_nested_structs() -> None:
    request = fetch_request(cluster_id="here")
    encoded = encode(request)
    known = b"\x01\x00\x10" + UUID(int=9).bytes  # the partition's only tagged field: tag 0, 16 bytes
    assert encoded.count(known) == 1
    nested = encoded.replace(known, b"\x02" + known[1:] + UNKNOWN[1:])
    assert decode(FetchRequest, nested) == (request, len(nested))


@pytest.mark.parametrize(
    ("tagged", "reason"),
    [
        ("0205000500", "tagged field 5 follows tagged field 5"),
        ("0205000400", "tagged field 4 follows tagged field 5"),
        ("01050a00", "10 bytes needed, 1 left"),
    ],
)
def test_bad_tagged_sections_are_refused(tagged: str, reason: str) -> None:
    encoded = encode(UnregisterBrokerRequest(broker_id=5))[:-1]
    with pytest.raises(DecodeError, match=reason):
        decode(UnregisterBrokerRequest, encoded + bytes.fromhex(tagged))


def test_a_known_tagged_field_must_have_the_size_that_is_announced() -> None:
    request = BrokerHeartbeatRequest(
        broker_id=1,
        current_metadata_offset=2,
        want_fence=False,
        want_shut_down=False,
        offline_log_dirs=(UUID(int=3),),
    )
    encoded = encode(request)
    at = encoded.index(b"\x01\x00\x11\x02")
    with pytest.raises(DecodeError, match="size that was announced"):
        decode(BrokerHeartbeatRequest, encoded[:at] + b"\x01\x00\x12\x02" + encoded[at + 4 :] + b"\x00")


def test_an_error_code_of_a_newer_kafka_reads_as_unknown_server_error() -> None:
    response = UnregisterBrokerResponse(
        throttle_time=dt.timedelta(0), error_code=ErrorCode.not_controller, error_message=None
    )
    encoded = bytearray(encode(response))
    encoded[4:6] = (30000).to_bytes(2, "big")
    decoded, _ = decode(UnregisterBrokerResponse, encoded)
    assert decoded.error_code is ErrorCode.unknown_server_error


def test_every_prefix_of_a_message_is_an_underflow() -> None:
    encoded = encode(fetch_request(cluster_id="here"))
    for length in range(len(encoded)):
        with pytest.raises(BufferUnderflow):
            decode(FetchRequest, encoded[:length])


def test_decoding_starts_anywhere_and_takes_any_buffer() -> None:
    request = fetch_request()
    padded = b"???" + encode(request) + b"!"
    for buffer in (padded, bytearray(padded), memoryview(padded)):
        assert decode(FetchRequest, buffer, 3) == (request, len(padded) - 1)


def test_decoded_entities_are_frozen_instances_of_kios_class() -> None:
    decoded, _ = decode(FetchRequest, encode(fetch_request()))
    assert type(decoded) is FetchRequest
    assert type(decoded.topics[0].partitions[0]) is FetchPartition
    with pytest.raises(AttributeError):
        decoded.min_bytes = 3  # type: ignore[misc]


def test_the_client_id_of_every_request_header_has_the_old_string_coding() -> None:
    header = RequestHeader(request_api_key=1, request_api_version=17, correlation_id=2, client_id="ab")  # type: ignore[arg-type]
    assert encode(header).hex() == "0001" + "0011" + "00000002" + "0002" + b"ab".hex() + "00"


@pytest.mark.parametrize(
    "entity",
    [
        UnregisterBrokerRequest(broker_id=2**31),  # type: ignore[arg-type]
        UnregisterBrokerRequest(broker_id=None),  # type: ignore[arg-type]
        fetch_request(rack_id=None),
        fetch_request(rack_id="x" * 40000),
        fetch_request(topics=None),
    ],
)
def test_values_that_do_not_fit_are_the_callers_mistake(entity: Any) -> None:
    with pytest.raises(ValueError, match=r"cannot be encoded|longer than"):
        encode(entity)


def test_lengths_below_minus_one_and_nulls_out_of_place_are_refused() -> None:
    with pytest.raises(DecodeError, match="length -2 is negative"):
        decode(OldFetchResponse, bytes(10) + b"\xff\xff\xff\xfe")
    with pytest.raises(DecodeError, match="responses is null"):
        decode(OldFetchResponse, bytes(10) + b"\xff\xff\xff\xff")


def test_an_array_longer_than_the_buffer_is_refused_before_it_is_made() -> None:
    with pytest.raises(BufferUnderflow):
        decode(OldFetchResponse, bytes(10) + b"\x7f\xff\xff\xff")


def test_generated_source_is_kept_for_the_eye() -> None:
    assert "def decode(buffer, position):" in codec_of(FetchPartition).source
