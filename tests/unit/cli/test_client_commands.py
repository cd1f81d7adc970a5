"""The commands that ask a running cluster, against a server that answers what each test says."""

import json
from typing import Any

import pytest

from cli.main import run
from tests.unit.cli.fake_cluster import FakeNode, fake_node, quorum_response
from wire.protocol.apis import ApiKey

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


def test_status_gives_up_when_nobody_leads(capsys: pytest.CaptureFixture[str]) -> None:
    nobody = quorum_response(error_code=LEADER_NOT_AVAILABLE, leader_id=-1)
    with fake_node({ApiKey.DESCRIBE_QUORUM: lambda _: nobody}) as node:
        command = ["quorum", "status", "--bootstrap-controller", node.address, "--timeout-ms", "300"]
        assert run(command) == 6
    assert f"{node.address} answers, but cannot tell" in capsys.readouterr().err


def test_an_address_that_is_down_is_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node({ApiKey.DESCRIBE_QUORUM: lambda _: quorum_response()}) as node:
        assert (
            run(["quorum", "status", "--bootstrap-controller", f"127.0.0.1:1,{node.address}", "--json"]) == 0
        )
    assert printed(capsys)["leader_id"] == 1


def cluster_response(_: Any) -> dict[str, object]:
    brokers = [(12, "b", False), (11, "a", True)]
    return {
        "error_code": 0,
        "error_message": None,
        "endpoint_type": 1,
        "cluster_id": "abc",
        "controller_id": 11,
        "brokers": [
            {"broker_id": broker_id, "host": "127.0.0.1", "port": 9000, "rack": rack, "is_fenced": fenced}
            for broker_id, rack, fenced in brokers
        ],
        "cluster_authorized_operations": -(2**31),
    }


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


def test_brokers_are_told_although_nobody_leads(capsys: pytest.CaptureFixture[str]) -> None:
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
    assert "fenced" in capsys.readouterr().out


def topics_response(request: Any) -> dict[str, object]:
    names = ["b", "a"] if request.topics is None else [topic.name for topic in request.topics]
    return {
        "brokers": [],
        "cluster_id": "abc",
        "controller_id": 11,
        "error_code": 0,
        "topics": [
            {
                "error_code": 3 if name == "missing" else 0,
                "name": name,
                "topic_id": None,
                "is_internal": False,
                "partitions": []
                if name == "missing"
                else [_partition(1, 12, 0), _partition(0, -1, LEADER_NOT_AVAILABLE)],
                "topic_authorized_operations": -(2**31),
            }
            for name in names
        ],
    }


def _partition(index: int, leader: int, error_code: int) -> dict[str, object]:
    return {
        "error_code": error_code,
        "partition_index": index,
        "leader_id": leader,
        "leader_epoch": 4,
        "replica_nodes": [11, 12],
        "isr_nodes": [12],
        "offline_replicas": [11],
    }


def test_topics_are_listed_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node({ApiKey.METADATA: topics_response}) as node:
        assert run(["topics", "list", "-b", node.address, "--json"]) == 0
    assert [(topic["name"], topic["partitions"]) for topic in printed(capsys)] == [("a", 2), ("b", 2)]


def test_a_partition_without_leader_is_described_not_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node({ApiKey.METADATA: topics_response}) as node:
        assert run(["topics", "describe", "a", "-b", node.address, "--json"]) == 0
        assert not node.requests[-1].allow_auto_topic_creation
    partitions = printed(capsys)[0]["partitions"]
    assert [(item["partition_id"], item["leader"], item["isr"]) for item in partitions] == [
        (0, -1, [12]),
        (1, 12, [12]),
    ]


def test_a_topic_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node({ApiKey.METADATA: topics_response}) as node:
        assert run(["topics", "describe", "missing", "-b", node.address]) == 1
    assert "there is no topic missing" in capsys.readouterr().err


def create(node: FakeNode, *options: str) -> int:
    return run(["topics", "create", "orders", "-b", node.address, *options])


def created(error_code: int, message: str | None = None) -> Any:
    def answer(request: Any) -> dict[str, object]:
        result = {
            "name": request.topics[0].name,
            "topic_id": None,
            "error_code": error_code,
            "error_message": message,
            "num_partitions": 3,
            "replication_factor": 2,
            "configs": [],
        }
        return {"topics": [result]}

    return {ApiKey.CREATE_TOPICS: answer}


def test_create_sends_what_was_asked() -> None:
    with fake_node(created(0)) as node:
        assert create(node, "-p", "3", "-r", "2", "--topic-config", "retention.ms=5") == 0
        topic = node.requests[-1].topics[0]
    assert (topic.name, topic.num_partitions, topic.replication_factor) == ("orders", 3, 2)
    assert [(item.name, item.value) for item in topic.configs] == [("retention.ms", "5")]


def test_a_refusal_is_told_with_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node(created(38, "5 replicas, but 3 brokers")) as node:
        assert create(node) == 1
    assert capsys.readouterr().err == (
        "error: topic orders was not created: 5 replicas, but 3 brokers (INVALID_REPLICATION_FACTOR)\n"
    )


def test_an_existing_topic_is_an_error_unless_it_may_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node(created(36, "Topic 'orders' already exists.")) as node:
        assert create(node) == 1
        assert create(node, "--if-not-exists", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"name": "orders", "created": False}


def test_delete_stops_at_the_first_refusal(capsys: pytest.CaptureFixture[str]) -> None:
    def answer(request: Any) -> dict[str, object]:
        name = request.topics[0].name
        code = 3 if name == "missing" else 0
        return {"responses": [{"name": name, "topic_id": None, "error_code": code, "error_message": None}]}

    with fake_node({ApiKey.DELETE_TOPICS: answer}) as node:
        assert run(["topics", "delete", "a", "missing", "c", "-b", node.address]) == 1
        assert [request.topics[0].name for request in node.requests] == ["a", "missing"]
    outcome = capsys.readouterr()
    assert outcome.out == "topic a was deleted\n"
    assert "there is no topic missing" in outcome.err
