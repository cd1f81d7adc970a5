"""The tables against an independent replay in plain Python, on random and on real logs."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import RANDOM_SEED, Audited
from tests.spark.plain_replay import replay

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

COLUMNS = (
    *(
        "topic_id",
        "topic_name",
        "partition_id",
        "leader",
        "leader_epoch",
        "partition_epoch",
        "replicas",
        "isr",
    ),
    *("removing_replicas", "adding_replicas", "eligible_leader_replicas", "last_known_elr"),
    *(
        "leader_recovery_state",
        "directories",
        "valid_from_offset",
        "valid_from_ms",
        "valid_to_offset",
        "valid_to_ms",
    ),
)
ORDER = ("topic_id", "partition_id", "valid_from_offset")
BROKER_COLUMNS = ("broker_id", "registered", "broker_epoch", "fenced", "in_controlled_shutdown")


def check_history(audited: Audited, source: str, folder: Path) -> int:
    """Row for row equal; the number of rows."""
    expected = [tuple(row[name] for name in COLUMNS) for row in replay(folder).history]
    found = audited.rows("partition_history", source, *COLUMNS, order=ORDER)
    assert found == sorted(expected, key=lambda row: (row[0].encode(), row[2], row[14]))
    return len(found)


def check_brokers(audited: Audited, source: str, folder: Path) -> None:
    expected = [
        (broker_id, *(broker[name] for name in BROKER_COLUMNS[1:]))
        for broker_id, broker in sorted(replay(folder).brokers.items())
    ]
    assert audited.rows("brokers", source, *BROKER_COLUMNS, order=("broker_id",)) == expected


def test_random_histories_are_equal_row_for_row(audited: Audited) -> None:
    rows = check_history(audited, "random", audited.root / "random")
    assert rows > 500, f"seed {RANDOM_SEED} makes too small a history to prove anything"


def test_the_random_history_has_every_kind_of_event(audited: Audited) -> None:
    kinds = {
        kind
        for source, kind in audited.counts("partition_history", "source", "record_type")
        if source == "random"
    }
    assert kinds == {"PartitionRecord", "PartitionChangeRecord", "ClearElrRecord"}
    types = {
        kind for source, kind in audited.counts("records", "source", "record_type") if source == "random"
    }
    assert {"AbortTransactionRecord", "EndTransactionRecord", "RemoveTopicRecord"} <= types


def test_the_plain_replay_sees_a_wrong_row(audited: Audited) -> None:
    replayed = replay(audited.root / "random").history
    replayed[-1]["leader_epoch"] += 1
    expected = {tuple(map(str, (row[name] for name in COLUMNS))) for row in replayed}
    found = {
        tuple(map(str, row)) for row in audited.rows("partition_history", "random", *COLUMNS, order=ORDER)
    }
    assert len(expected - found) == 1


def real_sources(real_logs: Path) -> list[str]:
    return sorted(path.parent.name for path in real_logs.glob("*/__cluster_metadata-0"))


def test_real_histories_are_equal_row_for_row(audited: Audited, real_logs: Path) -> None:
    rows = {
        name: check_history(audited, f"real/{name}", real_logs / name) for name in real_sources(real_logs)
    }
    assert sum(rows.values()) > 1000
    for name in rows:
        check_brokers(audited, f"real/{name}", real_logs / name)


def test_real_records_are_counted_as_an_independent_decoder_counted_them(
    audited: Audited, real_logs: Path
) -> None:
    expected = json.loads((real_logs / "expected.json").read_text())
    found: dict[tuple[str, str], Counter[str]] = {}
    counts = audited.counts("records", "source", "file", "is_control", "record_type")
    for (source, file, is_control, record_type), count in counts.items():
        if source.startswith("real/"):
            found.setdefault((source, file), Counter())[("ctl:" if is_control else "") + record_type] += count
    names = {name: (f"real/{Path(name).parts[0]}", Path(name).name) for name in expected}
    assert found == {names[name]: facts["types"] for name, facts in expected.items()}
    batches = audited.counts("batches", "source", "file")
    assert {place: batches[place] for place in names.values()} == {
        names[name]: facts["batches"] for name, facts in expected.items()
    }


def test_real_epochs_are_those_of_the_decoder_and_agree_between_voters(
    audited: Audited, real_logs: Path
) -> None:
    expected = json.loads((real_logs / "expected.json").read_text())
    for name in real_sources(real_logs):
        (facts,) = (
            facts
            for path, facts in expected.items()
            if path.startswith(f"{name}/__") and path.endswith(".log")
        )
        epochs = audited.rows("quorum_epochs", f"real/{name}", "epoch", "leader_id", order=("epoch",))
        assert len(epochs) == facts["epochs"]
        assert all(leader is not None for _, leader in epochs)


def test_the_data_source_gives_the_same_rows_in_one_piece_as_in_many(spark: Any, audited: Audited) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    def read(split_bytes: int) -> Any:
        reader = spark.read.format("kraft_log").option("rows", "all").option("split_bytes", str(split_bytes))
        return reader.load(str(audited.root / "random"))

    def facts(frame: Any) -> list[tuple[Any, ...]]:
        summed = frame.groupBy("row_kind").agg(F.count("*"), F.sum("offset"), F.sum("base_offset"))
        return sorted(map(tuple, summed.collect()))

    whole, cut = read(1 << 30), read(16 * 1024)
    assert whole.rdd.getNumPartitions() == 3
    assert cut.rdd.getNumPartitions() > 6
    assert facts(whole) == facts(cut)
