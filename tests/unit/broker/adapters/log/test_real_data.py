"""Log directories of real Kafka brokers: each is loaded, read whole, goes on, and is opened again."""

import hashlib
import json
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kquorum.broker.adapters.log.disk_log import DiskLog
from kquorum.broker.adapters.log.log_dir import LogDir
from kquorum.broker.adapters.log.log_manager import LogManager, run_work
from kquorum.broker.log.leader_epochs import LeaderEpochs
from kquorum.broker.log.log_config import LogConfig
from kquorum.broker.log.partition_log import Isolation
from kquorum.wire.data_batch import Record
from kquorum.wire.uuids import uuid_to_text
from tests.support.broker.disk_logs import DIRECTORY_ID, all_bytes, data, offset_for_time, records_in
from tests.support.broker.real_data import REAL_FOLDERS, copied

NOW_MS = 1_900_000_000_000
# So that no test waits for a retention that real time would bring.
KEEP = LogConfig(retention_ms=-1, message_timestamp_after_max_ms=2**62)


def expected_of(real_data: Path, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((real_data / "expected" / f"{name}.json").read_text())
    return content


def loaded(folder: Path) -> LogManager:
    manager = LogManager([LogDir(folder, DIRECTORY_ID)], config_of=lambda _topic: KEEP)
    manager.load(NOW_MS)
    assert not manager.offline_dirs
    return manager


def _sized(part: bytes | None) -> bytes:
    return struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part


def digest(records: Iterable[Record]) -> str:
    found = hashlib.sha256()
    for record in records:
        found.update(
            struct.pack(">qq", record.offset, record.timestamp_ms) + _sized(record.key) + _sized(record.value)
        )
        found.update(struct.pack(">i", len(record.headers)))
        for name, value in record.headers:
            found.update(_sized(name.encode()) + _sized(value))
    return found.hexdigest()


def segment_bytes(log: DiskLog) -> dict[str, bytes]:
    """What a reader gets, by the segments that it lies in."""
    return {segment.path.name: segment.read_at(0, segment.size) for segment in log.segments}


def check_partition(log: DiskLog, expected: dict[str, Any]) -> None:
    segments = expected["segments"]
    contents = segment_bytes(log)
    assert contents.keys() == segments.keys()
    for name, content in contents.items():
        assert hashlib.sha256(content).hexdigest() == segments[name]["sha256"]
        assert digest(records_in(content)) == segments[name]["records_sha256"]
    whole = b"".join(contents.values())
    read = all_bytes(log)
    assert whole.endswith(read)
    first = [record for record in records_in(whole) if record.offset >= log.log_start_offset]
    assert [record for record in records_in(read) if record.offset >= log.log_start_offset] == first
    metadata = expected.get("partition.metadata")
    if metadata is not None:
        assert uuid_to_text(log.topic_id) == metadata["topic_id"]
    timestamps = [each["max_timestamp"] for each in segments.values()]
    if max(timestamps) >= 0:
        assert log.offset_of_max_time().timestamp_ms == max(timestamps)


@pytest.mark.parametrize("name", REAL_FOLDERS)
def test_every_record_is_read_as_another_decoder_reads_it(real_data: Path, tmp_path: Path, name: str) -> None:
    expected = expected_of(real_data, name)
    manager = loaded(copied(real_data, name, tmp_path / name))
    assert {f"{topic}-{partition}" for topic, partition in manager.logs} == set(expected["partitions"])
    for log in manager.logs.values():
        check_partition(log, expected["partitions"][log.folder.name])


@pytest.mark.parametrize("name", REAL_FOLDERS)
def test_a_log_goes_on_and_is_opened_again(real_data: Path, tmp_path: Path, name: str) -> None:
    folder = copied(real_data, name, tmp_path / name)
    manager = loaded(folder)
    ends: dict[tuple[str, int], int] = {}
    for partition, log in manager.logs.items():
        before = log.log_end_offset
        epoch = (log.latest_epoch or 0) + 1
        log.assign_epoch_start(epoch)
        appended = log.append_as_leader(
            data("more", key=b"k", timestamp_ms=NOW_MS), leader_epoch=epoch, now_ms=NOW_MS
        )
        assert appended.first_offset == before
        assert log.end_of_epoch(epoch).end_offset == before + 1
        ends[partition] = log.log_end_offset
    run_work(manager.tick(NOW_MS + 60_000))
    manager.close(5)
    again = loaded(folder)
    assert {partition: log.log_end_offset for partition, log in again.logs.items()} == ends
    assert all(log.recovery_point == log.log_end_offset for log in again.logs.values())
    for log in again.logs.values():
        found = log.read(
            log.log_end_offset - 1, max_bytes=1, isolation=Isolation.LOG_END, at_least_one_batch=True
        )
        assert records_in(b"".join(map(bytes, found.pieces)))[-1].value == b"more"
        assert offset_for_time(log, NOW_MS).offset == log.log_end_offset - 1


def bare(folder: Path) -> None:
    """Leave the batches alone, as after a crash that lost everything else."""
    for path in folder.rglob("*"):
        if path.suffix in (".index", ".timeindex", ".txnindex", ".snapshot") or path.name in (
            ".kafka_cleanshutdown",
            "leader-epoch-checkpoint",
            "recovery-point-offset-checkpoint",
        ):
            path.unlink()


def newest_snapshot(expected: dict[str, Any]) -> list[dict[str, int]] | None:
    names = sorted(expected.get("snapshots", {}))
    if not names or not expected["snapshots"][names[-1]]["valid"]:
        return None
    entries: list[dict[str, int]] = expected["snapshots"][names[-1]]["entries"]
    return sorted(entries, key=lambda entry: entry["producer_id"])


@pytest.mark.parametrize("name", REAL_FOLDERS)
def test_all_that_is_beside_the_batches_is_built_again_from_them(
    real_data: Path, tmp_path: Path, name: str
) -> None:
    expected = expected_of(real_data, name)
    folder = copied(real_data, name, tmp_path / name)
    bare(folder)
    manager = LogManager([LogDir(folder, DIRECTORY_ID)], config_of=lambda _topic: KEEP)
    # At a time when none of the producers had expired.
    manager.load(0)
    for log in manager.logs.values():
        partition = expected["partitions"][log.folder.name]
        for segment in log.segments:
            found = [segment.aborted.at(index) for index in range(len(segment.aborted))]
            known = partition["indexes"].get(f"{segment.base_offset:020}.txnindex", {}).get("entries", [])
            assert found == [
                (
                    each["version"],
                    each["producer_id"],
                    each["first_offset"],
                    each["last_offset"],
                    each["last_stable_offset"],
                )
                for each in known
            ]
        of_batches = LeaderEpochs(
            (epoch, offset)
            for segment in partition["segments"].values()
            for epoch, offset in segment["leader_epochs"]
        )
        of_batches.cut_start(log.log_start_offset)
        assert log.leader_epochs == of_batches.entries
        entries = newest_snapshot(partition)
        if entries is not None and int(max(partition["snapshots"]).split(".")[0]) == log.log_end_offset:
            producers = log.producers.entries
            for entry in entries:
                # A producer whose batches retention removed is known by the snapshot alone.
                if entry["last_offset"] >= log.log_start_offset:
                    producer = producers[entry["producer_id"]]
                    assert (producer.epoch, producer.coordinator_epoch) == (
                        entry["producer_epoch"],
                        entry["coordinator_epoch"],
                    )
                    assert producer.last_sequence == entry["last_sequence"]
                    assert producer.transaction_first_offset == entry["current_txn_first_offset"]
                    assert producer.batches[-1].last_offset == entry["last_offset"]


@pytest.mark.parametrize("name", REAL_FOLDERS)
def test_what_lies_beside_the_batches_says_what_kafka_wrote(
    real_data: Path, tmp_path: Path, name: str
) -> None:
    expected = expected_of(real_data, name)
    manager = loaded(copied(real_data, name, tmp_path / name))
    starts = {
        (topic, number): offset
        for topic, number, offset in (expected.get("log-start-offset-checkpoint") or {}).get("entries", [])
    }
    points = {
        (topic, number): offset
        for topic, number, offset in (expected.get("recovery-point-offset-checkpoint") or {}).get(
            "entries", []
        )
    }
    for partition, log in manager.logs.items():
        known = expected["partitions"][log.folder.name]
        base = min(int(each.split(".")[0]) for each in known["segments"])
        assert log.log_start_offset == starts.get(partition, base)
        epochs = [tuple(each) for each in known["leader-epoch-checkpoint"].get("entries", [])]
        kept = [each for each in epochs if each[1] < log.log_end_offset]
        if kept and kept[0][1] >= log.log_start_offset:
            assert list(log.leader_epochs) == kept
        if expected.get(".kafka_cleanshutdown") is not None and partition in points:
            assert log.log_end_offset == points[partition] == log.recovery_point
