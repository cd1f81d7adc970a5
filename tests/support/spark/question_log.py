"""A small log with known answers: a topic with a hostile name, who asked for it, and what befell its two partitions."""

from pathlib import Path
from uuid import UUID

from kquorum.wire.audit_note import AUDIT_NOTE_TAG
from kquorum.wire.metadata_records.cluster import BrokerRegistrationChangeRecord
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, TopicRecord
from kquorum.wire.proto.audit_pb2 import AuditNote
from kquorum.wire.schema import MetadataRecord
from tests.support.sample_logs import LogBuilder, broker, partition

NOON_MS = 1_769_860_800_000  # 2026-01-31T12:00:00Z
HOSTILE = "[bold]\x1b[31mred\u202e"
TOPIC = UUID(int=4242)


def write_question_log(folder: Path) -> None:
    """Offsets 0 to 23: brokers 1 and 2 are fenced one after the other, and the quorum is silent for five minutes."""
    log = LogBuilder().leader(NOON_MS, 1, 1, 2, epoch=1)
    log.records(_at(1), broker(1, 1), broker(2, 2))
    log.records(_at(2), _changed(1, fenced=-1), _changed(2, fenced=-1))
    log.records(
        _at(60),
        _note(covered_records=4),  # offset 5
        TopicRecord(name=HOSTILE, topic_id=TOPIC),
        partition(TOPIC, 0, 1, (1, 2)),
        partition(TOPIC, 1, 2, (2, 1)),
        ConfigRecord(resource_type=2, resource_name=HOSTILE, name="min.insync.replicas", value="2"),
    )
    log.records(
        _at(120), _changed(2, fenced=1), _moved(0, isr=(1,)), _moved(1, leader=1, isr=(1,))
    )  # 10 to 12
    log.records(_at(180), _changed(2, fenced=-1))
    log.records(_at(240), _moved(0, isr=(1, 2)), _moved(1, isr=(1, 2)))  # 14, 15
    log.records(_at(300), _changed(1, fenced=1), _moved(0, leader=2, isr=(2,)), _moved(1, leader=2, isr=(2,)))
    log.leader(_at(600), 2, 2, 3, epoch=3)  # 19
    log.records(_at(601), NoOpRecord())
    log.records(_at(660), _changed(2, fenced=1), _moved(0, leader=-1), _moved(1, leader=-1))  # 21 to 23
    log_folder = folder / "__cluster_metadata-0"
    log_folder.mkdir(parents=True)
    (log_folder / "00000000000000000000.log").write_bytes(log.data)


def _at(seconds: int) -> int:
    return NOON_MS + 1000 * seconds


def _note(covered_records: int) -> MetadataRecord:
    value = AuditNote(
        principal="User:alice",
        client_id="cli",
        client_address="10.0.0.7",
        api_key=19,
        reason="create topic",
        operator_reason="for [the] test",
        covered_records=covered_records,
    ).SerializeToString(deterministic=True)
    return NoOpRecord(unknown_tagged_fields=((AUDIT_NOTE_TAG, value),))


def _changed(broker_id: int, **values: object) -> MetadataRecord:
    return BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker_id, **values)  # type: ignore[arg-type]


def _moved(number: int, **values: object) -> MetadataRecord:
    return PartitionChangeRecord(partition_id=number, topic_id=TOPIC, **values)  # type: ignore[arg-type]
