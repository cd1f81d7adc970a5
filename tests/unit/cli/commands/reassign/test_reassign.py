"""`kquorum reassign`, against a broker that keeps moves and configs."""

import json
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.commands.reassign.throttles import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)
from kquorum.cli.failures import CliError
from kquorum.cli.main import run
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.administered_cluster import AdministeredCluster

ORDERS = ("orders", 0)
OTHER = ("other", 0)
TOPIC, BROKER = 2, 4


def cluster() -> AdministeredCluster:
    return AdministeredCluster(
        replicas={ORDERS: (11, 12), OTHER: (11,)}, sizes={ORDERS: 1_000, OTHER: 10}, looks_until_moved=1_000
    )


def reassign(served: AdministeredCluster, verb: str, *options: str) -> int:
    with served.served() as node:
        return run(["reassign", verb, *options, "-b", node.address])


@pytest.fixture
def plan(tmp_path: Path) -> str:
    path = tmp_path / "plan.json"
    entries = [{"topic": "orders", "partition": 0, "replicas": [12, 13]}]
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    return str(path)


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_plan_and_its_rollback_are_written_for_kafkas_tools(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, back = tmp_path / "plan.json", tmp_path / "back.json"
    options = ("--remove-broker", "11", "--out", str(out), "--rollback", str(back))
    assert reassign(cluster(), "plan", *options) == 0
    told = capsys.readouterr().out
    assert "2 partitions to change, 2 replicas to move" in told
    assert json.loads(back.read_text())["partitions"] == [
        {"topic": "orders", "partition": 0, "replicas": [11, 12], "log_dirs": ["any", "any"]},
        {"topic": "other", "partition": 0, "replicas": [11], "log_dirs": ["any"]},
    ]
    planned = json.loads(out.read_text())["partitions"]
    assert {broker for each in planned for broker in each["replicas"]} == {12, 13}


def test_json_is_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert reassign(cluster(), "plan", "--topic", "other", "-r", "3", "--json") == 0
    assert printed(capsys)["partitions"] == [
        {"topic": "other", "partition": 0, "replicas": [11, 12, 13], "log_dirs": ["any", "any", "any"]}
    ]


def test_replicas_of_a_broker_that_is_away_do_not_move_by_an_oversight(
    capsys: pytest.CaptureFixture[str],
) -> None:
    served = cluster()
    served.fenced = {12}
    assert reassign(served, "plan") == 1
    assert "broker 12 has replicas, and is away: start it" in capsys.readouterr().err
    assert reassign(served, "plan", "--remove-broker", "12") == 0
    assert reassign(served, "plan", "--broker", "12") == 1
    assert "live brokers: 11, 13" in capsys.readouterr().err


def test_execute_begins_the_moves_with_their_throttles(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    served = cluster()
    assert reassign(served, "execute", plan, "--throttle", "5000", "--dry-run") == 0
    assert served.moving == {}
    assert served.throttles == {}
    assert reassign(served, "execute", plan, "--throttle", "5000") == 0
    assert served.moving == {ORDERS: ((11, 12), (12, 13))}
    assert served.throttles == {
        (TOPIC, "orders"): {LEADER_REPLICAS: "0:11,0:12", FOLLOWER_REPLICAS: "0:13"},
        **{(BROKER, str(each)): {LEADER_RATE: "5000", FOLLOWER_RATE: "5000"} for each in (11, 12, 13)},
    }
    assert "--remove-throttles" in capsys.readouterr().out
    assert reassign(served, "execute", plan) == 1
    assert "partitions are being moved: orders-0" in capsys.readouterr().err
    assert reassign(served, "execute", plan, "--additional") == 0


def test_a_plan_that_is_carried_out_is_a_success(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    served = cluster()
    served.replicas[ORDERS] = (12, 13)
    assert reassign(served, "execute", plan) == 0
    assert "every partition" in capsys.readouterr().out
    assert served.asked("AlterPartitionReassignmentsRequest") == []


def test_a_refused_plan_leaves_no_throttles(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    served = cluster()
    served.refusals[ORDERS] = (ErrorCode.invalid_replica_assignment, "no")
    assert reassign(served, "execute", plan, "--throttle", "5000") == 1
    assert "orders-0: no (INVALID_REPLICA_ASSIGNMENT)" in capsys.readouterr().err
    assert served.throttles == {}


def test_the_throttle_of_moves_that_are_under_way_can_be_changed(plan: str) -> None:
    """As with Kafka's tool: the same plan again, with another throttle."""
    served = cluster()
    assert reassign(served, "execute", plan, "--throttle", "5000") == 0
    assert reassign(served, "execute", plan, "--throttle", "7000", "--additional") == 0
    assert served.throttles == {
        (TOPIC, "orders"): {LEADER_REPLICAS: "0:12,0:11", FOLLOWER_REPLICAS: "0:13"},
        **{(BROKER, str(each)): {LEADER_RATE: "7000", FOLLOWER_RATE: "7000"} for each in (11, 12, 13)},
    }


def test_another_move_in_a_topic_leaves_the_first_one_throttled(plan: str, tmp_path: Path) -> None:
    served = cluster()
    served.replicas["orders", 1] = (11,)
    assert reassign(served, "execute", plan, "--throttle", "5000") == 0
    path = tmp_path / "second.json"
    entry = {"topic": "orders", "partition": 1, "replicas": [12]}
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    assert reassign(served, "execute", str(path), "--throttle", "5000", "--additional") == 0
    assert served.throttles[TOPIC, "orders"] == {
        LEADER_REPLICAS: "0:12,0:11,1:11",
        FOLLOWER_REPLICAS: "0:13,1:12",
    }


def test_throttles_that_were_set_in_part_are_removed(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    served = cluster()
    served.refusals["12", "config"] = (ErrorCode.cluster_authorization_failed, "no")
    assert reassign(served, "execute", plan, "--throttle", "5000") == 1
    assert "CLUSTER_AUTHORIZATION_FAILED" in capsys.readouterr().err
    assert served.moving == {}
    assert served.throttles == {}


def test_a_directory_that_is_refused_leaves_no_throttles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    entry = {"topic": "orders", "partition": 0, "replicas": [12, 13], "log_dirs": ["any", "/disk9"]}
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    served = cluster()
    served.refusals[ORDERS] = (ErrorCode.log_dir_not_found, "no")
    assert reassign(served, "execute", str(path), "--throttle", "5000") == 1
    assert "no replica moves to another broker" in capsys.readouterr().err
    assert (served.moving, served.throttles) == ({}, {})


def test_throttles_that_cannot_be_removed_are_told_of(
    plan: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_arguments: object) -> None:
        raise CliError("the broker went away")

    monkeypatch.setattr("kquorum.cli.commands.reassign.execution.remove_throttles", fails)
    served = cluster()
    served.refusals["12", "config"] = (ErrorCode.cluster_authorization_failed, "no")
    assert reassign(served, "execute", plan, "--throttle", "5000") == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "CLUSTER_AUTHORIZATION_FAILED" in told
    assert "throttles may be left: `kquorum reassign status --remove-throttles`" in told


def test_directories_are_named_before_the_replicas_come(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    entry = {"topic": "orders", "partition": 0, "replicas": [12, 13], "log_dirs": ["any", "/disk2"]}
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    served = cluster()
    assert reassign(served, "execute", str(path)) == 0
    assert served.directories == {ORDERS: "/disk2"}
    kinds = [type(each).__name__ for each in served.node.requests]
    assert kinds.index("AlterReplicaLogDirsRequest") < kinds.index("AlterPartitionReassignmentsRequest")


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"topic": "orders", "partition": 7, "replicas": [11]}, "there is no partition orders-7"),
        ({"topic": "orders", "partition": 0, "replicas": [99]}, "broker 99 is not there or fenced"),
        ({"topic": "gone", "partition": 0, "replicas": [11]}, "there is no topic gone"),
    ],
)
def test_a_plan_for_another_cluster_is_refused(
    entry: dict[str, object], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    assert reassign(cluster(), "execute", str(path)) == 1
    assert told in capsys.readouterr().err


def test_status_counts_the_bytes_of_the_new_replicas(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    served = cluster()
    served.moving[ORDERS] = ((11, 12), (12, 13))
    assert reassign(served, "status", plan, "--json") == 0
    found = printed(capsys)
    # Every broker of the fake has the whole log.
    assert (found["moving"], found["bytes_there"], found["bytes_needed"]) == (1, 1_000, 1_000)
    assert found["share"] == 0.99
    assert found["partitions"][0]["adding"] == [13]
    assert reassign(served, "status") == 0
    assert "1 moving, 1,000 of 1,000 bytes" in capsys.readouterr().out


def test_watch_ends_with_the_move_and_removes_the_throttles(
    plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    served = cluster()
    assert reassign(served, "execute", plan, "--throttle", "5000") == 0
    served.looks_until_moved = 3
    assert reassign(served, "status", plan, "--watch", "--interval-ms", "100", "--remove-throttles") == 0
    told = capsys.readouterr()
    assert "1 moving" in told.err
    assert "throttles removed: 5,000 bytes/s on brokers 11 12 13; for replicas of orders" in told.out
    assert served.throttles == {}


def test_throttles_that_were_left_behind_are_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    served = cluster()
    served.configs[TOPIC, "orders"] = {LEADER_REPLICAS: "0:11"}
    assert reassign(served, "status") == 0
    assert "replication is still throttled: for replicas of orders" in capsys.readouterr().err
    assert reassign(served, "status", "--remove-throttles") == 0
    assert served.throttles == {}


def test_throttles_stay_while_partitions_move(capsys: pytest.CaptureFixture[str]) -> None:
    served = cluster()
    served.moving[ORDERS] = ((11, 12), (12, 13))
    served.configs[BROKER, "11"] = {LEADER_RATE: "5"}
    assert reassign(served, "status", "--remove-throttles") == 0
    assert "throttled: 5 bytes/s on broker 11" in capsys.readouterr().out
    assert served.throttles != {}


def test_a_plan_that_was_not_carried_out_fails(
    plan: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kquorum.cli.commands.reassign.command._SETTLING_S", 0.05)
    assert reassign(cluster(), "status", plan) == 1
    told = capsys.readouterr()
    assert "not as planned: orders-0" in told.err
    assert "  0%" in told.out


def test_cancel_ends_moves_and_their_throttles(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    served = cluster()
    assert reassign(served, "execute", plan, "--throttle", "5000") == 0
    assert reassign(served, "cancel", "--topic", "other") == 0
    assert reassign(served, "cancel", plan, "--dry-run") == 0
    assert served.moving != {}
    assert reassign(served, "cancel", plan) == 0
    assert served.moving == {}
    assert served.replicas[ORDERS] == (11, 12)
    assert served.throttles == {}
    assert reassign(served, "cancel", "--all") == 0
    assert "no such partition is being moved" in capsys.readouterr().out


def test_cancel_leaves_the_throttles_of_other_moves(plan: str, tmp_path: Path) -> None:
    served = cluster()
    assert reassign(served, "execute", plan, "--throttle", "5000") == 0
    path = tmp_path / "other.json"
    entry = {"topic": "other", "partition": 0, "replicas": [12]}
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    assert reassign(served, "execute", str(path), "--throttle", "5000", "--additional") == 0
    before = served.throttles
    assert reassign(served, "cancel", plan) == 0
    assert served.throttles == before
    assert reassign(served, "cancel", "--all") == 0
    assert served.throttles == {}


def test_cancel_wants_to_know_what(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reassign", "cancel", "-b", "127.0.0.1:1"]) == 2
    assert "name one of FILE, --topic and --all" in capsys.readouterr().err


def test_a_move_between_directories_alone_is_no_reassignment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    entry = {"topic": "other", "partition": 0, "replicas": [11], "log_dirs": ["/disk2"]}
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    served = cluster()
    assert reassign(served, "execute", str(path), "--dry-run") == 0
    assert served.directories == {}
    assert reassign(served, "execute", str(path), "--json") == 0
    assert served.directories == {OTHER: "/disk2"}
    assert served.asked("AlterPartitionReassignmentsRequest") == []


def test_a_list_that_is_too_long_for_a_config_becomes_all_replicas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kquorum.cli.commands.reassign.throttles._LONGEST_VALUE", 30)
    monkeypatch.setattr("kquorum.cli.commands.reassign.reassign_client._AT_ONCE", 4)
    served = AdministeredCluster(replicas={("orders", index): (11, 12) for index in range(6)})
    path = tmp_path / "plan.json"
    entries = [{"topic": "orders", "partition": index, "replicas": [12, 13]} for index in range(6)]
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    assert reassign(served, "execute", str(path), "--throttle", "5000") == 0
    assert served.throttles[TOPIC, "orders"] == {
        LEADER_REPLICAS: "*",
        FOLLOWER_REPLICAS: "0:13,1:13,2:13,3:13,4:13,5:13",
    }
    assert len(served.asked("AlterPartitionReassignmentsRequest")) == 2


def test_nothing_is_planned_while_partitions_move(capsys: pytest.CaptureFixture[str]) -> None:
    served = cluster()
    served.moving[ORDERS] = ((11, 12), (12, 13))
    assert reassign(served, "plan") == 1
    assert "partitions are being moved: orders-0; wait for them" in capsys.readouterr().err
    assert reassign(served, "plan", "--topic", "other") == 0
