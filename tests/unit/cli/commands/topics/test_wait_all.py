"""`kquorum topics create --wait-all`: refused before creation without a broker to wait for, else reported."""

from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.main import run
from kquorum.wire.protocol.apis import ApiKey
from tests.support.fake_nodes import FakeNode, fake_node


def created(request: Any) -> dict[str, object]:
    topics = [
        {
            "name": topic.name,
            "topic_id": None,
            "error_code": 0,
            "error_message": None,
            "num_partitions": 1,
            "replication_factor": 1,
            "configs": [],
        }
        for topic in request.topics
    ]
    return {"throttle_time": 0, "topics": topics}


def create(node: FakeNode, *options: str) -> int:
    return run(["topics", "create", "orders", "-b", node.address, "--wait-all", *options])


def test_without_a_listener_to_wait_at_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KQUORUM_CONFIG", raising=False)
    with fake_node({ApiKey.CREATE_TOPICS: created}) as node:
        assert create(node) == 2
        assert node.requests == []
    assert "where is the cluster? Give --config FILE or --grpc host:port" in capsys.readouterr().err


def test_a_created_topic_is_reported_although_no_broker_confirms_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_node({ApiKey.CREATE_TOPICS: created}) as node:
        assert create(node, "--grpc", "127.0.0.1:1", "--timeout-ms", "500") == 6
        assert len(node.requests) == 1
    said = " ".join(capsys.readouterr().err.split())
    told = "topic orders was created, but whether all brokers have it is not known: 127.0.0.1:1: connection refused"
    assert told in said
