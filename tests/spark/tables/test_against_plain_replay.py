"""The tables against an independent replay in plain Python, on random and on real logs."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import RANDOM_SEED, Audited
from tests.support.spark.plain_changes import audit_notes, isr_changes, leader_changes
from tests.support.spark.plain_events import log_events
from tests.support.spark.plain_replay import replay
from tests.support.spark.plain_scanned import batches, records
from tests.support.spark.plain_tables import (
    acls_history,
    brokers,
    configs_history,
    features_history,
    quorum_epochs,
    topics_history,
    voters_history,
)

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

PLAIN: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "quorum_epochs": quorum_epochs,
    "voters_history": voters_history,
    "features_history": features_history,
    "brokers_history": lambda folder: brokers(log_events(folder)).intervals.rows,
    "topics_history": topics_history,
    "partition_history": lambda folder: replay(folder).history,
    "leader_changes": leader_changes,
    "isr_changes": isr_changes,
    "configs_history": configs_history,
    "acls_history": acls_history,
    "audit_notes": audit_notes,
}
RANDOM = ("random", "random-trimmed", "random-formatted")
BROKER_COLUMNS = ("broker_id", "registered", "broker_epoch", "fenced", "in_controlled_shutdown")


def columns_of(table: str) -> list[str]:
    """Every column but the source, and the timestamps which repeat milliseconds."""
    from pyspark.sql.types import TimestampType

    from kquorum.spark_replay.tables.building.registry import TABLES

    return [
        field.name
        for field in TABLES[table].schema.fields
        if field.name != "source" and not isinstance(field.dataType, TimestampType)
    ]


def as_text(rows: Iterable[dict[str, Any]], columns: list[str]) -> list[str]:
    """Rows in an order of their own; a column that a row lacks is an error."""
    return sorted(json.dumps([row[name] for name in columns]) for row in rows)


def check_table(audited: Audited, table: str, source: str, folder: Path) -> int:
    """Row for row equal; the number of rows."""
    columns = columns_of(table)
    expected = as_text(PLAIN[table](folder), columns)
    assert as_text(audited.table(table, source).to_pylist(), columns) == expected
    return len(expected)


def check_brokers(audited: Audited, source: str, folder: Path) -> None:
    expected = [
        (broker_id, *(broker[name] for name in BROKER_COLUMNS[1:]))
        for broker_id, broker in sorted(replay(folder).brokers.items())
    ]
    assert audited.rows("brokers", source, *BROKER_COLUMNS, order=("broker_id",)) == expected


@pytest.mark.parametrize("table", PLAIN)
@pytest.mark.parametrize("source", RANDOM)
def test_random_histories_are_equal_row_for_row(audited: Audited, source: str, table: str) -> None:
    rows = check_table(audited, table, source, audited.root / source)
    assert rows > 0, f"seed {RANDOM_SEED} makes a history without {table}"


@pytest.mark.parametrize("table", PLAIN)
@pytest.mark.parametrize("source", ["sample", "trimmed"])
def test_samples_are_equal_row_for_row(audited: Audited, source: str, table: str) -> None:
    check_table(audited, table, source, audited.root / source)


@pytest.mark.parametrize("source", RANDOM)
def test_random_records_and_batches_are_equal_row_for_row(audited: Audited, source: str) -> None:
    for table, plain in (("records", records), ("batches", batches)):
        columns, expected = columns_of(table), plain(audited.root / source)
        assert as_text(audited.table(table, source).to_pylist(), columns) == as_text(expected, columns)
        assert audited.table("damage", source).num_rows == 0


@pytest.mark.parametrize("source", RANDOM)
def test_the_brokers_of_random_histories_end_equal(audited: Audited, source: str) -> None:
    check_brokers(audited, source, audited.root / source)


def test_the_random_history_has_every_kind_of_event(audited: Audited) -> None:
    def kinds(table: str, column: str) -> set[Any]:
        return {kind for source, kind in audited.counts(table, "source", column) if source == "random"}

    partition_records = {"PartitionRecord", "PartitionChangeRecord", "ClearElrRecord"}
    assert kinds("partition_history", "record_type") == partition_records
    types = {"AbortTransactionRecord", "EndTransactionRecord", "RemoveTopicRecord", "KRaftVoters"}
    assert types <= kinds("records", "record_type")
    causes = {"unclean", "fencing", "shutdown", "unregistration", "restart", "directory_failure", "unfencing"}
    assert kinds("leader_changes", "cause") == causes | {"reassignment", "recovery", "preferred", "other"}
    assert kinds("isr_changes", "kind") == {"shrink", "expand", "replace"}
    assert kinds("audit_notes", "chain") == {"first", "linked", "broken", None}
    assert kinds("features_history", "change") == {"set", "upgraded", "downgraded"}
    assert kinds("topics_history", "ended_by") == {"partitions_added", "removed", None}
    assert kinds("configs_history", "ended_by") == {"replaced", "deleted", "topic_removed", None}
    assert kinds("acls_history", "ended_by") == {"replaced", "removed", None}
    assert kinds("voters_history", "record_type") == {"KRaftVoters", "LeaderChange"}
    changes = {"registered", "fenced", "unfenced", "controlled_shutdown", "directories"}
    assert kinds("brokers_history", "change") == changes
    assert kinds("brokers_history", "ended_by") == changes | {"unregistered", None}


def test_the_plain_replay_sees_a_wrong_row(audited: Audited) -> None:
    columns = columns_of("partition_history")
    replayed = replay(audited.root / "random").history
    replayed[-1]["leader_epoch"] += 1
    found = as_text(audited.table("partition_history", "random").to_pylist(), columns)
    assert len(set(as_text(replayed, columns)) - set(found)) == 1


def real_sources(real_logs: Path) -> list[str]:
    return sorted(path.parent.name for path in real_logs.glob("*/__cluster_metadata-0"))


@pytest.mark.slow
def test_real_histories_are_equal_row_for_row(audited_real: Audited, real_logs: Path) -> None:
    rows = Counter[str]()
    for name in real_sources(real_logs):
        for table in PLAIN:
            rows[table] += check_table(audited_real, table, f"real/{name}", real_logs / name)
        check_brokers(audited_real, f"real/{name}", real_logs / name)
    assert rows["partition_history"] > 1000
    assert {table for table in PLAIN if not rows[table]} <= {"audit_notes", "configs_history", "acls_history"}


@pytest.mark.slow
def test_real_records_are_counted_as_an_independent_decoder_counted_them(
    audited_real: Audited, real_logs: Path
) -> None:
    expected = json.loads((real_logs / "expected.json").read_text())
    found: dict[tuple[str, str], Counter[str]] = {}
    counts = audited_real.counts("records", "source", "file", "is_control", "record_type")
    for (source, file, is_control, record_type), count in counts.items():
        if source.startswith("real/"):
            found.setdefault((source, file), Counter())[("ctl:" if is_control else "") + record_type] += count
    names = {name: (f"real/{Path(name).parts[0]}", Path(name).name) for name in expected}
    assert found == {names[name]: facts["types"] for name, facts in expected.items()}
    batches = audited_real.counts("batches", "source", "file")
    assert {place: batches[place] for place in names.values()} == {
        names[name]: facts["batches"] for name, facts in expected.items()
    }


@pytest.mark.slow
def test_real_epochs_are_those_of_the_decoder_and_agree_between_voters(
    audited_real: Audited, real_logs: Path
) -> None:
    expected = json.loads((real_logs / "expected.json").read_text())
    for name in real_sources(real_logs):
        (facts,) = (
            facts
            for path, facts in expected.items()
            if path.startswith(f"{name}/__") and path.endswith(".log")
        )
        epochs = audited_real.rows("quorum_epochs", f"real/{name}", "epoch", "leader_id", order=("epoch",))
        assert len(epochs) == facts["epochs"]
        assert all(leader is not None for _, leader in epochs)


@pytest.mark.slow
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
