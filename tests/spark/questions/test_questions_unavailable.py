"""`unavailable` against a plain computation over the plain replay."""

from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import Audited
from tests.support.spark.plain_unavailable import Interval, unavailable

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.slow]

END_MS = 10**15


def intervals_found(audited: Audited, source: str) -> set[Interval]:
    from kquorum.spark_replay.engine.duckdb_tables import open_in_duckdb
    from kquorum.spark_replay.questions import unavailable as question

    with open_in_duckdb(audited.out) as tables:
        rows: Any = question.unavailable(tables, source, END_MS).collect()
    for row in rows:
        assert row.duration_ms == max((END_MS if row.to_ms is None else row.to_ms) - row.from_ms, 0)
        assert (row.ended == "open") == (row.to_offset is None)
    found = [
        (row.kind, row.topic_id, row.partition_id, row.from_offset, row.from_ms, row.to_offset, row.to_ms)
        for row in rows
    ]
    assert len(found) == len(set(found))
    return set(found)


def check(audited: Audited, source: str, folder: Path) -> set[Interval]:
    expected = unavailable(folder)
    assert intervals_found(audited, source) == expected
    return expected


def test_random_histories_agree_with_a_plain_walk(audited: Audited) -> None:
    found = check(audited, "lawful", audited.root / "lawful")
    kinds = {kind: sum(each[0] == kind for each in found) for kind in ("no_leader", "under_min_isr")}
    assert min(kinds.values()) >= 10, kinds
    assert any(to_offset is None for *_, to_offset, _ in found)


@pytest.mark.slow
@pytest.mark.parametrize("source", ["random", "random-trimmed", "random-formatted"])
def test_long_random_histories_agree_with_a_plain_walk(audited: Audited, source: str) -> None:
    assert len(check(audited, source, audited.root / source)) > 50


@pytest.mark.slow
def test_real_histories_agree_with_a_plain_walk(audited_real: Audited, real_logs: Path) -> None:
    for name in ("three-controllers-1", "six-snapshots", "seven-epochs"):
        assert check(audited_real, f"real/{name}", real_logs / name)


def test_the_config_that_held_then_decides_and_causes_are_named(audited: Audited) -> None:
    from kquorum.spark_replay.engine.duckdb_tables import open_in_duckdb
    from kquorum.spark_replay.questions.unavailable import unavailable as question

    with open_in_duckdb(audited.out) as tables:
        every: Any = question(tables, "questions", END_MS).collect()
    rows = [row for row in every if row.partition_id == 0]
    told = {
        (
            row.kind,
            row.from_offset,
            row.to_offset,
            row.cause,
            row.cause_broker,
            row.fewest_in_sync,
            row.min_isr,
        )
        for row in rows
    }
    assert told == {
        ("under_min_isr", 11, 14, "fencing", 2, 1, 2),
        ("under_min_isr", 17, None, "fencing", 1, 1, 2),
        ("no_leader", 22, None, "fencing", 2, 1, None),
    }
