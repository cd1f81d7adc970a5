"""`kquorum configs keys` shows what the table of configs says."""

import json

import pytest

from kquorum.cli.main import run
from kquorum.metadata.configs.table import BROKER_CONFIGS, BY_SCOPE


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["configs", "keys", *arguments]) == 0
    return capsys.readouterr().out


def test_every_key_that_is_not_internal_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(shown(capsys, "--json"))["keys"]
    expected = {
        (str(scope), each.name)
        for scope, definitions in BY_SCOPE.items()
        for each in definitions.values()
        if not each.is_internal
    }
    assert {(each["scope"], each["name"]) for each in listed} == expected
    assert len(listed) == len(expected)


def test_one_key_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = json.loads(shown(capsys, "log.retention.ms", "--json"))["keys"]
    definition = BROKER_CONFIGS["log.retention.ms"]
    assert found == {
        "name": "log.retention.ms",
        "scope": "broker",
        "type": "long",
        "default": None,
        "lawful": "",
        "importance": "high",
        "update": "cluster-wide",
        "used_by": {"effect": "read", "words": definition.used_by.words},
        "synonyms": [],
        "internal": False,
        "documentation": definition.documentation,
    }


def test_one_key_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "retention.ms", "--scope", "topic").splitlines()
    assert lines[0] == "retention.ms (topic)"
    assert "  default: 604800000" in lines
    assert "  lawful: at least -1" in lines
    assert "  used by: partition logs" in lines
    assert "  default of all: log.retention.ms, log.retention.minutes, log.retention.hours" in lines


def test_a_part_of_a_name_finds_the_keys_that_have_it(capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(shown(capsys, "controller.quota", "--json"))["keys"]
    assert [each["name"] for each in listed] == [
        "controller.quota.window.num",
        "controller.quota.window.size.seconds",
    ]
    text = shown(capsys, "controller.quota")
    assert "2 configs" in text
    assert "controller.quota.window.num" in text


def test_an_unknown_name_or_scope_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["configs", "keys", "num.partitons"]) == 2
    assert "did you mean num.partitions?" in " ".join(capsys.readouterr().err.split())
    assert run(["configs", "keys", "--scope", "brokers"]) == 2
    assert "there are topic, group, client, broker, authorizer" in " ".join(capsys.readouterr().err.split())
