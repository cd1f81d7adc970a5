"""`kquorum brokers unregister`."""

import json

import pytest

from kquorum.cli.main import run
from tests.support.administered_cluster import AdministeredCluster


def unregister(cluster: AdministeredCluster, *options: str) -> int:
    with cluster.served() as node:
        return run(["brokers", "unregister", *options, "-b", node.address])


def test_a_fenced_broker_is_unregistered_once(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = AdministeredCluster(fenced={13})
    assert unregister(cluster, "13", "--dry-run") == 0
    assert 13 in cluster.brokers
    assert unregister(cluster, "13") == 0
    assert 13 not in cluster.brokers
    assert "broker 13 was unregistered" in capsys.readouterr().out
    assert unregister(cluster, "13", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"broker_id": 13, "unregistered": False}


def test_a_broker_that_lives_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = AdministeredCluster()
    assert unregister(cluster, "13") == 1
    assert "broker 13 is not fenced, and would register again" in capsys.readouterr().err
    assert 13 in cluster.brokers


def test_an_option_in_front_of_the_subcommand_is_not_lost(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["brokers", "-b", "127.0.0.1:1", "unregister", "13"]) == 2
    assert "--bootstrap-server goes behind the subcommand" in capsys.readouterr().err
