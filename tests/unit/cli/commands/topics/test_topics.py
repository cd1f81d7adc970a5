"""`kquorum topics`, against a server that answers what each test says, or nothing."""

import json
import os
import signal
import socket
import threading
from typing import Any

import pytest

from kquorum.cli.main import run
from kquorum.wire.protocol.apis import ApiKey
from tests.support.fake_nodes import FakeNode, fake_node

LEADER_NOT_AVAILABLE = 5


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


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
    listed = printed(capsys)
    assert [(topic["name"], topic["partitions"]) for topic in listed] == [("a", 2), ("b", 2)]
    assert [(topic["replicas"], topic["no_leader"], topic["short_isr"]) for topic in listed] == [
        (2, 1, 2)
    ] * 2


def test_a_long_list_may_take_more_than_one_of_several_nodes_share(
    capsys: pytest.CaptureFixture[str],
) -> None:
    taken = threading.Event()

    def slowly(request: Any) -> dict[str, object]:
        taken.wait(0.7)  # never set: this node needs so long
        return topics_response(request)

    with fake_node({ApiKey.METADATA: slowly}) as node, socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        others = [f"127.0.0.1:{mute.getsockname()[1]}", "127.0.0.1:1", "127.0.0.1:2"]
        asked = ["topics", "list", "-b", ",".join([node.address, *others]), "--json", "--timeout-ms", "2400"]
        assert run(asked) == 0
        assert len(node.requests) == 1
    assert [topic["name"] for topic in printed(capsys)] == ["a", "b"]


def test_a_list_does_not_wait_for_long_for_a_node_that_says_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_node({ApiKey.METADATA: topics_response}) as node, socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        addresses = f"127.0.0.1:{mute.getsockname()[1]},{node.address}"
        assert run(["topics", "list", "-b", addresses, "--json", "--timeout-ms", "1500"]) == 0
    assert len(printed(capsys)) == 2


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


def test_a_refusal_is_reported_with_its_code(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_a_creation_that_is_not_answered_may_have_been_made(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node(created(0)) as node:
        node.mutes.add(ApiKey.CREATE_TOPICS)
        assert create(node, "--timeout-ms", "500") == 6
        assert len(node.requests) == 1
    told = capsys.readouterr().err
    assert "no answer to CreateTopics within 500 ms" in told
    assert (
        "topic orders may have been created all the same: look with `kquorum topics describe orders`" in told
    )


def test_a_creation_that_never_left_was_not_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["topics", "create", "orders", "-b", "127.0.0.1:1"]) == 6
    assert "may have been" not in capsys.readouterr().err


def test_a_controller_that_was_late_leaves_a_doubt(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node(created(7, "the controller did not answer")) as node:
        assert create(node) == 6
    assert "the controller did not answer; topic orders may have been created" in capsys.readouterr().err


def test_an_interrupted_creation_warns_that_it_may_have_been_made(
    capsys: pytest.CaptureFixture[str],
) -> None:
    is_over = threading.Event()

    def interrupt(_: Any) -> dict[str, object]:
        # A signal between the main thread's last look at its flag and its wait for the socket is not seen before the
        # wait ends, so it is sent again until it was. One that comes while the command still says what the first has
        # brought about would interrupt the test itself, so that takes its time.
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
            if is_over.wait(8):
                break
        raise AssertionError("not answered")

    with fake_node({ApiKey.CREATE_TOPICS: interrupt}) as node:
        try:
            assert create(node) == 130
        finally:
            is_over.set()
    assert "topic orders may have been created all the same" in capsys.readouterr().err


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
    with fake_node({ApiKey.DELETE_TOPICS: answer}) as node:
        assert run(["topics", "delete", "a", "b", "missing", "-b", node.address, "--json"]) == 1
    told = printed(capsys)
    assert told["error"].endswith("; deleted before: a, b")
    assert told["exit_status"] == 1
