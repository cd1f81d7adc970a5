"""The checkpoint 0-0 of a dynamic quorum, in Kafka's layout, and every way in which it may be damaged."""

import logging
from pathlib import Path
from uuid import UUID

import pytest

from kquorum.raft.adapters.errors import QuorumCheckpointDamaged
from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.adapters.quorum_checkpoint import (
    FILE_NAME,
    encode_quorum_checkpoint,
    read_quorum_checkpoint,
    write_quorum_checkpoint,
)
from kquorum.raft.voters import (
    Endpoint,
    KRaftVersionAt,
    ReplicaKey,
    VersionRange,
    Voter,
    VoterHistory,
    VotersAt,
    VoterSet,
    voters_record,
)
from kquorum.storage.errors import DamagedInput, StorageFailed
from kquorum.wire.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    decode_control_record,
    encode_control_record,
)
from kquorum.wire.record_batch import check_batch, read_records, write_batch

NOW_MS = 1_700_000_000_000
DIRECTORY = UUID("00112233-4455-6677-8899-aabbccddeeff")
SOLE = VoterSet.of(Voter(ReplicaKey(1, DIRECTORY), (Endpoint("CONTROLLER", "c1", 9093),), VersionRange(0, 1)))
THREE = VoterSet.of(
    *SOLE,
    Voter(ReplicaKey(2, UUID(int=2)), (Endpoint("CONTROLLER", "c2", 9093),), VersionRange(0, 1)),
    Voter(ReplicaKey(3, UUID(int=3)), (Endpoint("CONTROLLER", "c3", 9093),), VersionRange(0, 1)),
)
HEADER = SnapshotHeaderRecord(last_contained_log_timestamp=NOW_MS)
VERSION = KRaftVersionRecord(k_raft_version=1)
FOOTER = SnapshotFooterRecord()


def control(offset: int, *records: ControlRecord) -> bytes:
    return write_batch(
        base_offset=offset,
        leader_epoch=0,
        timestamp_ms=NOW_MS,
        records=[encode_control_record(record) for record in records],
        control=True,
    )


def data(offset: int) -> bytes:
    return write_batch(
        base_offset=offset, leader_epoch=0, timestamp_ms=NOW_MS, records=[(None, b"\x01\x14\x00\x00")]
    )


def written(tmp_path: Path, content: bytes) -> Path:
    (tmp_path / FILE_NAME).write_bytes(content)
    return tmp_path


def test_what_was_written_stands_at_offset_minus_one(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "__cluster_metadata-0"
    write_quorum_checkpoint(folder, THREE, NOW_MS)
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]
    records = read_quorum_checkpoint(folder)
    assert records == (KRaftVersionAt(-1, 1), VotersAt(-1, THREE))
    history = VoterHistory.of(VoterSet.of(Voter(ReplicaKey(9))), records)
    assert (history.voters, history.voters_offset, history.kraft_version) == (THREE, -1, 1)


def test_the_bytes_are_those_of_the_reference() -> None:
    """One control batch with header, version and voters, one with the footer (rules F4.9, F4.11)."""
    content = encode_quorum_checkpoint(SOLE, NOW_MS)
    first = check_batch(content)
    assert (first.base_offset, first.record_count, first.partition_leader_epoch, first.is_control) == (
        0,
        3,
        0,
        True,
    )
    assert (first.base_timestamp_ms, first.max_timestamp_ms, first.producer_id) == (NOW_MS, NOW_MS, -1)
    records = read_records(content, 0, first)
    assert [record.key for record in records] == [b"\0\0\0\3", b"\0\0\0\5", b"\0\0\0\6"]
    assert [record.value for record in records] == [
        bytes.fromhex("00 00 00 00 01 8b cf e5 68 00 00"),
        bytes.fromhex("00 00 00 01 00"),
        bytes.fromhex(
            "00 00 02 00 00 00 01 00 11 22 33 44 55 66 77 88 99 aa bb cc dd ee ff 02 0b 43 4f 4e 54 52 4f 4c 4c"
            "45 52 03 63 31 23 85 00 00 00 00 01 00 00 00"
        ),
    ]
    last = check_batch(content, first.size_in_bytes)
    assert (last.base_offset, last.record_count, last.is_control) == (3, 1, True)
    (footer,) = read_records(content, first.size_in_bytes, last)
    assert decode_control_record(footer.key, footer.value) == FOOTER
    assert first.size_in_bytes + last.size_in_bytes == len(content)
    assert last.size_in_bytes == 75


def test_a_folder_without_one_says_nothing(tmp_path: Path) -> None:
    assert read_quorum_checkpoint(tmp_path) == ()
    assert read_quorum_checkpoint(tmp_path / "absent") == ()


def test_the_first_metadata_records_may_stand_in_the_same_file(tmp_path: Path) -> None:
    content = control(0, HEADER, VERSION, voters_record(SOLE)) + data(3) + data(4) + control(5, FOOTER)
    assert read_quorum_checkpoint(written(tmp_path, content)) == (KRaftVersionAt(-1, 1), VotersAt(-1, SOLE))


def test_a_static_quorum_may_have_one_without_voters(tmp_path: Path) -> None:
    content = control(0, HEADER) + data(1) + control(2, FOOTER)
    assert read_quorum_checkpoint(written(tmp_path, content)) == ()


def test_every_flipped_byte_is_noticed_unless_it_is_outside_the_checksum(tmp_path: Path) -> None:
    """Base offset and leader epoch (bytes 0-7 and 12-15 of a batch) are not covered, and not used here either."""
    content = encode_quorum_checkpoint(THREE, NOW_MS)
    starts = (0, check_batch(content).size_in_bytes)
    free = {start + index for start in starts for index in (*range(8), *range(12, 16))}
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x41
        folder = written(tmp_path, bytes(damaged))
        if position in free:
            assert read_quorum_checkpoint(folder)[1] == VotersAt(-1, THREE)
        else:
            with pytest.raises(QuorumCheckpointDamaged):
                read_quorum_checkpoint(folder)


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    content = encode_quorum_checkpoint(SOLE, NOW_MS)
    for size in range(len(content)):
        with pytest.raises(QuorumCheckpointDamaged):
            read_quorum_checkpoint(written(tmp_path, content[:size]))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "does not begin with a snapshot header"),
        (
            control(0, VERSION, voters_record(SOLE)) + control(2, FOOTER),
            "does not begin with a snapshot header",
        ),
        (control(0, HEADER, VERSION), "footer is missing"),
        (control(0, HEADER, VERSION, VERSION) + control(3, FOOTER), "more than one KRaftVersionRecord"),
        (
            control(0, HEADER, voters_record(SOLE), voters_record(THREE)) + control(3, FOOTER),
            "more than one VotersRecord",
        ),
        (control(0, HEADER, VERSION, VotersRecord(voters=())) + control(3, FOOTER), "voter set is empty"),
        (
            control(0, HEADER, VotersRecord(voters=voters_record(SOLE).voters * 2)) + control(2, FOOTER),
            "names a node twice",
        ),
        (control(0, HEADER) + control(1, FOOTER) + b"x", "batch header"),
    ],
)
def test_damage_names_the_file_the_reason_and_the_remedy(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(QuorumCheckpointDamaged, match=reason) as caught:
        read_quorum_checkpoint(written(tmp_path, content))
    assert isinstance(caught.value, DamagedInput)
    message = str(caught.value)
    assert str(tmp_path / FILE_NAME) in message
    assert "--no-initial-controllers" in message


def test_what_cannot_be_read_is_said_so(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(QuorumCheckpointDamaged, match="cannot be read"):
        read_quorum_checkpoint(tmp_path)


def test_a_folder_that_cannot_be_made_is_the_environments_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageFailed):
        write_quorum_checkpoint(tmp_path / "file" / "__cluster_metadata-0", SOLE, NOW_MS)


def test_a_log_opens_with_the_first_voters_and_refuses_damaged_ones(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_quorum_checkpoint(tmp_path, THREE, NOW_MS)
    with caplog.at_level(logging.WARNING):
        log = FileLog(tmp_path)
    assert log.summary().quorum_records == (KRaftVersionAt(-1, 1), VotersAt(-1, THREE))
    log.close()
    assert caplog.text == ""
    path = tmp_path / FILE_NAME
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(QuorumCheckpointDamaged):
        FileLog(tmp_path)
