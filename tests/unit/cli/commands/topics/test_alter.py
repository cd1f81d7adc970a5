"""`kquorum topics alter --partitions`."""

import json

import pytest

from kquorum.cli.main import run
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.administered_cluster import AdministeredCluster


def alter(cluster: AdministeredCluster, *options: str) -> int:
    with cluster.served() as node:
        return run(["topics", "alter", "orders", "-b", node.address, *options])


def cluster_with(partitions: int) -> AdministeredCluster:
    return AdministeredCluster(replicas={("orders", index): (11, 12) for index in range(partitions)})


def test_partitions_are_added(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = cluster_with(2)
    assert alter(cluster, "--partitions", "5") == 0
    assert len(cluster.replicas) == 5
    assert "topic orders got 3 more partitions: 5 instead of 2" in capsys.readouterr().out


def test_a_dry_run_lets_the_controller_check_and_adds_none() -> None:
    cluster = cluster_with(2)
    assert alter(cluster, "-p", "5", "--dry-run") == 0
    assert len(cluster.replicas) == 2
    assert [each.validate_only for each in cluster.asked("CreatePartitionsRequest")] == [True]


def test_as_many_as_there_are_is_a_success(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = cluster_with(2)
    assert alter(cluster, "-p", "2", "--json") == 0
    assert json.loads(capsys.readouterr().out)["altered"] is False
    assert cluster.asked("CreatePartitionsRequest") == []


def test_fewer_are_refused_with_the_number_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert alter(cluster_with(3), "-p", "2") == 1
    assert "topic orders has 3 partitions, and partitions cannot be taken away" in capsys.readouterr().err


def test_a_refusal_is_told_in_the_controllers_words(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = cluster_with(1)
    cluster.refusals["orders"] = (ErrorCode.throttling_quota_exceeded, "too many")
    assert alter(cluster, "-p", "2") == 1
    assert "topic orders was not altered: too many (THROTTLING_QUOTA_EXCEEDED)" in capsys.readouterr().err
