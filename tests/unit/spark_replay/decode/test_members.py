"""The files beside a log, whatever lies there under their names."""

import os
from pathlib import Path

import pytest

from kquorum.spark_replay.decode.members import LARGEST_BYTES, Member, member_of


def test_what_kafka_writes_is_read(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("#x\nversion=1\nnode.id=3\ncluster.id=abc\ndirectory.id=d\n")
    (tmp_path / "quorum-state").write_text('{"leaderEpoch": 7, "leaderId": 2}')
    assert member_of(tmp_path) == Member(
        cluster_id="abc", node_id=3, directory_id="d", leader_epoch=7, leader_id=2
    )


@pytest.mark.parametrize(
    ("properties", "state"),
    [
        ("node.id=" + "9" * 5000, '{"leaderEpoch": ' + "9" * 5000 + "}"),
        ("node.id=4294967296", '{"leaderId": 2147483648}'),
        ("cluster.id=" + "x" * 5000, "[" * 200_000),
        ("cluster.id=x\n" + "#" * LARGEST_BYTES, '{"clusterId": "x"}' + " " * LARGEST_BYTES),
    ],
)
def test_what_cannot_be_is_as_if_it_were_missing(tmp_path: Path, properties: str, state: str) -> None:
    (tmp_path / "meta.properties").write_text(properties)
    (tmp_path / "quorum-state").write_text(state)
    assert member_of(tmp_path) == Member()


def test_pipes_and_folders_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "meta.properties")
    (tmp_path / "quorum-state").mkdir()
    assert member_of(tmp_path) == Member()
