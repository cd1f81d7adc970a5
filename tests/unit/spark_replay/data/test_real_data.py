"""The tables of real brokers' partitions against an independent decoder's figures, and against a plain walk."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kquorum.spark_replay.data.building import rows_of
from kquorum.spark_replay.data.log_dirs import LogDir, find_log_dirs
from kquorum.spark_replay.data.registry import DATA_TABLES
from tests.support.spark import plain_data

TRANSACTIONS = "kafka-4.3-transactions-1"
QUICK = (TRANSACTIONS, "oldest-0.11")
NAMES = (
    *(QUICK),
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in (
            *("kafka-4.3-transactions-2", "kafka-4.3-transactions-3", "gzip", "many-snapshots", "small-4.0"),
            *("retained-and-cleaned", "snappy-1", "snappy-3", "three-brokers-1", "two-segments-4.0"),
            *("unclean-1", "unclean-3"),
        )
    ),
)


def log_dir(real_data: Path, name: str) -> LogDir:
    if not (real_data / name).is_dir():
        pytest.skip(f"no {name} in {real_data}")
    (found,) = find_log_dirs([real_data / name])
    return found


def tables(found: LogDir) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for folder in found.partitions:
        for name, made in rows_of(folder):
            rows[name] += made
    for name, table in DATA_TABLES.items():
        if table.of_log_dir is not None:
            rows[name] += table.of_log_dir(found)
    return rows


@pytest.mark.parametrize("name", NAMES)
def test_segments_and_batches_are_what_an_independent_decoder_read(real_data: Path, name: str) -> None:
    found = log_dir(real_data, name)
    rows = tables(found)
    expected = json.loads((real_data / "expected" / f"{name}.json").read_text())
    segments = {(f"{row['topic_name']}-{row['partition_id']}", row["file"]): row for row in rows["segments"]}
    batches: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows["data_batches"]:
        batches[f"{row['topic_name']}-{row['partition_id']}", row["file"]].append(row)
    compared = 0
    for partition, facts in expected["partitions"].items():
        for file, told in facts["segments"].items():
            row, of_file = segments.pop((partition, file)), batches[partition, file]
            assert (row["size_in_bytes"], row["batches"], row["records"], row["torn_bytes"]) == (
                *(told["bytes"], told["batches"], told["records"]),
                told["torn_bytes"],
            )
            assert (row["first_offset"], row["last_offset"]) == (told["first_offset"], told["last_offset"])
            assert (row["max_timestamp_ms"] or -1) == told["max_timestamp"]
            assert row["damaged_places"] == told["crc_failures"] + (told["torn_bytes"] > 0)
            assert row["undecodable_batches"] == 0
            assert dict(Counter(each["codec"] for each in of_file)) == told["codecs"]
            assert {str(key): n for key, n in Counter(each["magic"] for each in of_file).items()} == told[
                "magics"
            ]
            markers = Counter(each["marker"] for each in of_file if each["marker"])
            assert dict(markers) == told["control_records"]
            producers: dict[str, Counter[str]] = defaultdict(Counter)
            for each in of_file:
                if each["producer_id"] is not None:
                    producers[str(each["producer_id"])][str(each["producer_epoch"])] += 1
            assert {key: dict(value) for key, value in producers.items()} == told["producers"]
            assert sum(each["is_transactional"] for each in of_file) == told.get("transactional_batches", 0)
            compared += 1
    assert not segments
    assert compared == expected["totals"]["segments"]


@pytest.mark.parametrize("name", NAMES)
def test_checkpoints_are_what_the_files_hold(real_data: Path, name: str) -> None:
    found = log_dir(real_data, name)
    expected = json.loads((real_data / "expected" / f"{name}.json").read_text())
    rows = tables(found)["checkpoints"]
    epochs: dict[str, list[list[int]]] = defaultdict(list)
    marks = set()
    for row in rows:
        assert row["is_well_formed"]
        if row["kind"] == "leader_epoch":
            epochs[f"{row['topic_name']}-{row['partition_id']}"].append([row["leader_epoch"], row["offset"]])
        elif row["kind"] == "high_watermark":
            marks.add((row["topic_name"], row["partition_id"], row["offset"]))
    for partition, facts in expected["partitions"].items():
        told = facts.get("leader-epoch-checkpoint") or {}
        assert epochs.get(partition, []) == told.get("entries", [])
    there = {(each.topic, each.partition) for each in found.partitions}
    entries = (expected.get("replication-offset-checkpoint") or {}).get("entries", [])
    assert marks == {tuple(each) for each in entries if tuple(each[:2]) in there}


def partitions_of(found: LogDir, topic: str | None = None) -> Iterator[tuple[str, int, Path]]:
    for each in found.partitions:
        if topic in (None, each.topic):
            yield each.topic, each.partition, Path(each.path)


def test_transactions_are_those_of_a_plain_walk(real_data: Path) -> None:
    found = log_dir(real_data, TRANSACTIONS)
    rows: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for row in tables(found)["transactions"]:
        assert (row["duration_ms"] is not None) == (row["first_ms"] is not None)
        rows[row["topic_name"], row["partition_id"]].append(
            (row["producer_id"], row["first_offset"], row["marker_offset"], row["outcome"])
        )
    outcomes = Counter[str]()
    for topic, partition, path in partitions_of(found):
        if topic.startswith("codecs"):
            continue
        plain = plain_data.transactions(path)
        assert rows.pop((topic, partition), []) == plain
        outcomes.update(outcome for *_, outcome in plain)
    assert not rows
    assert outcomes["committed"] > 20
    assert outcomes["aborted"] > 20
    assert outcomes["open"] >= 1


@pytest.mark.parametrize(
    "name",
    [
        TRANSACTIONS,
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("small-4.0", "two-segments-4.0")),
    ],
)
def test_committed_offsets_are_those_of_a_plain_walk(real_data: Path, name: str) -> None:
    found = log_dir(real_data, name)
    rows: dict[int, list[Any]] = defaultdict(list)
    for row in tables(found)["group_offsets_history"]:
        rows[row["offsets_partition"]].append(
            (row["offset"], row["group_id"], row["topic_name"], row["partition_id"], row["committed_offset"])
        )
    for _, partition, path in partitions_of(found, "__consumer_offsets"):
        assert sorted(rows.pop(partition, [])) == sorted(plain_data.group_offsets(path))
    assert not rows


def test_members_of_both_protocols_and_states_of_transactional_ids(real_data: Path) -> None:
    rows = tables(log_dir(real_data, TRANSACTIONS))
    members = rows["group_members_history"]
    assert {row["protocol"] for row in members} == {"classic", "consumer"}
    assert any(row["instance_id"] for row in members if row["protocol"] == "classic")
    assert any(row["assignment"] for row in members if row["event"] == "generation")
    assert any(row["assignment"] for row in members if row["event"] == "assigned")
    states = rows["transaction_states"]
    assert {"Ongoing", "CompleteCommit", "CompleteAbort"} <= {row["state"] for row in states}
    assert all(row["transactional_id"] for row in states)


def test_no_key_and_no_value_of_a_record_is_stored() -> None:
    stored = {field.name for table in DATA_TABLES.values() for field in table.schema}
    assert not stored & {"key", "value", "payload", "metadata", "headers"}
