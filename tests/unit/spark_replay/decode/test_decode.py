"""Rows of the decoder, on a small log of every trouble and on real ones."""

import json
from collections import Counter
from pathlib import Path
from uuid import UUID

import pytest

from kquorum.spark_replay.decode.files import map_listed
from kquorum.spark_replay.decode.records import Origin, RecordDecoder, batch_row, origin_of, scan
from kquorum.spark_replay.decode.rows import BatchRow, DamageRow, RecordRow
from kquorum.spark_replay.decode.sources import FileKind, LogFile, find_log_files
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.metadata_records.security import UserScramCredentialRecord
from kquorum.wire.uuids import uuid_to_text
from tests.support.batches import batch_of
from tests.support.sample_logs import (
    UNKNOWN_KEY,
    UNKNOWN_SCRAM_VERSION,
    LogBuilder,
    first_segment,
    write_sample,
    write_trimmed_sample,
)

SEGMENT = Origin(file="00000000000000000000.log", kind=FileKind.LOG, segment_base_offset=0)


def decode(
    data: bytes, origin: Origin = SEGMENT, *, show_secrets: bool = False
) -> list[RecordRow | DamageRow]:
    decoder = RecordDecoder(origin, show_secrets=show_secrets)
    rows: list[RecordRow | DamageRow] = []
    for item in scan(memoryview(data), origin):
        rows += [item] if isinstance(item, DamageRow) else decoder.rows(item)
    return rows


def records_of(data: bytes, *, show_secrets: bool = False) -> dict[int, RecordRow]:
    rows = decode(data, show_secrets=show_secrets)
    return {row.offset: row for row in rows if isinstance(row, RecordRow)}


def read_file(file: LogFile) -> tuple[Counter[str], list[BatchRow], list[DamageRow]]:
    """Counts of record types as `expected.json` names them, the batches and the damage."""
    origin = origin_of(file)
    decoder, types, batches, damage = (
        RecordDecoder(origin),
        Counter[str](),
        list[BatchRow](),
        list[DamageRow](),
    )
    for item in scan(map_listed(file.path), origin):
        if isinstance(item, DamageRow):
            damage.append(item)
            continue
        batches.append(batch_row(item, origin))
        for row in decoder.rows(item):
            assert isinstance(row, RecordRow)
            types[("ctl:" if row.is_control else "") + row.record_type] += 1
    return types, batches, damage


def test_a_partition_record_is_shown_with_its_keys_and_its_fields() -> None:
    row = records_of(bytes(first_segment().data))[7]
    topic_id = row.topic_id
    assert (row.record_type, row.api_key, row.version, row.partition_id) == ("PartitionRecord", 3, 2, 1)
    assert (row.batch_base_offset, row.leader_epoch, row.timestamp_ms, row.state_offset) == (5, 1, 2000, 7)
    assert row.payload is not None
    assert row.payload["replicas"] == [2, 1]
    assert row.payload["topic_id"] == topic_id == "AAAAAAAAAAAAAAAAAAAD6Q"
    assert row.raw is None
    assert row.problem is None


def test_an_unknown_type_and_an_unknown_version_keep_their_bytes_and_stop_nothing() -> None:
    log = LogBuilder().values(1, UNKNOWN_KEY, b"\x01\x02\x09", b"junk").records(2, NoOpRecord())
    rows = records_of(bytes(log.data))
    assert [(row.record_type, row.api_key, row.version, row.raw) for row in rows.values()] == [
        ("Unknown", 99, 0, UNKNOWN_KEY),
        ("TopicRecord", 2, 9, b"\x01\x02\x09"),
        ("Unknown", None, None, b"junk"),
        ("NoOpRecord", 20, 0, None),
    ]
    assert all(row.problem for offset, row in rows.items() if offset < 3)


def test_secrets_are_held_back_unless_asked_for() -> None:
    data = bytes(first_segment().data)
    hidden, shown = records_of(data), records_of(data, show_secrets=True)
    assert [row.payload["value"] for row in (hidden[14], shown[14]) if row.payload] == [
        "[redacted]",
        "hunter2",
    ]
    assert hidden[15].payload is not None
    assert hidden[15].payload["salt"] == "[redacted]"
    assert shown[15].payload is not None
    assert shown[15].payload["salt"] == "c2FsdA=="


def test_bytes_of_an_unreadable_version_are_held_back_where_the_type_holds_secrets() -> None:
    data = bytes(first_segment().data)
    hidden, shown = records_of(data)[22], records_of(data, show_secrets=True)[22]
    assert hidden.record_type == UserScramCredentialRecord.__name__
    assert hidden.raw is None
    assert "withheld" in (hidden.problem or "")
    assert shown.raw == UNKNOWN_SCRAM_VERSION


def test_an_undecodable_footer_keeps_its_bytes_though_its_number_is_that_of_a_config_record() -> None:
    footer_key = b"\x00\x00\x00\x04"
    record = bytes([0, 0, 0, 2 * len(footer_key)]) + footer_key + bytes([2 * 1, 0xFF, 0])
    data = batch_of(bytes([2 * len(record)]) + record, attributes=0x20)
    (row,) = records_of(data).values()
    assert (row.record_type, row.api_key, row.raw) == ("Unknown", 4, b"\xff")


def test_a_torn_tail_is_reported_with_its_place_and_the_rest_is_read() -> None:
    whole = LogBuilder().records(1, NoOpRecord()).data
    torn = LogBuilder(next_offset=1).records(2, NoOpRecord()).data[:-1]
    first, second = decode(bytes(whole + torn))
    assert isinstance(first, RecordRow)
    assert isinstance(second, DamageRow)
    assert (second.kind, second.position, second.offset) == ("torn", len(whole), 1)


def test_a_batch_with_a_flipped_byte_is_damage_and_the_next_one_is_read() -> None:
    log = LogBuilder().records(1, NoOpRecord()).records(2, NoOpRecord()).records(3, NoOpRecord())
    data = bytearray(log.data)
    data[72 + 65] ^= 1
    first, second, third = decode(bytes(data))
    assert isinstance(second, DamageRow)
    assert (second.kind, second.position, second.offset) == ("corrupt", 72, 1)
    assert [row.offset for row in (first, third) if isinstance(row, RecordRow)] == [0, 2]


def test_a_batch_whose_records_are_no_records_is_damage_although_its_checksum_is_right() -> None:
    data = batch_of(b"\x7f\x00\x01\x02") + LogBuilder(next_offset=1).records(2, NoOpRecord()).data
    first, second = decode(bytes(data))
    assert isinstance(first, DamageRow)
    assert (first.kind, first.position, first.offset) == ("undecodable", 0, 0)
    assert isinstance(second, RecordRow)


def test_a_compression_codec_that_does_not_exist_is_damage() -> None:
    data = batch_of(b"\x00", attributes=6)
    (row,) = decode(data)
    assert isinstance(row, DamageRow)
    assert row.kind == "undecodable"
    (batch,) = scan(memoryview(data), SEGMENT)
    assert not isinstance(batch, DamageRow)
    assert batch_row(batch, SEGMENT).codec == "unknown"


def test_a_segment_that_does_not_begin_where_its_name_says_is_damaged() -> None:
    origin = Origin(file="00000000000000000007.log", kind=FileKind.LOG, segment_base_offset=7)
    first, second = decode(bytes(LogBuilder().records(1, NoOpRecord()).data), origin)
    assert isinstance(first, DamageRow)
    assert isinstance(second, RecordRow)


def test_records_of_a_snapshot_count_as_of_the_last_record_it_contains(tmp_path: Path) -> None:
    files = find_log_files(write_trimmed_sample(tmp_path / "trimmed"))
    (snapshot,) = (file for file in files if file.kind is FileKind.SNAPSHOT)
    rows = decode(bytes(map_listed(snapshot.path)), origin_of(snapshot))
    assert [
        (row.offset, row.record_type, row.state_offset, row.state_timestamp_ms)
        for row in rows
        if isinstance(row, RecordRow)
    ] == [
        (0, "SnapshotHeader", 99, 50_000),
        (1, "RegisterBrokerRecord", 99, 50_000),
        (2, "TopicRecord", 99, 50_000),
        (3, "PartitionRecord", 99, 50_000),
        (4, "SnapshotFooter", 99, 50_000),
    ]


def test_what_is_not_wanted_is_skipped_and_the_rest_is_the_same(tmp_path: Path) -> None:
    (first, _) = find_log_files(write_sample(tmp_path / "sample"))
    origin = origin_of(first)
    decoder = RecordDecoder(origin, wants="TopicRecord".__eq__)
    batches = [item for item in scan(map_listed(first.path), origin) if not isinstance(item, DamageRow)]
    chosen = [row for batch in batches for row in decoder.rows(batch)]
    assert chosen == [
        row for row in decode(bytes(first_segment().data)) if getattr(row, "record_type", "") == "TopicRecord"
    ]
    assert len(chosen) == 4


def test_every_real_file_decodes_to_what_an_independent_decoder_counted(real_logs: Path) -> None:
    expected = json.loads((real_logs / "expected.json").read_text())
    found = {}
    for file in find_log_files(real_logs):
        types, batches, damage = read_file(file)
        assert damage == [], file.path
        name = str(Path(file.path).relative_to(real_logs))
        found[name] = (len(batches), batches[0].base_offset, batches[-1].last_offset, dict(types))
    assert found == {
        name: (facts["batches"], facts["first"], facts["last"], facts["types"])
        for name, facts in expected.items()
    }


@pytest.mark.parametrize(("start", "end"), [(0, 100), (100, 10_000)])
def test_a_range_takes_the_batches_which_begin_in_it(start: int, end: int) -> None:
    log = LogBuilder()
    for at in range(5):
        log.records(at, NoOpRecord())
    in_range = [
        item.position
        for item in scan(memoryview(bytes(log.data)), SEGMENT, -(-start // 72) * 72, end)
        if not isinstance(item, DamageRow)
    ]
    assert in_range == [position for position in range(0, 360, 72) if start <= position < end]


def test_uuids_are_written_in_kafkas_text_form() -> None:
    row = records_of(bytes(first_segment().data))[1]
    assert row.payload is not None
    assert row.payload["incarnation_id"] == uuid_to_text(UUID(int=1))
