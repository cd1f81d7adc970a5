"""What an administrator does in a day, on a real cluster."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.main import run
from kquorum.cli.processes import wait_until
from tests.support.cluster import Cluster

BROKERS = (101, 102, 103)
WAIT_S = 30.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("administration")
    two = {101: {"log.dirs": f"{folder}/node-101,{folder}/second"}}
    with Cluster(folder, controllers=1, brokers=3, node_overrides=two, with_grpc=True) as running:
        running.start()
        yield running


class Commands:
    def __init__(self, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
        self._cluster = cluster
        self._capsys = capsys

    def said(self, *arguments: str) -> str:
        self._capsys.readouterr()
        status = run([*arguments, "--config", str(self._cluster.config_path)])
        printed = self._capsys.readouterr()
        assert status == 0, f"{arguments}: {printed.out}{printed.err}\n{self._cluster.tails()}"
        return printed.out

    def told(self, *arguments: str) -> Any:
        return json.loads(self.said(*arguments, "--json"))


def findings(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> set[tuple[str, str]]:
    """What the doctor finds, but for what this machine is to blame for."""
    capsys.readouterr()
    run(["doctor", "--config", str(cluster.config_path), "--deep", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert len(report["checked"]) == 11, report["not_checked"]
    of_the_machine = ("disks", "open files")
    return {
        (each["check"], each["place"])
        for each in report["findings"]
        if each["severity"] != "note" and each["check"] not in of_the_machine
    }


def test_a_day_of_an_administrator(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    kquorum = Commands(cluster, capsys)

    # Partitions, moves with a throttle, leaders.
    kquorum.said("topics", "create", "orders", "-p", "3", "-r", "1", "--reason", "a new shop")
    kquorum.said("topics", "alter", "orders", "--partitions", "6", "--reason", "more load")
    (tmp_path / "lines").write_text("a record\n" * 500)
    kquorum.said("produce", "orders", "--file", str(tmp_path / "lines"))
    plan = str(tmp_path / "plan.json")
    kquorum.said("reassign", "plan", "-r", "2", "--remove-broker", "103", "--topic", "orders", "--out", plan)
    assert kquorum.told("reassign", "execute", plan, "--dry-run")["changed"] is False
    kquorum.said("reassign", "execute", plan, "--throttle", "1000000", "--reason", "103 leaves")
    watching = ("status", plan, "--watch", "--interval-ms", "100", "--remove-throttles")
    assert kquorum.told("reassign", *watching)["throttles"]["removed"] is True
    [topic] = kquorum.told("topics", "describe", "orders")
    assert len(topic["partitions"]) == 6
    assert {each for item in topic["partitions"] for each in item["replicas"]} == {101, 102}
    assert all(len(item["replicas"]) == len(item["isr"]) == 2 for item in topic["partitions"])
    kquorum.said("elect-leaders", "--all")
    assert wait_until(
        lambda: all(
            item["leader"] == item["replicas"][0]
            for [topic] in [kquorum.told("topics", "describe", "orders")]
            for item in topic["partitions"]
        ),
        WAIT_S,
    )

    # Directories.
    directories = kquorum.told("log-dirs", "list", "--broker", "101")
    assert len(directories) == 2
    [source, *_] = [each for each in directories if each["replicas"]]
    [target] = [each["path"] for each in directories if each["path"] != source["path"]]
    moved = source["replicas"][0]
    place = f"{moved['topic']}-{moved['partition']}"
    kquorum.said("log-dirs", "move", place, "--broker", "101", "--to", target)

    def is_there() -> bool:
        return any(
            (each["topic"], each["partition"], each["is_future"])
            == (moved["topic"], moved["partition"], False)
            for directory in kquorum.told("log-dirs", "list", "--broker", "101")
            if directory["path"] == target
            for each in directory["replicas"]
        )

    assert wait_until(is_there, WAIT_S)

    # Rights, users, quotas.
    rights = ("--allow", "User:alice", "--consumer", "--topic", "orders", "--group", "shop")
    assert [each["change"] for each in kquorum.told("acls", "add", *rights, "--reason", "read")] == [
        "added"
    ] * 3
    assert wait_until(lambda: len(kquorum.told("acls", "list", "--principal", "User:alice")) == 3, WAIT_S)
    assert len(kquorum.told("acls", "remove", "--principal", "User:alice")) == 3
    password = tmp_path / "password"
    password.write_text("geheim")
    password.chmod(0o600)
    kquorum.said("users", "add", "alice", "--password-file", str(password))
    assert wait_until(lambda: len(kquorum.told("users", "list")) == 1, WAIT_S)
    kquorum.said("users", "alter", "alice", "--password-file", str(password), "--iterations", "4096")
    assert wait_until(lambda: kquorum.told("users", "list")[0]["iterations"] == 4096, WAIT_S)
    kquorum.said("users", "remove", "alice")
    kquorum.said("quotas", "set", "producer_byte_rate=1000", "--user", "alice")
    assert wait_until(lambda: len(kquorum.told("quotas", "list")) == 1, WAIT_S)
    assert kquorum.told("quotas", "remove", "--user", "alice")["keys"] == ["producer_byte_rate"]

    # A broker that holds nothing leaves; the doctor sees it.
    assert findings(cluster, capsys) == set()
    assert run(["brokers", "unregister", "103", "--config", str(cluster.config_path)]) == 1
    assert "broker 103 is not fenced" in capsys.readouterr().err
    cluster.terminate(103)
    assert wait_until(
        lambda: (
            [each["fenced"] for each in kquorum.told("brokers")["brokers"] if each["broker_id"] == 103]
            == [True]
        ),
        WAIT_S,
    )
    assert findings(cluster, capsys) == {("nodes", "node 103"), ("brokers", "broker 103")}
    kquorum.said("brokers", "unregister", "103", "--reason", "103 leaves")
    assert wait_until(
        lambda: 103 not in [each["broker_id"] for each in kquorum.told("brokers")["brokers"]], WAIT_S
    )
