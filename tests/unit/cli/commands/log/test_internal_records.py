"""`kquorum log dump` of `__consumer_offsets`: each record in words."""

import json
from pathlib import Path
from uuid import UUID

import pytest

from kquorum.cli.failures import ExitStatus
from kquorum.cli.main import run
from kquorum.wire.consumer_group_records import (
    ConsumerKey,
    TargetAssignmentValue,
    encode_consumer_key,
    encode_consumer_value,
    target_entries,
)
from kquorum.wire.data_batch import write_data_batch
from kquorum.wire.offsets_records import (
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitValue,
    OffsetKey,
    RecordType,
    encode_group_key,
    encode_group_value,
    encode_offset_key,
    encode_offset_value,
)
from kquorum.wire.record_parsing import Record
from kquorum.wire.uuids import uuid_to_text

TOPIC_ID = UUID(int=7)
TARGET = ConsumerKey(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, "readers", "m")
RECORDS: tuple[tuple[bytes, bytes | None], ...] = (
    (
        encode_offset_key(OffsetKey("readers", "orders", 3)),
        encode_offset_value(OffsetCommitValue(offset=50, metadata="done", topic_id=TOPIC_ID)),
    ),
    (encode_offset_key(OffsetKey("readers", "orders", 3)), None),
    (
        encode_group_key("readers"),
        encode_group_value(GroupMetadataValue(members=(MemberMetadata(member_id="m", assignment=b"\1"),))),
    ),
    (
        encode_consumer_key(TARGET),
        encode_consumer_value(
            TargetAssignmentValue(topic_partitions=target_entries({TOPIC_ID: frozenset({1})}))
        ),
    ),
    (b"\x00\x11\x00\x07readers", b"\x00\x00"),
    (b"\x00\x63", b""),
)


def dumped(folder: Path, *records: tuple[bytes, bytes | None]) -> int:
    folder.mkdir()
    batch = write_data_batch([Record(at, 1_000, key, value) for at, (key, value) in enumerate(records)])
    (folder / "00000000000000000000.log").write_bytes(batch)
    return run(["log", "dump", "--json", str(folder)])


def test_records_of_groups_are_told_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dumped(tmp_path / "__consumer_offsets-3", *RECORDS) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["type"] for each in told] == [
        "OffsetCommit",
        "OffsetCommit",
        "GroupMetadata",
        "ConsumerGroupTargetAssignmentMember",
        "StreamsGroupMetadata",
        99,
    ]
    commit, tombstone, group, target, streams, _ = told
    assert (commit["group"], commit["topic"], commit["topic_partition"]) == ("readers", "orders", 3)
    assert (commit["offset"], commit["committed_offset"], commit["metadata"]) == (0, 50, "done")
    assert commit["topic_id"] == uuid_to_text(TOPIC_ID)
    assert tombstone["is_tombstone"]
    assert group["members"][0]["assignment"] == "01"
    assert target["member"] == "m"
    assert target["topic_partitions"] == [{"topic_id": uuid_to_text(TOPIC_ID), "partitions": [1]}]
    assert streams["value_bytes"] == 2


def test_other_topics_are_shown_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dumped(tmp_path / "orders-3", RECORDS[0]) == 0
    assert "committed_offset" not in capsys.readouterr().out


def test_a_record_that_cannot_be_read_is_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = (encode_offset_key(OffsetKey("readers", "orders", 3)), b"\x00\x63")
    assert dumped(tmp_path / "__consumer_offsets-3", damaged) == ExitStatus.DAMAGED_INPUT
    assert "version 99" in capsys.readouterr().err
