"""A transaction whose End was lost does not take the rest of the log with it."""

import pytest
from pyspark.sql import SparkSession

from kquorum.spark_replay.tables.building.state import LAST_OFFSET, uncommitted_transactions

BEGIN, END, ABORT = "BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"
LEADER = "LeaderChange"


@pytest.mark.slow
def test_a_transaction_reaches_no_further_than_it_could(spark: SparkSession) -> None:
    cases = {
        "ended": ([(1, BEGIN), (2, LEADER), (5, END)], [3]),
        "aborted": ([(1, BEGIN), (3, LEADER), (4, ABORT)], [2]),
        "open": ([(0, END), (1, BEGIN)], []),
        "twice": ([(1, BEGIN), (6, BEGIN), (7, END)], []),
        "next leader": ([(1, BEGIN), (6, LEADER), (9, LEADER), (12, BEGIN), (13, END)], []),
        "damage": ([(1, BEGIN), (6, LEADER)], [0, 4, 5]),
        "damage at the Begin": ([(1, BEGIN)], [1]),
    }
    records = [("log", name, place, kind) for name, (told, _) in cases.items() for place, kind in told]
    damage = [("log", name, place) for name, (_, places) in cases.items() for place in (*places, None)]
    gone = uncommitted_transactions(
        spark.createDataFrame(records, "file_kind string, source string, offset long, record_type string"),
        spark.createDataFrame(damage, "file_kind string, source string, offset long"),
    )
    assert {row["source"]: (row["begin_offset"], row["end_offset"]) for row in gone.collect()} == {
        "aborted": (1, 4),
        "open": (1, LAST_OFFSET),
        "twice": (1, 5),
        "next leader": (1, 5),
        "damage": (1, 3),
        "damage at the Begin": (1, LAST_OFFSET),
    }
