"""What an expression means in DuckDB is what PySpark means by it, NULLs, structs and order included."""

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.column import Column, Window
from kquorum.spark_replay.engine.frame import union_of
from kquorum.spark_replay.engine.on_duckdb import DuckFrame, literal_text


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    connected = duckdb.connect()
    yield connected
    connected.close()


@pytest.fixture
def frame(connection: duckdb.DuckDBPyConnection) -> DuckFrame:
    sql = """(SELECT * FROM (VALUES (1, 'a', [1, 2, 2], 5), (2, NULL, NULL, 6), (3, 'b', [3, NULL], NULL),
                                    (4, 'a', [], 7))
              AS v(id, name, list, number))"""
    return DuckFrame(connection, sql, ["id", "name", "list", "number"])


def values(frame: DuckFrame, column: Column) -> list[Any]:
    return [row["found"] for row in frame.select("id", column.alias("found")).orderBy("id").collect()]


def test_null_sorts_first_ascending_and_last_descending(frame: DuckFrame) -> None:
    assert [row["id"] for row in frame.orderBy("name", "id").collect()] == [2, 1, 4, 3]
    assert [row["id"] for row in frame.orderBy(F.desc("name"), F.desc("id")).collect()] == [3, 4, 1, 2]
    by = Window.orderBy(F.struct("name", "number"))
    assert values(frame, F.lag("id").over(by)) == [2, None, 4, 1]


def test_arrays_keep_their_order_and_their_nulls(frame: DuckFrame) -> None:
    assert values(frame, F.size("list")) == [3, None, 2, 0]
    assert values(frame, F.array_distinct("list")) == [[1, 2], None, [3, None], []]
    assert values(frame, F.array_compact("list")) == [[1, 2, 2], None, [3], []]
    assert values(frame, F.array_except("list", F.array(F.lit(1)))) == [[2], None, [3, None], []]
    assert values(frame, F.array_contains("list", 2)) == [True, None, False, False]
    assert values(frame, F.get("list", 0)) == [1, None, 3, None]
    assert values(frame, F.get("list", 5)) == [None] * 4
    assert values(frame, F.transform("list", lambda each, index: each + index)) == [
        [1, 3, 4],
        None,
        [3, None],
        [],
    ]
    assert values(frame, F.sort_array("list", asc=False)) == [[2, 2, 1], None, [3, None], []]
    assert [row["one"] for row in frame.select(F.explode("list").alias("one")).collect()] == [
        1,
        2,
        2,
        3,
        None,
    ]


def test_structs_compare_field_by_field_and_null_is_the_smallest(frame: DuckFrame) -> None:
    pair = F.struct("name", "number")
    row = frame.agg(F.min(pair).alias("least"), F.max(pair).alias("most")).collect()[0]
    assert (row["least"].asDict(), row["most"].asDict()) == (
        {"name": None, "number": 6},
        {"name": "b", "number": None},
    )
    listed = (
        frame.agg(F.sort_array(F.collect_list(pair)).alias("listed")).select("listed").collect()[0]["listed"]
    )
    assert [tuple(each) for each in listed] == [(None, 6), ("a", 5), ("a", 7), ("b", None)]


def test_aggregates_leave_null_out_as_pyspark_does(frame: DuckFrame) -> None:
    row = frame.agg(
        F.count_if(F.col("number") > 5).alias("above"),
        F.count("*").alias("rows"),
        F.count("number").alias("numbers"),
        F.count_distinct("name", "number").alias("pairs"),
        F.max_by("name", "number").alias("name_of_most"),
        F.max_by("number", "id").alias("number_of_last"),
        F.mode("name").alias("mode"),
        F.median("number").alias("median"),
        F.collect_set("name").alias("names"),
    ).collect()[0]
    assert (row["above"], row["rows"], row["numbers"], row["pairs"]) == (2, 4, 3, 2)
    assert (row["name_of_most"], row["number_of_last"], row["mode"], row["median"]) == ("a", 7, "a", 6)
    assert sorted(row["names"]) == ["a", "b"]
    nothing = frame.where(F.lit(False)).agg(
        F.count_if(F.col("id") > 0).alias("none"), F.sum("id").alias("sum"), F.collect_list("id").alias("ids")
    )
    assert tuple(nothing.collect()[0]) == (0, None, [])


def test_a_column_is_not_taken_for_an_alias_of_the_same_select(frame: DuckFrame) -> None:
    summed = frame.groupBy("name").agg(F.count("*").alias("id"), F.max("id").alias("last"))
    assert sorted((row["name"] or "", row["id"], row["last"]) for row in summed.collect()) == [
        ("", 1, 2),
        ("a", 2, 4),
        ("b", 1, 3),
    ]
    swapped = frame.withColumns({"id": F.col("number"), "number": F.col("id")}).orderBy("number")
    assert [(row["id"], row["number"]) for row in swapped.collect()] == [(5, 1), (6, 2), (None, 3), (7, 4)]


def test_joins_unions_and_shared_queries(frame: DuckFrame) -> None:
    small = frame.select(F.col("id"), F.lit("x").alias("mark")).where(F.col("id") < 3)
    joined = frame.select("id").join(small, ["id"], "left").orderBy("id").collect()
    assert [tuple(row) for row in joined] == [(1, "x"), (2, "x"), (3, None), (4, None)]
    shared = frame.where(F.col("id") > 1).shared()
    both = union_of([shared.select("id"), shared.select("id")])
    assert both.count() == 6
    more = frame.select("id").unionByName(small)
    assert more.columns == ["id", "mark"]
    assert more.where(F.col("mark").isNull()).count() == 4
    with shared.kept() as kept:
        assert kept.count() == 3


def test_only_digits_are_an_int(connection: duckdb.DuckDBPyConnection) -> None:
    texts = ("2", " 3\t", "+4", "1.5", "", "x", "99999999999", "0x1", "-1", "1 2")
    listed = ", ".join(f"({literal_text(text)})" for text in texts)
    frame = DuckFrame(connection, f"(SELECT * FROM (VALUES {listed}) AS v(text))", ["text"])
    found = [row["n"] for row in frame.select(F.try_int("text").alias("n")).collect()]
    assert found == [2, 3, 4, None, None, None, None, None, -1, None]


@given(st.text(max_size=20))
def test_any_text_stays_as_it_is(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    text = text.encode("utf-8", "ignore").decode()
    one = DuckFrame(connection, "(SELECT 1 AS id)", ["id"])
    assert one.select(F.lit(text).alias("found")).collect()[0]["found"] == text
    assert one.select(F.col("id").alias(text or "x")).columns == [text or "x"]


def test_a_condition_has_no_truth_of_its_own() -> None:
    with pytest.raises(TypeError, match="combine conditions by &"):
        bool(F.col("a") == 1)
