"""`kquorum features`, against servers that answer what each test says."""

import json
from typing import Any

import pytest

from kquorum.cli.commands.features.features_client import node_names
from kquorum.cli.main import run
from kquorum.node.config.addresses import HostPort
from kquorum.wire.protocol.apis import ApiKey
from tests.support.fake_nodes import FakeNode, fake_node

INVALID_UPDATE_VERSION, NOT_CONTROLLER = 95, 41
LEVELS = {"metadata.version": 25, "group.version": 1}


def answering(code: int = 0, message: str | None = None) -> dict[ApiKey, Any]:
    return {
        ApiKey.UPDATE_FEATURES: lambda _: {"error_code": code, "error_message": message, "results": ()},
    }


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def asked(node: FakeNode) -> list[tuple[str, int, int]]:
    (request,) = node.requests
    return [(each.feature, each.max_version_level, each.upgrade_type) for each in request.feature_updates]


def test_levels_are_shown_with_what_nodes_can_run(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node(answering(), LEVELS) as one, fake_node(answering(), LEVELS) as two:
        one.ranges = {"metadata.version": (4, 33), "group.version": (0, 1), "share.version": (0, 2)}
        two.ranges = {"metadata.version": (7, 30), "group.version": (0, 1)}
        addresses = f"{one.address},{two.address}"
        assert run(["features", "describe", "-b", addresses, "--json"]) == 0
        told = printed(capsys)
        assert run(["features", "describe", "-b", addresses]) == 0
        table = capsys.readouterr().out
    found = {each["name"]: (each["finalized"], each["supported"]) for each in told["features"]}
    assert found == {
        "metadata.version": (25, [7, 30]),
        "group.version": (1, [0, 1]),
        "share.version": (0, [0, 0]),
    }
    assert told["finalized_epoch"] == 1
    assert "25 (4.0-IV3)" in table
    assert "7 to 30" in table
    assert "where nodes differ" in table


def test_a_node_that_does_not_answer_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node(answering(), LEVELS) as node:
        assert run(["features", "describe", "-b", f"{node.address},127.0.0.1:1"]) == 0
        out = capsys.readouterr()
    assert "127.0.0.1:1" in out.err
    assert "group.version" in out.out


def test_without_any_answer_there_is_nothing_to_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["features", "describe", "-b", "127.0.0.1:1", "--timeout-ms", "500"]) == 6
    assert "no node told its features" in capsys.readouterr().err


def test_an_upgrade_is_asked_for_by_release_and_by_level(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node(answering(), LEVELS) as node:
        options = ["--metadata", "4.1", "--feature", "share.version=1", "-b", node.address]
        assert run(["features", "upgrade", *options]) == 0
        assert asked(node) == [("metadata.version", 27, 1), ("share.version", 1, 1)]
        assert not node.requests[0].validate_only
    assert "metadata.version was set to 27" in capsys.readouterr().out


def test_a_release_brings_its_other_features_and_lowers_none(capsys: pytest.CaptureFixture[str]) -> None:
    levels = {"metadata.version": 25, "group.version": 1, "transaction.version": 1, "share.version": 2}
    with fake_node(answering(), levels) as node:
        options = ["--release-version", "4.2-IV0", "--json", "-b", node.address]
        assert run(["features", "upgrade", *options]) == 0
        wanted = [("metadata.version", 28, 1), ("transaction.version", 2, 1)]
        assert asked(node) == [*wanted, ("eligible.leader.replicas.version", 1, 1)]
    assert printed(capsys)["levels"]["metadata.version"] == 28


def test_what_is_there_already_is_not_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node(
        answering(), {"metadata.version": 28, "group.version": 1, "transaction.version": 2}
    ) as node:
        assert run(["features", "upgrade", "--release-version", "4.0", "-b", node.address]) == 0
        assert node.requests == []
    assert "already" in capsys.readouterr().out


@pytest.mark.parametrize(("options", "upgrade_type"), [([], 2), (["--unsafe"], 3)])
def test_the_way_down_is_safe_unless_it_is_said(options: list[str], upgrade_type: int) -> None:
    with fake_node(answering(), LEVELS) as node:
        run(["features", "downgrade", "-f", "group.version=0", *options, "-b", node.address])
        assert asked(node) == [("group.version", 0, upgrade_type)]


def test_a_dry_run_asks_for_nothing_to_be_done(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node(answering(), LEVELS) as node:
        assert run(["features", "upgrade", "--metadata", "26", "--dry-run", "-b", node.address]) == 0
        assert node.requests[0].validate_only
    assert "could be set to 26" in capsys.readouterr().out


def test_a_refusal_is_reported_in_the_controllers_words(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node(answering(INVALID_UPDATE_VERSION, "Broker 5 does not support this feature.")) as node:
        assert run(["features", "upgrade", "--metadata", "26", "-b", node.address]) == 1
    told = capsys.readouterr().err
    assert "metadata.version 26 was not set: Broker 5 does not support this feature." in told
    assert "INVALID_UPDATE_VERSION" in told


def test_a_node_that_is_not_the_controller_is_not_trusted() -> None:
    with fake_node(answering(NOT_CONTROLLER)) as standby, fake_node(answering()) as leader:
        addresses = f"{standby.address},{leader.address}"
        assert run(["features", "upgrade", "--metadata", "26", "--bootstrap-controller", addresses]) == 0
        assert asked(leader) == [("metadata.version", 26, 1)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "which features?"),
        (["--metadata", "5.9"], "--metadata: unknown metadata version 5.9"),
        (["--feature", "group.version"], "is not NAME=LEVEL"),
        (["--feature", "=1"], "is not NAME=LEVEL"),
        (["--feature", "a=1", "--feature", "a=2"], "the level of a is given twice"),
        (["--metadata", "26", "--feature", "metadata.version=27"], "is given twice"),
    ],
)
def test_what_cannot_be_meant(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("upgrade", "downgrade"):
        assert run(["features", command, *options, "-b", "127.0.0.1:1"]) == 2
        assert words in capsys.readouterr().err


def test_a_node_that_is_broker_and_controller_is_asked_once() -> None:
    here = HostPort("h", 1)
    brokers = {HostPort("h", 2): 1, HostPort("h", 3): 11}
    assert node_names((here,), brokers, {here: 1}) == {here: "node 1", HostPort("h", 3): "node 11"}
