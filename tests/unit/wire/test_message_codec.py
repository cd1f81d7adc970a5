"""What the codec of messages does beside kio's: absent fields, unknown tags and codes, uncopied records, errors."""

from typing import Any
from uuid import UUID

import pytest

from kquorum.wire.codegen.runtime import LEAST_SPLICED, MOST_COPIED
from kquorum.wire.errors import BufferUnderflow, DecodeError, TooManyElements, UnsupportedVersion
from kquorum.wire.message_codec import decode, decode_bounded, elements_read, encode, encode_parts
from kquorum.wire.message_schema import plan_of
from kquorum.wire.messages.add_raft_voter import AddRaftVoterRequest
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    PartitionData,
)
from kquorum.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kquorum.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kquorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kquorum.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from kquorum.wire.messages.vote import VoteRequest
from tests.support.wire_values import fullest

UNKNOWN = bytes([1, 0xD8, 0x36, 3]) + b"abc"  # one tagged field, tag 7000, of 3 bytes
TOPIC_ID = UUID(int=9)


def fetch_request(**changes: Any) -> FetchRequest:
    partition = FetchPartition(fetch_offset=7, replica_directory_id=UUID(int=3))
    values: dict[str, Any] = {
        "max_wait_ms": 500,
        "topics": (FetchTopic(topic_id=TOPIC_ID, partitions=(partition,)),),
    }
    return FetchRequest(**values | changes)


def produce_request(*batches: bytes) -> ProduceRequest:
    partitions = tuple(
        PartitionProduceData(index=index, records=batch) for index, batch in enumerate(batches)
    )
    return ProduceRequest(acks=-1, topic_data=(TopicProduceData(name="t", partition_data=partitions),))


# Versions


def test_fields_that_a_version_lacks_read_as_their_defaults() -> None:
    request = fetch_request(topics=(FetchTopic(topic="t", partitions=(FetchPartition(fetch_offset=7),)),))
    read, _ = decode(FetchRequest, 4, encode(request, 4))
    assert read == request
    assert read.topics[0].topic_id == UUID(int=0)
    assert read.session_epoch == -1


def test_a_request_is_refused_if_the_version_lacks_a_field_that_is_set() -> None:
    request = AddRaftVoterRequest(ack_when_committed=False)
    assert decode(AddRaftVoterRequest, 1, encode(request, 1))[0] == request
    with pytest.raises(UnsupportedVersion, match="AddRaftVoterRequest version 0 has no field ack_when"):
        encode(request, 0)


def test_ignorable_fields_of_a_request_are_left_out() -> None:
    request = fetch_request(rack_id="r", cluster_id="c")
    assert decode(FetchRequest, 13, encode(request, 13))[0].rack_id == "r"
    old = FetchRequest(rack_id="r", cluster_id="c")
    assert decode(FetchRequest, 4, encode(old, 4))[0] == FetchRequest()


def test_a_nested_field_is_refused_too() -> None:
    topic = FetchTopic(topic="t", partitions=(FetchPartition(last_fetched_epoch=3),))
    with pytest.raises(UnsupportedVersion, match="FetchPartition version 11 has no field last_fetched_epoch"):
        encode(FetchRequest(topics=(topic,)), 11)


def test_a_response_leaves_out_what_the_version_lacks() -> None:
    response = MetadataResponse(cluster_id="here", error_code=ErrorCode.rebootstrap_required)
    assert decode(MetadataResponse, 13, encode(response, 13))[0] == response
    assert decode(MetadataResponse, 0, encode(response, 0))[0] == MetadataResponse(controller_id=-1)


@pytest.mark.parametrize("version", [-1, 3, 19, 32767])
def test_a_version_that_is_not_known_is_refused(version: int) -> None:
    with pytest.raises(UnsupportedVersion, match=f"version {version} of FetchRequest is not known"):
        encode(FetchRequest(), version)
    with pytest.raises(UnsupportedVersion, match="versions 4 to 18 are"):
        decode(FetchRequest, version, b"")


def test_null_is_written_only_where_the_version_has_it() -> None:
    request = MetadataRequest(topics=None)
    assert decode(MetadataRequest, 1, encode(request, 1))[0].topics is None
    with pytest.raises(ValueError, match="MetadataRequest version 0 cannot be encoded"):
        encode(request, 0)
    with pytest.raises(ValueError, match="cannot be encoded"):
        encode(MetadataRequest(topics=(MetadataRequestTopic(name=None, topic_id=TOPIC_ID),)), 8)


# Hostile and newer peers


def test_unknown_tagged_fields_are_skipped() -> None:
    request = UnregisterBrokerRequest(broker_id=5)
    encoded = encode(request, 0)
    assert decode(UnregisterBrokerRequest, 0, encoded[:-1] + UNKNOWN) == (
        request,
        len(encoded) - 1 + len(UNKNOWN),
    )


def test_unknown_tagged_fields_are_skipped_beside_known_ones_in_nested_structs() -> None:
    request = fetch_request(cluster_id="here")
    encoded = encode(request, 17)
    known = b"\x01\x00\x10" + UUID(int=3).bytes  # the partition's only tagged field: tag 0, 16 bytes
    assert encoded.count(known) == 1
    nested = encoded.replace(known, b"\x02" + known[1:] + UNKNOWN[1:])
    assert decode(FetchRequest, 17, nested) == (request, len(nested))


@pytest.mark.parametrize(
    ("tagged", "reason"),
    [
        ("0205000500", "tagged field 5 follows tagged field 5"),
        ("0205000400", "tagged field 4 follows tagged field 5"),
        ("01050a00", "10 bytes needed, 1 left"),
    ],
)
def test_bad_tagged_sections_are_refused(tagged: str, reason: str) -> None:
    encoded = encode(UnregisterBrokerRequest(broker_id=5), 0)[:-1]
    with pytest.raises(DecodeError, match=reason):
        decode(UnregisterBrokerRequest, 0, encoded + bytes.fromhex(tagged))


def test_an_error_code_of_a_newer_kafka_reads_as_unknown_server_error() -> None:
    encoded = bytearray(encode(UnregisterBrokerResponse(error_code=ErrorCode.not_controller), 0))
    encoded[4:6] = (30000).to_bytes(2, "big")
    decoded, _ = decode(UnregisterBrokerResponse, 0, encoded)
    assert decoded.error_code is ErrorCode.unknown_server_error


def test_every_prefix_of_a_message_is_an_underflow() -> None:
    for cls, version in ((FetchRequest, 18), (FetchRequest, 4), (FetchResponse, 17), (VoteRequest, 2)):
        encoded = encode(fullest(plan_of(cls, version)), version)
        for length in range(min(len(encoded), 400)):
            with pytest.raises(BufferUnderflow):
                decode(cls, version, encoded[:length])


def test_lengths_below_minus_one_nulls_and_long_arrays_are_refused() -> None:
    for length, reason in (("fffffffe", "length -2 is negative"), ("ffffffff", "responses is null")):
        with pytest.raises(DecodeError, match=reason):
            decode(FetchResponse, 10, bytes(10) + bytes.fromhex(length))
    with pytest.raises(BufferUnderflow):
        decode(FetchResponse, 10, bytes(10) + b"\x7f\xff\xff\xff")


def test_elements_are_bounded_and_counted() -> None:
    topics = tuple(FetchTopic(topic_id=TOPIC_ID, partitions=(FetchPartition(),) * 3) for _ in range(4))
    encoded = encode(FetchRequest(topics=topics), 17)
    assert decode_bounded(FetchRequest, 17, encoded, 0, 16)[0].topics == topics
    assert elements_read() == 16
    with pytest.raises(TooManyElements, match="more than 15 elements"):
        decode_bounded(FetchRequest, 17, encoded, 0, 15)


# Values


def test_decoding_starts_anywhere_and_takes_any_buffer() -> None:
    request = fetch_request()
    padded = b"???" + encode(request, 17) + b"!"
    for buffer in (padded, bytearray(padded), memoryview(padded)):
        assert decode(FetchRequest, 17, buffer, 3) == (request, len(padded) - 1)


def test_the_defaults_of_decoded_structs_cannot_be_changed() -> None:
    """All messages share them."""
    response = FetchResponse(responses=(FetchableTopicResponse(partitions=(PartitionData(),)),))
    decoded, _ = decode(FetchResponse, 17, encode(response, 17))
    leader = decoded.responses[0].partitions[0].current_leader
    assert leader == LeaderIdAndEpoch()
    with pytest.raises(AttributeError):
        leader.leader_id = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (UnregisterBrokerRequest(broker_id=2**31), 0),
        (UnregisterBrokerRequest(broker_id=None), 0),  # type: ignore[arg-type]
        (fetch_request(rack_id=None), 17),
        (fetch_request(rack_id="x" * 40000), 17),
        (fetch_request(topics=None), 17),
        (fetch_request(topics=(3,)), 17),
    ],
)
def test_values_that_do_not_fit_are_the_callers_mistake(message: Any, version: int) -> None:
    with pytest.raises(ValueError, match=r"cannot be encoded|longer than"):
        encode(message, version)


def test_secrets_are_not_shown() -> None:
    assert "pw" not in repr(SaslAuthenticateRequest(auth_bytes=b"pw"))


# Record batches


def test_records_are_a_view_of_the_buffer() -> None:
    encoded = encode(produce_request(b"a" * 100), 12)
    decoded, _ = decode(ProduceRequest, 12, encoded)
    records = decoded.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is encoded
    assert records == b"a" * 100


def test_long_records_go_out_uncopied() -> None:
    long, short = b"a" * MOST_COPIED, b"b" * (LEAST_SPLICED - 1)
    message = produce_request(long, short, long, memoryview(long))  # type: ignore[arg-type]
    parts = encode_parts(message, 12)
    assert [len(part) for part in parts if part is long] == [len(long)] * 2
    assert sum(isinstance(part, memoryview) for part in parts) == 1
    assert not any(part is short for part in parts)
    encoded = encode(message, 12)
    assert b"".join(parts) == encoded
    assert decode(ProduceRequest, 12, encoded) == (message, len(encoded))


def test_null_records_stay_null() -> None:
    message = ProduceRequest(
        topic_data=(TopicProduceData(name="t", partition_data=(PartitionProduceData(records=None),)),)
    )
    for version in (3, 12):
        assert decode(ProduceRequest, version, encode(message, version))[0] == message
