"""Logs and snapshots of real Kafka clusters: nothing lost, nothing misread, every batch written again byte for byte."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kquorum.wire.control_records import decode_control_record, encode_control_record
from kquorum.wire.log_scan import Damage, ScannedBatch, scan_batches
from kquorum.wire.record_batch import Record, read_records, write_batch
from kquorum.wire.record_frame import decode_record, decode_record_lenient, encode_record


@dataclass
class Tally:
    """What one file holds, in the terms of `expected.json`."""

    batches: int = 0
    records: int = 0
    offsets: list[int] = field(default_factory=list)
    epochs: set[int] = field(default_factory=set)
    types: Counter[str] = field(default_factory=Counter)
    damages: list[Damage] = field(default_factory=list)
    rewritten_differently: list[int] = field(default_factory=list)

    def add(self, batch: ScannedBatch) -> None:
        records = read_records(batch.data, 0, batch.header)
        self.batches += 1
        self.records += len(records)
        self.offsets += [record.offset for record in records]
        self.epochs.add(batch.header.partition_leader_epoch)
        pairs = [self._encode_again(record, batch.header.is_control) for record in records]
        again = write_batch(
            base_offset=batch.header.base_offset,
            leader_epoch=batch.header.partition_leader_epoch,
            timestamp_ms=batch.header.base_timestamp_ms,
            records=pairs,
            control=batch.header.is_control,
        )
        if again != batch.data:
            self.rewritten_differently.append(batch.header.base_offset)

    def _encode_again(self, record: Record, is_control: bool) -> tuple[bytes | None, bytes]:
        if is_control:
            control = decode_control_record(record.key, record.value)
            self.types["ctl:" + type(control).__name__.removesuffix("Record").removesuffix("Message")] += 1
            return encode_control_record(control)
        assert record.value is not None
        decoded = decode_record(record.value)
        self.types[type(decoded).__name__] += 1
        return None, encode_record(decoded, decode_record_lenient(record.value).version)


def _tally(file: Path) -> Tally:
    found = Tally()
    for item in scan_batches(file.read_bytes()):
        if isinstance(item, Damage):
            found.damages.append(item)
        else:
            found.add(item)
    return found


def test_every_file_is_read_completely_and_written_again_byte_for_byte(real_logs: Path) -> None:
    expected: dict[str, dict[str, Any]] = json.loads((real_logs / "expected.json").read_text())
    assert expected
    for name, counts in expected.items():
        found = _tally(real_logs / name)
        assert (counts["bad_crc"], counts["torn"]) == (0, None), f"{name}: this test knows sound files only"
        assert found.damages == [], name
        assert found.rewritten_differently == [], name
        assert (found.batches, found.records) == (counts["batches"], counts["records"]), name
        assert (found.offsets[0], found.offsets[-1]) == (counts["first"], counts["last"]), name
        assert found.offsets == list(range(found.offsets[0], found.offsets[-1] + 1)), name
        assert len(found.epochs) == counts["epochs"], name
        assert dict(found.types) == counts["types"], name


def test_every_log_and_snapshot_in_the_folder_was_expected(real_logs: Path) -> None:
    expected = set(json.loads((real_logs / "expected.json").read_text()))
    present = {
        str(file.relative_to(real_logs))
        for pattern in ("*.log", "*.checkpoint")
        for file in real_logs.rglob(pattern)
    }
    assert present == expected


@pytest.mark.parametrize("cut", [1, 30, 61, 71])
def test_a_real_log_cut_in_its_last_batch_is_torn_there_and_sound_before(real_logs: Path, cut: int) -> None:
    data = (real_logs / "seven-epochs/__cluster_metadata-0/00000000000000000000.log").read_bytes()
    *batches, damage = scan_batches(data[:-cut])
    whole = list(scan_batches(data))
    assert isinstance(damage, Damage)
    assert damage.kind == "torn"
    assert (damage.position, damage.offset) == (whole[-1].position, 2346)
    assert [item.position for item in batches] == [item.position for item in whole[:-1]]
