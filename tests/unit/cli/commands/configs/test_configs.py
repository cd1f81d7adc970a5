"""`kquorum configs`, against a server that answers what each test says."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kquorum.cli.main import run
from kquorum.wire.protocol.apis import ApiKey
from tests.support.fake_nodes import FakeNode, fake_node

OF = ("--topic", "orders")


def config(name: str, value: str | None, source: int, *, sensitive: bool = False) -> dict[str, object]:
    return {
        "name": name,
        "value": value,
        "read_only": False,
        "config_source": source,
        "is_sensitive": sensitive,
        "synonyms": [{"name": name, "value": value, "source": source}],
        "config_type": 9 if sensitive else 5,
        "documentation": "What it is.",
    }


def described(error_code: int = 0, message: str | None = None) -> Mapping[ApiKey, Any]:
    def answer(request: Any) -> dict[str, object]:
        asked = request.resources[0]
        configs = [
            config("segment.ms", "7", 5),
            config("retention.ms", "5", 1),
            config("ssl.key.password", None, 4, sensitive=True),
        ]
        result = {
            "error_code": error_code,
            "error_message": message,
            "resource_type": asked.resource_type,
            "resource_name": asked.resource_name,
            "configs": [] if error_code else configs,
        }
        return {"results": [result]}

    return {ApiKey.DESCRIBE_CONFIGS: answer}


def altered(error_code: int = 0, message: str | None = None) -> Mapping[ApiKey, Any]:
    def answer(request: Any) -> dict[str, object]:
        asked = request.resources[0]
        response = {
            "error_code": error_code,
            "error_message": message,
            "resource_type": asked.resource_type,
            "resource_name": asked.resource_name,
        }
        return {"responses": [response]}

    return {ApiKey.INCREMENTAL_ALTER_CONFIGS: answer}


def configs(verb: str, node: FakeNode, *options: str) -> int:
    return run(["configs", verb, "-b", node.address, *options])


@pytest.mark.parametrize(
    ("options", "kind", "name"),
    [
        (OF, 2, "orders"),
        (("--cluster",), 4, ""),
        (("--group", "g"), 32, "g"),
        (("--client-metrics", "m"), 16, "m"),
    ],
)
def test_whose_configs_are_asked_for(options: tuple[str, ...], kind: int, name: str) -> None:
    with fake_node(described()) as node:
        assert configs("describe", node, *options) == 0
    (asked,) = node.requests[-1].resources
    assert (int(asked.resource_type), asked.resource_name, asked.configuration_keys) == (kind, name, None)


def test_only_what_is_set_is_shown_and_the_defaults_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node(described()) as node:
        assert configs("describe", node, *OF, "--json") == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown["resource"] == "topic orders"
        assert [(each["name"], each["value"], each["source"]) for each in shown["configs"]] == [
            ("retention.ms", "5", "topic"),
            ("ssl.key.password", None, "config file"),
        ]
        assert shown["configs"][0]["synonyms"] == [{"name": "retention.ms", "value": "5", "source": "topic"}]
        assert configs("describe", node, *OF, "--json", "--all") == 0
        assert len(json.loads(capsys.readouterr().out)["configs"]) == 3
        assert configs("describe", node, *OF) == 0
    table = capsys.readouterr().out
    assert "[hidden]" in table
    assert "retention.ms" in table
    assert "segment.ms" not in table


def test_a_broker_is_asked_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node(described()) as broker:

        def metadata(_request: Any) -> dict[str, object]:
            nodes = [{"node_id": 7, "host": "127.0.0.1", "port": broker.port, "rack": None}]
            return {"brokers": nodes, "cluster_id": "c", "controller_id": 7, "topics": [], "error_code": 0}

        with fake_node({ApiKey.METADATA: metadata}) as node:
            assert configs("describe", node, "--broker", "7") == 0
            assert broker.requests[-1].resources[0].resource_name == "7"
            assert configs("describe", node, "--broker", "8") == 1
    assert "broker 8 is not there or fenced; live brokers: 7" in capsys.readouterr().err


def test_alter_sends_all_changes_in_one_request(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node(altered()) as node:
        changes = ("--set", "a=1=2", "--delete", "b", "--append", "c=3", "--subtract", "d=4")
        assert configs("alter", node, *OF, *changes, "--json") == 0
    request = node.requests[-1]
    sent = [(each.name, int(each.config_operation), each.value) for each in request.resources[0].configs]
    assert sent == [("a", 0, "1=2"), ("b", 1, None), ("c", 2, "3"), ("d", 3, "4")]
    assert not request.validate_only
    shown = json.loads(capsys.readouterr().out)
    assert shown == {"resource": "topic orders", "keys": ["a", "b", "c", "d"], "altered": True}


def test_validate_only_says_that_nothing_was_done(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node(altered()) as node:
        assert configs("alter", node, "--broker", "1", "--set", "a=1", "--validate-only") == 0
    assert node.requests[-1].validate_only
    assert capsys.readouterr().out.strip() == "configs of broker 1 would be altered: a"


def test_a_refusal_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node(altered(40, "Unknown topic config name: a")) as node:
        assert configs("alter", node, *OF, "--set", "a=1") == 1
    told = capsys.readouterr().err
    assert "configs of topic orders were not altered: Unknown topic config name: a (INVALID_CONFIG)" in told
    with fake_node(described(3)) as node:
        assert configs("describe", node, *OF) == 1
    assert "cannot be described: UNKNOWN_TOPIC_OR_PARTITION" in capsys.readouterr().err


def test_a_timeout_leaves_the_outcome_open(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node(altered(7)) as node:
        assert configs("alter", node, *OF, "--set", "a=1") == 6
    assert "may have been altered all the same" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--set", "a=1"), "name one of"),
        ((*OF, "--cluster", "--set", "a=1"), "name one of"),
        (OF, "nothing to do"),
        ((*OF, "--set", "a=1", "--delete", "a"), "more than once: a"),
        ((*OF, "--set", "hush"), "it is not KEY=VALUE"),
    ],
)
def test_usage(options: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["configs", "alter", "-b", "127.0.0.1:1", *options]) == 2
    told = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert words in told
    assert "hush" not in told
