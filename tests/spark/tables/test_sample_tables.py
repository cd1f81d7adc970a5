"""The tables of small logs written by hand, row by row."""

import json

import pytest

from tests.spark.conftest import Audited
from tests.support.spark.leader_history import CAUSES

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ORDERS, COMMITTED, OLDER = "AAAAAAAAAAAAAAAAAAAD6Q", "AAAAAAAAAAAAAAAAAAAD6w", "AAAAAAAAAAAAAAAAAAAD7A"


def test_every_record_is_in_the_table_whatever_became_of_it(audited: Audited) -> None:
    rows = audited.rows("records", "sample", "offset", "record_type", "problem", order=("offset",))
    assert [offset for offset, _, _ in rows] == list(range(29))
    assert [(offset, kind) for offset, kind, problem in rows if problem] == [
        (20, "Unknown"),
        (21, "TopicRecord"),
        (22, "UserScramCredentialRecord"),
    ]


def test_a_record_keeps_its_fields_as_json_and_an_unknown_one_its_bytes(audited: Audited) -> None:
    columns = ("offset", "payload", "raw", "timestamp_ms", "leader_epoch", "broker_id")
    rows = {row[0]: row[1:] for row in audited.rows("records", "sample", *columns, order=("offset",))}
    assert rows[5] == ('{"name":"orders","topic_id":"AAAAAAAAAAAAAAAAAAAD6Q"}', None, 2000, 1, None)
    assert rows[20] == (None, bytes.fromhex("0163000707"), 7000, 1, None)
    assert rows[26] == ('{"id":1,"epoch":1}', None, 9100, 2, 1)


def test_no_secret_is_in_the_tables(audited: Audited) -> None:
    rows = audited.rows("records", "sample", "payload", "raw", order=("offset",))
    assert sum("redacted" in (payload or "") for payload, _ in rows) == 2
    assert not [row for row in rows if "hunter2" in (row[0] or "") or b"secret" in (row[1] or b"")]


def test_batches_have_their_places(audited: Audited) -> None:
    rows = audited.rows(
        "batches",
        "sample",
        "base_offset",
        "last_offset",
        "record_count",
        "codec",
        "is_control",
        order=("base_offset",),
    )
    assert rows[:4] == [
        (0, 0, 1, "none", True),
        (1, 2, 2, "none", False),
        (3, 4, 2, "none", False),
        (5, 7, 3, "lz4", False),
    ]
    assert len(rows) == 15


def test_a_torn_tail_is_in_the_damage_table(audited: Audited) -> None:
    columns = ("file", "offset", "kind")
    assert audited.rows("damage", "sample", *columns, order=("position",)) == [
        ("00000000000000000023.log", 29, "torn")
    ]


def test_missing_offsets_between_segments_are_in_the_damage_table(audited: Audited) -> None:
    rows = audited.rows("damage", "gap", "file", "position", "offset", "kind", "reason", order=("position",))
    assert rows == [
        (
            *("00000000000000000005.log", 0, 2, "gap"),
            "batch begins at offset 5; 2 was expected after 00000000000000000000.log",
        )
    ]


def test_sound_logs_have_no_damage(audited: Audited) -> None:
    damaged = {source for (source,) in audited.counts("damage", "source")}
    assert {source for source in damaged if not source.startswith("planted/")} == {"sample", "gap"}


def test_partition_history_follows_every_change_and_leaves_out_the_aborted_one(audited: Audited) -> None:
    columns = ("topic_name", "partition_id", "leader", "leader_epoch", "partition_epoch", "isr")
    places = ("valid_from_offset", "valid_from_ms", "valid_to_offset", "valid_to_ms", "quorum_epoch")
    rows = audited.rows(
        "partition_history",
        "sample",
        *columns,
        *places,
        order=("topic_name", "partition_id", "valid_from_offset"),
    )
    assert rows == [
        ("committed", 0, 1, 0, 0, [1], 18, 6000, None, None, 1),
        ("orders", 0, 1, 0, 0, [1, 2], 6, 2000, 8, 3000, 1),
        ("orders", 0, 2, 1, 1, [2], 8, 3000, 24, 8100, 1),
        ("orders", 0, 1, 2, 2, [1], 24, 8100, 25, 9000, 2),
        ("orders", 1, 2, 0, 0, [2, 1], 7, 2000, 25, 9000, 1),
    ]


def test_a_trimmed_log_begins_with_the_state_of_its_snapshot(audited: Audited) -> None:
    columns = ("topic_id", "partition_id", "isr", "partition_epoch", "valid_from_offset", "valid_from_ms")
    rows = audited.rows("partition_history", "trimmed", *columns, order=("valid_from_offset",))
    assert rows == [(OLDER, 0, [1, 2], 0, 99, 50_000), (OLDER, 0, [1], 1, 101, 61_000)]


def test_leader_changes_name_the_controller_and_tell_what_was_unclean(audited: Audited) -> None:
    columns = ("offset", "topic_id", "partition_id", "old_leader", "new_leader", "leader_epoch", "unclean")
    rows = audited.rows(
        "leader_changes", "sample", *columns, "quorum_epoch", "controller_id", order=("offset",)
    )
    assert rows == [
        (8, ORDERS, 0, 1, 2, 1, False, 1, 1),
        (24, ORDERS, 0, 2, 1, 2, True, 2, 2),
    ]


def test_quorum_epochs_have_their_leader_and_their_span(audited: Audited) -> None:
    columns = ("epoch", "leader_id", "voters", "granting_voters", "start_offset", "start_ms", "end_offset")
    rows = audited.rows("quorum_epochs", "sample", *columns, "end_ms", "records", order=("epoch",))
    assert rows == [
        (1, 1, [1, 2, 3], [1, 2], 0, 1000, 23, 8000, 23),
        (2, 2, [1, 2, 3], [2, 3], 23, 8000, None, None, 6),
    ]


def test_topics_have_a_beginning_and_an_end(audited: Audited) -> None:
    columns = ("topic_name", "topic_id", "partitions", "replication_factor", "from_snapshot")
    places = ("valid_from_offset", "valid_to_offset", "valid_to_ms")
    sample = audited.rows("topics", "sample", *columns, *places, order=("valid_from_offset",))
    assert sample == [
        ("orders", ORDERS, 2, 2, False, 5, 25, 9000),
        ("committed", COMMITTED, 1, 1, False, 17, None, None),
    ]
    assert audited.rows("topics", "trimmed", *columns, *places, order=("topic_id",)) == [
        ("older", OLDER, 1, 2, True, 99, None, None)
    ]


def test_what_a_transaction_wrote_that_is_still_open_does_not_count(audited: Audited) -> None:
    assert audited.rows("topics", "gap", "topic_name", order=("topic_name",)) == []


def test_brokers_stand_as_the_log_leaves_them(audited: Audited) -> None:
    columns = ("broker_id", "registered", "broker_epoch", "fenced", "registrations", "fencings")
    places = ("first_registered_offset", "last_registered_ms", "last_change_offset")
    rows = audited.rows("brokers", "sample", *columns, *places, order=("broker_id",))
    assert rows == [(1, True, 1, True, 1, 1, 1, 1100, 26), (2, False, 2, False, 1, 0, 2, 1100, 27)]


def test_a_brokers_listeners_are_readable(audited: Audited) -> None:
    ((points, log_dirs),) = audited.rows("brokers", "trimmed", "end_points", "log_dirs", order=("broker_id",))
    assert points == [{"name": "PLAINTEXT", "host": "b1", "port": 9092, "security_protocol": 0}]
    assert log_dirs == ["AAAAAAAAAAAAAAAAAAATiA"]


def test_brokers_history_has_every_interval(audited: Audited) -> None:
    columns = ("broker_id", "change", "fenced", "broker_epoch", "valid_from_offset", "valid_to_offset")
    rows = audited.rows(
        "brokers_history", "sample", *columns, "ended_by", order=("broker_id", "valid_from_offset")
    )
    assert rows == [
        (1, "registered", True, 1, 1, 3, "unfenced"),
        (1, "unfenced", False, 1, 3, 26, "fenced"),
        (1, "fenced", True, 1, 26, None, None),
        (2, "registered", True, 2, 2, 4, "unfenced"),
        (2, "unfenced", False, 2, 4, 27, "unregistered"),
    ]


def test_topics_history_counts_partitions(audited: Audited) -> None:
    columns = ("topic_name", "change", "partitions", "added_partitions", "replication_factor")
    places = ("valid_from_offset", "valid_to_offset", "ended_by")
    assert audited.rows("topics_history", "sample", *columns, *places, order=("valid_from_offset",)) == [
        ("orders", "created", 2, 2, 2, 5, 25, "removed"),
        ("committed", "created", 1, 1, 1, 17, None, None),
    ]
    led = audited.rows("topics_history", "leaders", *columns, *places, order=("valid_from_offset",))
    assert led == [
        ("led", "created", 1, 1, 3, 7, 9, "partitions_added"),
        ("led", "partitions_added", 3, 2, 2, 9, None, None),
    ]


def test_isr_changes_say_who_left_and_who_joined(audited: Audited) -> None:
    columns = ("offset", "kind", "left_isr", "joined_isr", "new_isr", "under_replicated", "controller_id")
    assert audited.rows("isr_changes", "sample", *columns, order=("offset",)) == [
        (8, "shrink", [1], [], [2], True, 1),
        (24, "replace", [2], [1], [1], True, 2),
    ]


def test_leader_changes_have_their_causes(audited: Audited) -> None:
    columns = ("offset", "old_leader", "new_leader", "unclean", "cause", "cause_offset")
    assert audited.rows("leader_changes", "leaders", *columns, order=("offset",)) == CAUSES


def test_configs_history_holds_no_secret(audited: Audited) -> None:
    columns = ("resource_type", "resource_name", "name", "value", "is_redacted", "valid_from_offset")
    assert audited.rows("configs_history", "sample", *columns, order=("valid_from_offset",)) == [
        ("broker", "1", "ssl.key.password", "[redacted]", True, 14)
    ]


def test_a_static_quorum_has_the_voters_of_its_elections(audited: Audited) -> None:
    columns = ("voter_ids", "joined", "left", "record_type", "valid_from_offset", "valid_to_offset")
    rows = audited.rows("voters_history", "sample", *columns, order=("valid_from_offset",))
    assert rows == [([1, 2, 3], None, None, "LeaderChange", 0, None)]


def test_formatting_leaves_the_first_voters_and_features(audited: Audited) -> None:
    columns = ("voter_ids", "record_type", "valid_from_offset")
    first, *_ = audited.rows("voters_history", "random-formatted", *columns, order=("valid_from_offset",))
    assert first == ([1, 2, 3], "KRaftVoters", -1)
    features = audited.rows(
        "features_history",
        "random-formatted",
        *("feature", "level", "previous_level", "change", "valid_from_offset"),
        order=("valid_from_offset", "feature"),
    )
    assert features[:2] == [
        ("kraft.version", 1, None, "set", -1),
        ("metadata.version", 3, None, "set", -1),
    ]


def test_every_column_of_every_table_says_what_it_means(audited: Audited) -> None:
    from kquorum.spark_replay.tables.building.registry import TABLES

    assert set(audited.written) == set(TABLES)
    for name, declared in TABLES.items():
        schema = declared.schema
        table = audited.table(name)
        kept = json.loads(table.schema.metadata[b"org.apache.spark.sql.parquet.row.metadata"])
        assert [field["name"] for field in kept["fields"]] == schema.fieldNames()
        assert all(field["metadata"].get("comment") for field in kept["fields"]), name
        assert table.num_rows == audited.written[name]
