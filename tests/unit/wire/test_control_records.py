"""Control records: what is refused, and what Kafka's reader tolerates."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquorum.wire.control_records import (
    ControlRecordType,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    SnapshotFooterRecord,
    decode_control_record,
    decode_control_record_lenient,
    encode_control_record,
)
from kquorum.wire.errors import DecodeError, UnsupportedVersion

FOOTER_KEY, FOOTER_VALUE = encode_control_record(SnapshotFooterRecord())


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, FOOTER_VALUE, "key has 4 bytes, this one 0"),
        (b"\x00\x00\x00", FOOTER_VALUE, "key has 4 bytes, this one 3"),
        (b"\xff\xff\x00\x04", FOOTER_VALUE, "negative"),
        (b"\x00\x00\x00\x00", FOOTER_VALUE, "type 0 does not belong"),
        (b"\x00\x00\x00\x01", FOOTER_VALUE, "type 1 does not belong"),
        (b"\x00\x00\x00\x07", FOOTER_VALUE, "type 7 does not belong"),
        (FOOTER_KEY, None, "has no value"),
        (FOOTER_KEY, b"", "has no value"),
        (FOOTER_KEY, b"\x00", "needed"),
        (FOOTER_KEY, b"\x00\x00", "cut short"),
        (FOOTER_KEY, FOOTER_VALUE + b"\x00", "1 bytes are left"),
    ],
)
def test_what_is_refused(key: bytes | None, value: bytes | None, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        decode_control_record(key, value)
    lenient = decode_control_record_lenient(key, value)
    assert (lenient.record, lenient.key, lenient.value) == (None, key, value)
    assert reason in (lenient.problem or "")


def test_a_newer_key_version_and_more_key_bytes_are_tolerated() -> None:
    assert decode_control_record(b"\x00\x05\x00\x04 and more", FOOTER_VALUE) == SnapshotFooterRecord()


def test_a_newer_version_inside_is_read_in_the_layout_that_is_known() -> None:
    newer = KRaftVersionRecord(version=3, k_raft_version=1)
    assert decode_control_record(*encode_control_record(newer)) == newer


def test_directory_ids_of_voters_need_version_1_of_the_leader_change() -> None:
    voter = LeaderChangeVoter(voter_id=1, voter_directory_id=UUID(int=5))
    with pytest.raises(UnsupportedVersion, match="no field voter_directory_id"):
        encode_control_record(LeaderChangeMessage(leader_id=1, voters=(voter,)))
    newer = LeaderChangeMessage(version=1, leader_id=1, voters=(voter,))
    assert decode_control_record(*encode_control_record(newer)) == newer


def test_the_lenient_reader_names_the_type() -> None:
    found = decode_control_record_lenient(FOOTER_KEY, FOOTER_VALUE)
    assert (found.control_type, found.problem) == (ControlRecordType.SNAPSHOT_FOOTER, None)
    assert found.record == SnapshotFooterRecord()


def test_values_that_do_not_fit_are_our_mistake() -> None:
    with pytest.raises(ValueError, match="cannot be encoded"):
        encode_control_record(KRaftVersionRecord(k_raft_version=1 << 20))


@given(
    key=st.none()
    | st.binary(max_size=6)
    | st.sampled_from(list(ControlRecordType)).map(lambda t: bytes((0, 0, 0, t))),
    value=st.none() | st.binary(max_size=80),
)
def test_the_lenient_reader_never_raises(key: bytes | None, value: bytes | None) -> None:
    found = decode_control_record_lenient(key, value)
    assert (found.record is None) == (found.problem is not None)
