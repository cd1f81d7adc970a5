"""Plans in the format of Kafka's tools."""

import json
from pathlib import Path

import pytest

from kquorum.cli.commands.reassign.plan_file import Target, read_plan, write_plan
from kquorum.cli.failures import CliError


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_plan(path, {("orders", 3): (1, 2)})
    assert read_plan(path) == {("orders", 3): Target((1, 2), (None, None))}
    with pytest.raises(CliError, match="is not overwritten"):
        write_plan(path, {})


def test_directories_may_be_left_out_or_named(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    entries = [
        {"topic": "a", "partition": 0, "replicas": [1]},
        {"topic": "b", "partition": 0, "replicas": [1, 2], "log_dirs": ["/disk", "any"]},
    ]
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    assert read_plan(path) == {("a", 0): Target((1,), (None,)), ("b", 0): Target((1, 2), ("/disk", None))}


A = {"topic": "a", "partition": 0, "replicas": [1]}


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ([], 'no "version": 1'),
        ({"version": 2}, 'no "version": 1'),
        ({"version": 1, "partitions": []}, 'no list "partitions"'),
        ({"version": 1, "partitions": [A | {"topic": "\ud800"}]}, 'entry 0 of its partitions has no "topic"'),
        ({"version": 1, "partitions": [A | {"log_dirs": ["/\ud800"]}]}, '"log_dirs" of a-0'),
        ({"version": 1, "partitions": [1]}, "entry 0 of its partitions is no object"),
        ({"version": 1, "partitions": [A | {"topic": 7}]}, 'no "topic"'),
        ({"version": 1, "partitions": [A | {"partition": True}]}, 'no "partition"'),
        ({"version": 1, "partitions": [A | {"partition": -1}]}, 'no "partition"'),
        ({"version": 1, "partitions": [A | {"replicas": []}]}, 'a-0 has no "replicas"'),
        ({"version": 1, "partitions": [A | {"replicas": [1, 1]}]}, "a-0 has a broker twice"),
        ({"version": 1, "partitions": [A | {"log_dirs": []}]}, '"log_dirs" of a-0'),
        ({"version": 1, "partitions": [A, A]}, "a-0 is named twice"),
    ],
)
def test_what_is_no_plan_is_refused_with_its_place(document: object, told: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    with pytest.raises(CliError) as refused:
        read_plan(path)
    assert told in str(refused.value)
    assert str(path) in str(refused.value)
