"""The commands that ask a running cluster, against a server that answers what each test says."""

import json
from typing import Any
from uuid import UUID

import pytest

from kquorum.cli.main import run
from kquorum.wire.protocol.apis import ApiKey
from kquorum.wire.uuids import uuid_to_text
from tests.support.fake_nodes import cluster_response, fake_node, quorum_response

NOT_LEADER = 6
LEADER_NOT_AVAILABLE = 5


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_status_tells_leader_epoch_and_lag(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node({ApiKey.DESCRIBE_QUORUM: lambda _: quorum_response()}) as node:
        assert run(["quorum", "status", "--bootstrap-controller", node.address, "--json"]) == 0
    status = printed(capsys)
    assert (status["leader_id"], status["leader_epoch"], status["high_watermark"]) == (1, 7, 97)
    assert [(voter["replica_id"], voter["lag"]) for voter in status["voters"]] == [(1, 0), (2, 3), (3, None)]
    assert [(item["replica_id"], item["lag"]) for item in status["observers"]] == [(11, 10)]


def test_status_as_a_table_has_a_row_for_each_replica(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node({ApiKey.DESCRIBE_QUORUM: lambda _: quorum_response()}) as node:
        assert run(["quorum", "status", "--bootstrap-controller", node.address]) == 0
    out = capsys.readouterr().out
    assert "leader 1, epoch 7, high watermark 97" in out
    assert [
        line.split()[1] for line in out.splitlines() if line.split()[:1] in (["1"], ["2"], ["3"], ["11"])
    ] == [
        "leader",
        "voter",
        "voter",
        "observer",
    ]


def test_status_says_who_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node({ApiKey.DESCRIBE_QUORUM: lambda _: quorum_response()}) as node:
        assert run(["quorum", "status", "--bootstrap-controller", node.address]) == 0
    out = capsys.readouterr().out
    assert [line.split()[2] for line in out.splitlines() if line.strip()[:1].isdigit()] == [
        "alive",
        "alive",
        "silent",
        "alive",
    ]
    assert "silent: 1 of 3 voters, 3; none more may fail" in out
    assert "directory id" not in out


def test_status_tells_two_disks_of_one_node_apart(capsys: pytest.CaptureFixture[str]) -> None:
    response: Any = quorum_response()
    partition = response["topics"][0]["partitions"][0]
    disk, old = UUID(int=7), UUID(int=8)
    partition["current_voters"][2]["replica_directory_id"] = old
    partition["observers"] = [dict(partition["observers"][0], replica_id=3, replica_directory_id=disk)]
    with fake_node({ApiKey.DESCRIBE_QUORUM: lambda _: response}) as node:
        assert run(["quorum", "status", "--bootstrap-controller", node.address]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.split()[:1] == ["3"]]
    assert [(row[1], row[2], row[-1]) for row in rows] == [
        ("voter", "silent", uuid_to_text(old)),
        ("observer", "alive", uuid_to_text(disk)),
    ]


def test_status_follows_the_hint_of_a_follower(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node({ApiKey.DESCRIBE_QUORUM: lambda _: quorum_response()}) as leader:
        hint = quorum_response(error_code=NOT_LEADER, nodes=((1, leader.port),))
        with fake_node({ApiKey.DESCRIBE_QUORUM: lambda _: hint}) as follower:
            assert run(["quorum", "status", "--bootstrap-controller", follower.address, "--json"]) == 0
    assert printed(capsys)["leader_epoch"] == 7


def test_status_waits_for_an_election(capsys: pytest.CaptureFixture[str]) -> None:
    answers = [quorum_response(error_code=LEADER_NOT_AVAILABLE, leader_id=-1)] * 2 + [quorum_response()]
    with fake_node({ApiKey.DESCRIBE_QUORUM: lambda _: answers.pop(0)}) as node:
        assert run(["quorum", "status", "--bootstrap-controller", node.address, "--json"]) == 0
    assert printed(capsys)["leader_id"] == 1


def test_status_gives_up_when_there_is_no_leader(capsys: pytest.CaptureFixture[str]) -> None:
    leaderless = quorum_response(error_code=LEADER_NOT_AVAILABLE, leader_id=-1)
    with fake_node({ApiKey.DESCRIBE_QUORUM: lambda _: leaderless}) as node:
        command = ["quorum", "status", "--bootstrap-controller", node.address, "--timeout-ms", "300"]
        assert run(command) == 6
    assert f"{node.address} answers and follows no leader in epoch 7; all answer" in capsys.readouterr().err


def test_an_address_that_is_down_is_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node({ApiKey.DESCRIBE_QUORUM: lambda _: quorum_response()}) as node:
        assert (
            run(["quorum", "status", "--bootstrap-controller", f"127.0.0.1:1,{node.address}", "--json"]) == 0
        )
    assert printed(capsys)["leader_id"] == 1


def test_brokers_are_listed_with_fencing_and_lag(capsys: pytest.CaptureFixture[str]) -> None:
    answers = {ApiKey.DESCRIBE_CLUSTER: cluster_response, ApiKey.DESCRIBE_QUORUM: lambda _: quorum_response()}
    with fake_node(answers) as node:
        command = [
            "brokers",
            "--bootstrap-server",
            node.address,
            "--bootstrap-controller",
            node.address,
            "--json",
        ]
        assert run(command) == 0
        assert node.requests[0].include_fenced_brokers
    told = printed(capsys)
    assert told["cluster_id"] == "abc"
    assert [(row["broker_id"], row["fenced"], row["lag"]) for row in told["brokers"]] == [
        (11, True, 10),
        (12, False, None),
    ]


def test_brokers_are_listed_without_a_leader(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node({ApiKey.DESCRIBE_CLUSTER: cluster_response}) as node:
        command = [
            "brokers",
            "-b",
            node.address,
            "--bootstrap-controller",
            "127.0.0.1:1",
            "--timeout-ms",
            "500",
        ]
        assert run(command) == 0
    told = capsys.readouterr()
    assert "fenced" in told.out
    assert f"this is what the broker at {node.address} knew last" in told.err
