"""A few rounds of brokers killed under load, and proof that the judgment sees what it is for. By hand:
python -m tests.kill_loop.records."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.kill_loop.records import Outcome, RecordRounds
from tests.support.record_load import differing_logs, number_of, value_of, violations

ROUNDS = 4


@pytest.mark.slow
def test_killed_brokers_lose_and_double_no_record(tmp_path: Path) -> None:
    outcome = RecordRounds(tmp_path, ROUNDS, 7, print).run()
    assert outcome.violations == []
    assert outcome.rounds == ROUNDS
    assert outcome.read >= outcome.acknowledged > 1_000


def test_an_outcome_is_told_as_json() -> None:
    outcome = Outcome(rounds=3, kills=Counter({"the leader": 2, "one": 1}), violations=["at the end: lost"])
    told = json.loads(json.dumps(outcome.as_json()))
    assert told["kills"] == {"the leader": 2, "one": 1}
    assert told["violations"] == ["at the end: lost"]


def test_values_name_their_numbers() -> None:
    assert [number_of(value_of(number)) for number in (0, 7, 499, 500, 12_345)] == [0, 7, 499, 500, 12_345]
    assert number_of(value_of(499)[:-1]) == -1


@pytest.mark.parametrize(
    ("acknowledged", "read", "said"),
    [
        ({0: 0, 1: 3}, {0: 0}, "1 acknowledged records are lost, the first at 1"),
        ({0: 0, 1: 3}, {0: 0, 1: 6}, "1 offsets have another record, the first 1"),
        ({0: 0}, {0: 0, 1: -1}, "1 records were spoiled"),
        ({0: 0}, {0: 0, 1: 0}, "1 records are there twice"),
        ({0: 0}, {0: 0, 1: 6, 2: 3}, "records are out of their order"),
        ({0: 0}, {0: 0, 1: 3, 2: 6}, None),
    ],
)
def test_what_is_wrong_with_records_is_said(
    acknowledged: dict[int, int], read: dict[int, int], said: str | None
) -> None:
    found = violations([acknowledged], [read])
    assert found[:1] == ([] if said is None else [f"partition 0: {said}"])


def test_logs_that_differ_are_said(tmp_path: Path) -> None:
    for name, content in (("a", b"12"), ("b", b"12"), ("c", b"1")):
        (tmp_path / name / "t-0").mkdir(parents=True)
        (tmp_path / name / "t-0" / f"{0:020}.log").write_bytes(content)
    assert differing_logs("t", 1, [tmp_path / "a", tmp_path / "b"]) == []
    folders = [tmp_path / name for name in "abc"]
    assert differing_logs("t", 1, folders) == ["t-0 differs: [2, 2, 1] bytes"]
