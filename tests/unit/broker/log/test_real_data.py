"""The log directories of real brokers (Kafka 0.11 to 4.3): every batch, producer snapshot and transaction index is read
as an independent decoder read it, written again byte for byte, and follows from the batches."""

import hashlib
import json
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from kquorum.broker.log.partition_log import AppendOrigin
from kquorum.broker.log.producer_state import (
    KeptBatch,
    ProducerEntry,
    ProducerStates,
    decode_snapshot,
    encode_snapshot,
)
from kquorum.broker.log.transactions import (
    AbortedEntry,
    bytes_below,
    check_entries,
    decode_entries,
    encode_entry,
)
from kquorum.broker.log.validation import ValidationRules, analyze, validate_and_assign
from kquorum.wire.data_batch import (
    BatchHeader,
    Record,
    check_data_batch,
    data_headers,
    plain_records,
    read_data_records,
    seal_batch,
    write_data_batch,
)
from kquorum.wire.record_survey import survey_records
from kquorum.wire.transaction_markers import decode_transaction_marker

# The producers of old folders would all be expired today.
LONG_AGO_MS = 0


def logs(real_data: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Each segment of each partition, with what is expected of it."""
    for expected_file in sorted((real_data / "expected").glob("*.json")):
        expected = json.loads(expected_file.read_bytes())
        for name, partition in expected["partitions"].items():
            for file_name, facts in partition["segments"].items():
                yield real_data / expected_file.stem / name / file_name, facts


def batches_of(log: Path) -> list[tuple[bytes, BatchHeader]]:
    """The batches of a segment, each with its own bytes."""
    data = log.read_bytes()
    return [(data[at : at + header.size_in_bytes], header) for at, header in data_headers(data)]


def digest_of(records: list[Record]) -> str:
    digest = hashlib.sha256()

    def add(part: bytes | None) -> None:
        digest.update(struct.pack(">i", -1 if part is None else len(part)) + (part or b""))

    for record in records:
        digest.update(struct.pack(">qq", record.offset, record.timestamp_ms))
        add(record.key)
        add(record.value)
        digest.update(struct.pack(">i", len(record.headers)))
        for name, value in record.headers:
            add(name.encode())
            add(value)
    return digest.hexdigest()


def test_every_record_is_read_as_the_independent_decoder_read_it(real_data: Path) -> None:
    seen = 0
    for log, facts in logs(real_data):
        batches = batches_of(log)
        for batch, header in batches:
            assert check_data_batch(batch) == header
        records = [record for batch, header in batches for record in read_data_records(batch, 0, header)]
        assert len(batches) == facts["batches"], log
        assert sum(len(batch) for batch, _ in batches) == facts["bytes"] - facts["torn_bytes"], log
        assert len(records) == facts["records"], log
        assert digest_of(records) == facts["records_sha256"], log
        seen += len(batches)
    assert seen > 10_000


def test_every_batch_is_written_again_byte_for_byte(real_data: Path) -> None:
    seen = 0
    for log, _ in logs(real_data):
        for batch, header in batches_of(log):
            records = read_data_records(batch, 0, header)
            again = write_data_batch(
                records,
                base_offset=header.base_offset,
                last_offset=header.last_offset,
                leader_epoch=header.partition_leader_epoch,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=header.base_sequence,
                transactional=header.is_transactional,
                control=header.is_control,
                delete_horizon_ms=header.delete_horizon_ms,
                max_timestamp_ms=header.max_timestamp_ms,
            )
            plain = seal_batch(
                plain_records(batch, 0, header),
                replace(header, attributes=header.attributes & ~0x07),
            )
            if header.is_log_append_time:
                # The records show the broker's time: the producer's is in the bytes alone.
                again = plain
            assert again == plain, (log, header)
            if not header.attributes & 0x07:
                assert plain == batch, (log, header)
            seen += 1
    assert seen > 10_000


def test_every_batch_of_a_log_is_taken_by_a_follower(real_data: Path) -> None:
    for log, facts in logs(real_data):
        found = analyze(log.read_bytes(), origin=AppendOrigin.REPLICATION, max_message_bytes=None)
        assert len(found.batches) == facts["batches"], log
        assert found.valid_bytes == facts["bytes"] - facts["torn_bytes"], log
        assert found.last_offset == (-1 if facts["last_offset"] is None else facts["last_offset"]), log
        assert found.max_timestamp_ms == facts["max_timestamp"], log


def test_every_batch_is_taken_by_a_leader_and_stays_as_it_was(real_data: Path) -> None:
    """What a leader wrote is what it would write again of the producer's batch, but for the codec of the topic."""
    seen = 0
    for log, _ in logs(real_data):
        for batch, header in batches_of(log):
            if header.is_control or header.record_count != header.last_offset_delta + 1:
                continue
            if header.is_log_append_time or header.delete_horizon_ms is not None:
                continue
            produced = bytearray(batch)
            produced[:8] = bytes(8)
            found = analyze(produced, origin=AppendOrigin.COORDINATOR, max_message_bytes=len(batch))
            validated = validate_and_assign(
                produced,
                found,
                first_offset=header.base_offset,
                leader_epoch=header.partition_leader_epoch,
                now_ms=header.max_timestamp_ms,
                origin=AppendOrigin.COORDINATOR,
                rules=ValidationRules(),
            )
            assert validated.records == batch, (log, header)
            assert validated.batches == (header,)
            seen += 1
    assert seen > 10_000


def test_the_survey_of_a_batch_agrees_with_its_records(real_data: Path) -> None:
    for log, _ in logs(real_data):
        for batch, header in batches_of(log):
            if header.magic != 2 or header.is_log_append_time or not header.record_count:
                continue
            plain = b"xyz" + plain_records(batch, 0, header)
            survey = survey_records(plain, 3, len(plain), header.record_count)
            records = read_data_records(batch, 0, header)
            times = [record.timestamp_ms - header.base_timestamp_ms for record in records]
            assert (survey.least_timestamp_delta, survey.greatest_timestamp_delta) == (min(times), max(times))
            assert survey.index_of_greatest == times.index(max(times))
            assert survey.has_every_key == all(record.key is not None for record in records)
            assert survey.is_sequential == (
                [record.offset - header.base_offset for record in records] == list(range(len(records)))
            )


def snapshots(real_data: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for expected_file in sorted((real_data / "expected").glob("*.json")):
        for name, partition in json.loads(expected_file.read_bytes())["partitions"].items():
            for file_name, facts in partition["snapshots"].items():
                yield real_data / expected_file.stem / name / file_name, facts


def fields_of(entry: ProducerEntry) -> dict[str, int]:
    batch = entry.batches[-1] if entry.batches else KeptBatch(-1, -1, 0, -1)
    return {
        "coordinator_epoch": entry.coordinator_epoch,
        "current_txn_first_offset": entry.transaction_first_offset,
        "last_offset": batch.last_offset,
        "last_sequence": batch.last_sequence,
        "offset_delta": batch.offset_delta,
        "producer_epoch": entry.epoch,
        "producer_id": entry.producer_id,
        "timestamp": entry.last_timestamp_ms,
    }


def test_every_producer_snapshot_is_read_and_written_byte_for_byte(real_data: Path) -> None:
    seen = 0
    for file, facts in snapshots(real_data):
        data = file.read_bytes()
        entries = decode_snapshot(data)
        assert encode_snapshot(entries) == data, file
        assert len(entries) == len(facts["entries"]), file
        assert [fields_of(entry) for entry in entries] == facts["entries"], file
        states = ProducerStates()
        states.load_snapshot(data, offset=int(file.stem), now_ms=LONG_AGO_MS)
        assert states.snapshot_bytes() == data
        seen += 1
    assert seen > 50


def test_the_last_snapshot_and_the_transaction_index_follow_from_the_batches(real_data: Path) -> None:
    """A replica that reads a log from its start ends with the producers that Kafka stored, and finds the same aborted
    transactions in the same segments."""
    compared, aborted = 0, 0
    for folder in sorted({log.parent for log, _ in logs(real_data)}):
        states, segments = ProducerStates(), sorted(folder.glob("*.log"))
        end = 0
        for log in segments:
            written = []
            for batch, header in batches_of(log):
                prepared = states.prepare([header], batch, origin=AppendOrigin.REPLICATION)
                written += states.apply(prepared, header.next_offset)
                end = header.next_offset
            index = log.with_suffix(".txnindex")
            data = index.read_bytes() if index.exists() else b""
            assert b"".join(encode_entry(entry) for entry in written) == data, index
            assert decode_entries(data) == written
            assert decode_entries(data + b"half") == written
            check_entries(written, int(log.stem))
            aborted += len(written)
        snapshot = folder / f"{end:020d}.snapshot"
        # Offsets that were deleted or compacted away may have been a producer's last.
        if snapshot.exists() and int(segments[0].stem) == 0:
            stored = {entry.producer_id: entry for entry in decode_snapshot(snapshot.read_bytes())}
            known = {entry.producer_id: entry for entry in decode_snapshot(states.snapshot_bytes())}
            # The broker had forgotten the others: no record of theirs was young enough.
            assert {key: known.get(key) for key in stored} == stored, snapshot
            compared += 1
    assert compared > 20
    assert aborted > 20


def test_a_truncated_index_ends_before_the_transactions_that_end_above(real_data: Path) -> None:
    for index in sorted(real_data.rglob("*.txnindex")):
        entries = decode_entries(index.read_bytes())
        for number, entry in enumerate(entries):
            assert bytes_below(entries, entry.last_offset) == 34 * number
            assert bytes_below(entries, entry.last_offset + 1) == 34 * (number + 1)


def test_every_marker_is_read(real_data: Path) -> None:
    seen = {True: 0, False: 0}
    for log, facts in logs(real_data):
        counts = {True: 0, False: 0}
        for batch, header in batches_of(log):
            if header.is_control:
                (record,) = read_data_records(batch, 0, header)
                counts[decode_transaction_marker(record.key, record.value).is_commit] += 1
        expected = facts["control_records"]
        assert counts == {True: expected.get("commit", 0), False: expected.get("abort", 0)}, log
        seen = {kind: seen[kind] + count for kind, count in counts.items()}
    assert all(seen.values())


def test_an_entry_of_the_index_is_34_bytes() -> None:
    assert encode_entry(AbortedEntry(1000, 28, 30, 31)).hex() == "0000" + "".join(
        f"{number:016x}" for number in (1000, 28, 30, 31)
    )
