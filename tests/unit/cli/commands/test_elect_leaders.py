"""`kquorum elect-leaders`, against a broker that keeps the leaders."""

import json

import pytest

from kquorum.cli.main import run
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.administered_cluster import AdministeredCluster

PLACES = {("orders", 0): (11, 12), ("orders", 1): (12, 11), ("other", 0): (13,)}


def cluster_led_by(*leaders: int) -> AdministeredCluster:
    return AdministeredCluster(replicas=PLACES, leaders=dict(zip(PLACES, leaders, strict=True)))


def elect(cluster: AdministeredCluster, *options: str) -> int:
    with cluster.served() as node:
        return run(["elect-leaders", *options, "-b", node.address])


def test_only_partitions_that_need_it_are_elected(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = cluster_led_by(12, 12, 13)
    assert elect(cluster, "--all", "--json") == 0
    assert cluster.leaders["orders", 0] == 11
    assert json.loads(capsys.readouterr().out) == [
        {"topic": "orders", "partition": 0, "leader": 12, "preferred": 11, "outcome": "elected"}
    ]
    assert elect(cluster, "--all") == 0
    assert cluster.asked("ElectLeadersRequest") == []


def test_a_partition_is_named_by_its_topic_and_number(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = cluster_led_by(12, 11, 13)
    assert elect(cluster, "--topic", "orders", "-p", "1") == 0
    assert cluster.leaders["orders", 0] == 12
    assert cluster.leaders["orders", 1] == 12
    assert elect(cluster, "--topic", "orders", "-p", "7") == 1
    assert "topic orders has no partition 7" in capsys.readouterr().err


def test_an_unclean_election_is_for_partitions_without_a_leader(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = cluster_led_by(12, -1, 13)
    assert elect(cluster, "--type", "unclean", "--topic", "orders", "--dry-run") == 0
    assert "none" in capsys.readouterr().out
    assert cluster.leaders["orders", 1] == -1
    assert elect(cluster, "--type", "unclean", "--topic", "orders") == 0
    [asked] = cluster.asked("ElectLeadersRequest")
    assert (asked.election_type, asked.topic_partitions[0].partitions) == (1, (1,))


def test_a_refused_election_fails_and_the_others_are_held(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = cluster_led_by(12, 11, 13)
    cluster.refusals["orders", 0] = (ErrorCode.preferred_leader_not_available, "away")
    assert elect(cluster, "--all", "--json") == 1
    told = capsys.readouterr()
    assert [each["outcome"] for each in json.loads(told.out)] == [
        "away (PREFERRED_LEADER_NOT_AVAILABLE)",
        "elected",
    ]
    assert "orders-0: away" in told.err
    assert cluster.leaders["orders", 1] == 12


@pytest.mark.parametrize(
    "options", [(), ("--all", "--topic", "x"), ("-p", "1", "--all"), ("-t", "a", "-t", "b", "-p", "1")]
)
def test_a_line_that_says_too_little_is_refused(options: tuple[str, ...]) -> None:
    assert run(["elect-leaders", "-b", "127.0.0.1:1", *options]) == 2


def test_many_partitions_go_in_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kquorum.cli.commands.elect_leaders._AT_ONCE", 4)
    places = {("orders", index): (11, 12) for index in range(6)}
    cluster = AdministeredCluster(replicas=places, leaders=dict.fromkeys(places, 12))
    assert elect(cluster, "--all") == 0
    asked = cluster.asked("ElectLeadersRequest")
    assert [len(each.topic_partitions[0].partitions) for each in asked] == [4, 2]
    assert set(cluster.leaders.values()) == {11}
