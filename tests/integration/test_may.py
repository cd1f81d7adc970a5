"""`kquorum may` asked of real processes, and what comes of acting upon its answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.failures import ExitStatus
from kquorum.cli.main import run
from kquorum.cli.processes import wait_until
from tests.support.cluster import Cluster


def ask(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], *arguments: str, timeout_ms: int = 20_000
) -> tuple[int, dict[str, Any]]:
    """The exit status and what --json says."""
    options = ["-c", str(cluster.config_path), "--json", "--timeout-ms", str(timeout_ms)]
    capsys.readouterr()
    status = run(["may", *arguments, *options])
    text = capsys.readouterr().out
    return status, json.loads(text) if text else {}


def whys(answer: dict[str, Any]) -> list[str]:
    return [reason["why"] for reason in answer["reasons"]]


def is_yes(cluster: Cluster, capsys: pytest.CaptureFixture[str], *arguments: str) -> bool:
    return ask(cluster, capsys, *arguments)[0] == ExitStatus.OK


@pytest.mark.slow
def test_the_answers_of_a_running_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A whole cluster lets one node go; a killed one counts from then on, before any controller has fenced it."""
    with Cluster(tmp_path / "cluster", brokers=3, with_grpc=True) as cluster:
        cluster.start()
        brokers = ",".join(cluster.address(each) for each in cluster.broker_ids)
        create = ["topics", "create", "orders", "--partitions", "2", "--replication-factor", "3"]
        assert run([*create, "--topic-config", "min.insync.replicas=2", "-b", brokers]) == ExitStatus.OK
        create = ["topics", "create", "alone", "--partitions", "1", "--replication-factor", "1"]
        assert run([*create, "-b", brokers]) == ExitStatus.OK
        assert wait_until(lambda: is_yes(cluster, capsys, "stop", "1"), 60)
        offline = ("--may-be-offline", "alone")
        assert wait_until(lambda: is_yes(cluster, capsys, "stop", "102", *offline), 60)
        status, answer = ask(cluster, capsys, "stop", "1", "2")
        assert (status, whys(answer)) == (ExitStatus.FAILED, ["majority"])
        status, answer = ask(cluster, capsys, "stop", "101", "102", *offline)
        assert (status, whys(answer)) == (ExitStatus.FAILED, ["below min.insync"])
        owners = [each for each in ("101", "102", "103") if not is_yes(cluster, capsys, "stop", each)]
        assert len(owners) == 1  # which has the topic without another replica
        status, answer = ask(cluster, capsys, "format", owners[0], *offline)
        assert (status, whys(answer)) == (ExitStatus.FAILED, ["last copy"])
        assert whys(ask(cluster, capsys, "remove", "101")[1]) == ["has replicas"]
        assert whys(ask(cluster, capsys, "remove", "3")[1]) == ["static voter"]

        # A yes is acted upon, and a yes of the next node comes when the first is back.
        assert cluster.terminate(102) == 0
        assert whys(ask(cluster, capsys, "stop", "103", *offline)[1])[0] == "below min.insync"
        cluster.start_node(102)
        waiting = ask(cluster, capsys, "restart", "103", *offline, "--wait", timeout_ms=60_000)
        assert waiting[0] == ExitStatus.OK, waiting

        leader = cluster.leader_id()
        other, third = (each for each in cluster.controller_ids if each != leader)
        cluster.kill(other)
        assert whys(ask(cluster, capsys, "stop", str(third))[1]) == ["majority"]
        assert is_yes(cluster, capsys, "stop", str(other))
        cluster.kill(third)
        assert ask(cluster, capsys, "stop", "101", timeout_ms=8_000)[0] == ExitStatus.UNREACHABLE
