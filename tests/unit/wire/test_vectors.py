"""Golden bytes of records, control records and batches, both ways.

The values are this project's own constructions; their bytes were checked against independent decoders.
"""

from typing import Any
from uuid import UUID

import pytest

from kquorum.wire.control_records import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    Voter,
    VoterEndpoint,
    VotersRecord,
    decode_control_record,
    encode_control_record,
)
from kquorum.wire.metadata_records.cluster import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
)
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.features import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    ZkMigrationStateRecord,
)
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from kquorum.wire.record_batch import check_batch, read_records, write_batch
from kquorum.wire.record_frame import decode_record, encode_record

U = UUID("00112233-4455-6677-8899-aabbccddeeff")
UNASSIGNED = UUID(int=1)
TIMESTAMP_MS = 1700000000000
U_HEX = "00112233445566778899aabbccddeeff"


def _voters(*ids: int) -> tuple[LeaderChangeVoter, ...]:
    return tuple(LeaderChangeVoter(voter_id=number) for number in ids)


CONTROL_RECORDS = [
    (
        LeaderChangeMessage(leader_id=1, voters=_voters(1, 2, 3), granting_voters=_voters(1, 3)),
        "00000002",
        "0000 00000001 04 00000001 00 00000002 00 00000003 00 03 00000001 00 00000003 00 00",
    ),
    (SnapshotHeaderRecord(last_contained_log_timestamp=TIMESTAMP_MS), "00000003", "0000 0000018bcfe56800 00"),
    (SnapshotFooterRecord(), "00000004", "0000 00"),
    (KRaftVersionRecord(k_raft_version=1), "00000005", "0000 0001 00"),
    (
        VotersRecord(
            voters=(
                Voter(
                    voter_id=1,
                    voter_directory_id=U,
                    endpoints=(VoterEndpoint(name="CONTROLLER", host="c1", port=9093),),
                    k_raft_version_feature=KRaftVersionFeature(
                        min_supported_version=0, max_supported_version=1
                    ),
                ),
            )
        ),
        "00000006",
        f"0000 02 00000001 {U_HEX} 02 0b 434f4e54524f4c4c4552 03 6331 2385 00 0000 0001 00 00 00",
    ),
]

RECORDS = [
    (NoOpRecord(), 0, "01 14 00 00"),
    (
        FeatureLevelRecord(name="metadata.version", feature_level=21),
        0,
        "01 0c 00 11 6d657461646174612e76657273696f6e 0015 00",
    ),
    (ZkMigrationStateRecord(zk_migration_state=0), 0, "01 15 00 00 00"),
    (
        BeginTransactionRecord(name="Bootstrap records"),
        0,
        "01 17 00 01 00 12 12 426f6f747374726170207265636f726473",
    ),
    (EndTransactionRecord(), 0, "01 18 00 00"),
    (TopicRecord(name="foo", topic_id=U), 0, f"01 02 00 04 666f6f {U_HEX} 00"),
    (
        ConfigRecord(resource_type=2, resource_name="foo", name="retention.ms", value=None),
        0,
        "01 04 00 02 04 666f6f 0d 726574656e74696f6e2e6d73 00 00",
    ),
    (
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=-1),
        0,
        "01 11 00 00000001 0000000000000007 01 00 01 ff",
    ),
    (
        PartitionRecord(
            partition_id=0,
            topic_id=U,
            replicas=(1, 2),
            isr=(1,),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=(U, UNASSIGNED),
        ),
        1,
        (
            f"01 03 01 00000000 {U_HEX} 03 00000001 00000002 02 00000001 01 01 00000001 00000000 00000000 03 {U_HEX}"
            "00000000000000000000000000000001 00"
        ),
    ),
    (
        PartitionChangeRecord(
            partition_id=0, topic_id=U, isr=(), leader=-1, eligible_leader_replicas=(1,), last_known_elr=(1,)
        ),
        2,
        f"01 05 02 00000000 {U_HEX} 04 00 01 01 01 04 ffffffff 06 05 02 00000001 07 05 02 00000001",
    ),
    (
        RegisterBrokerRecord(
            broker_id=1,
            incarnation_id=U,
            broker_epoch=7,
            end_points=(BrokerEndpoint(name="PLAINTEXT", host="b1", port=9092, security_protocol=0),),
            rack=None,
            fenced=True,
            log_dirs=(U,),
        ),
        3,
        (
            f"01 00 03 00000001 00 {U_HEX} 0000000000000007 02 0a 504c41494e54455854 03 6231 2384 0000 00 01 00 01 00"
            f"01 00 11 02 {U_HEX}"
        ),
    ),
]

NO_OP_BATCH = bytes.fromhex(
    "00 00 00 00 00 00 00 0a  00 00 00 3c  00 00 00 03  02  b0 3b fe 3d  00 00"
    "00 00 00 00  00 00 01 8b cf e5 68 00  00 00 01 8b cf e5 68 00"
    "ff ff ff ff ff ff ff ff  ff ff  ff ff ff ff  00 00 00 01"
    "14 00 00 00 01 08 01 14 00 00 00"
)
CONTROL_BATCH = bytes.fromhex(
    "00 00 00 00 00 00 00 00  00 00 00 4f  00 00 00 01  02  11 54 ea f9  00 20"
    "00 00 00 00  00 00 01 8b cf e5 68 00  00 00 01 8b cf e5 68 00"
    "ff ff ff ff ff ff ff ff  ff ff  ff ff ff ff  00 00 00 01"
    "3a 00 00 00 08 00 00 00 02 26 00 00 00 00 00 01 02 00 00 00 01 00 02 00 00 00 01 00 00 00"
)


@pytest.mark.parametrize(("record", "key", "value"), CONTROL_RECORDS)
def test_control_records(record: Any, key: str, value: str) -> None:
    assert encode_control_record(record) == (bytes.fromhex(key), bytes.fromhex(value))
    assert decode_control_record(bytes.fromhex(key), bytes.fromhex(value)) == record


@pytest.mark.parametrize(("record", "version", "value"), RECORDS)
def test_metadata_records(record: Any, version: int, value: str) -> None:
    assert encode_record(record, version).hex() == bytes.fromhex(value).hex()
    assert decode_record(bytes.fromhex(value)) == record


def test_a_data_batch() -> None:
    records = [(None, encode_record(NoOpRecord()))]
    assert (
        write_batch(base_offset=10, leader_epoch=3, timestamp_ms=TIMESTAMP_MS, records=records) == NO_OP_BATCH
    )
    header = check_batch(NO_OP_BATCH)
    (record,) = read_records(NO_OP_BATCH, 0, header)
    assert (header.size_in_bytes, header.next_offset, header.is_control) == (72, 11, False)
    assert (record.offset, record.timestamp_ms, record.key) == (10, TIMESTAMP_MS, None)
    assert decode_record(record.value or b"") == NoOpRecord()


def test_a_control_batch() -> None:
    message = LeaderChangeMessage(leader_id=1, voters=_voters(1), granting_voters=_voters(1))
    written = write_batch(
        base_offset=0,
        leader_epoch=1,
        timestamp_ms=TIMESTAMP_MS,
        records=[encode_control_record(message)],
        control=True,
    )
    assert written == CONTROL_BATCH
    header = check_batch(CONTROL_BATCH)
    (record,) = read_records(CONTROL_BATCH, 0, header)
    assert header.is_control
    assert decode_control_record(record.key, record.value) == message
