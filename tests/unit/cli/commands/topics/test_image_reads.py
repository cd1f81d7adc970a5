"""Topics read with a promise: the leader is found for a linearizable read, any node does for the others."""

import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kquorum.cli.clients import image_client
from kquorum.cli.commands.topics.image_reads import read_topics
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.main import run as run_command
from kquorum.metadata.grpc.server import start_inspect_server
from kquorum.node.config.addresses import HostPort
from tests.support.grpc_harness import run
from tests.support.grpc_source import FakeSource, partition, register_broker, topic

HOST = "127.0.0.1"


def source(*names: str, is_leader: bool = True) -> FakeSource:
    made = FakeSource()
    made.is_leader = is_leader
    made.commit(register_broker(1), register_broker(2, fenced=True))
    for number, name in enumerate(names, start=1):
        made.commit(topic(name, number), partition(number))
    return made


def with_servers(*sources: FakeSource, ask: Callable[[list[HostPort]], Coroutine[Any, Any, Any]]) -> Any:
    async def main() -> Any:
        servers = [await start_inspect_server(HOST, 0, item) for item in sources]
        try:
            return await ask([HostPort(HOST, server.bound_port) for server in servers])
        finally:
            for server in servers:
                await server.stop(0.1)

    return run(main)


def test_a_linearizable_read_comes_from_the_leader() -> None:
    standby, leader = source("old", is_leader=False), source("old", "new")
    found = with_servers(standby, leader, ask=lambda nodes: read_topics(nodes, None, "linearizable", 5000))
    assert [item.name for item in found] == ["new", "old"]
    assert leader.confirmations == 1


def test_other_reads_come_from_the_first_that_answers() -> None:
    standby, leader = source("old", is_leader=False), source("old", "new")
    for promise in ("committed", "local"):
        found = with_servers(
            standby, leader, ask=lambda nodes, promise=promise: read_topics(nodes, None, promise, 5000)
        )
        assert [item.name for item in found] == ["old"]


def test_a_partition_is_shown_as_a_broker_would() -> None:
    (found,) = with_servers(
        source("orders"), ask=lambda nodes: read_topics(nodes, ["orders"], "committed", 5000)
    )
    (only,) = found.partitions
    assert (only.leader, only.replicas, only.isr, only.offline_replicas) == (1, (1, 2), (1, 2), (2,))


def test_a_topic_that_is_not_there_is_named() -> None:
    with pytest.raises(CliError, match="there is no topic nowhere"):
        with_servers(source("orders"), ask=lambda nodes: read_topics(nodes, ["nowhere"], "committed", 5000))


def test_without_a_leader_nothing_is_promised() -> None:
    with pytest.raises(CliError, match="the leader is node 2 at") as refused:
        with_servers(
            source("orders", is_leader=False), ask=lambda nodes: read_topics(nodes, None, "linearizable", 300)
        )
    assert refused.value.status is ExitStatus.UNREACHABLE


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--consistency", "strong", "--grpc", "a:1"), "is none of linearizable"),
        (("--consistency", "local", "--bootstrap-server", "a:1"), "brokers make no promise"),
    ],
)
def test_wrong_promises_are_refused(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], words: str
) -> None:
    assert run_command(["topics", "list", *options]) == 2
    assert words in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_json_is_the_same_as_from_a_broker(capsys: pytest.CaptureFixture[str]) -> None:
    """Run in a thread of its own, for a command has an event loop of its own."""
    import asyncio

    async def ask(nodes: list[HostPort]) -> int:
        command = ["topics", "list", "--consistency", "committed", "--grpc", str(nodes[0]), "--json"]
        return await asyncio.to_thread(run_command, command)

    assert with_servers(source("orders"), ask=ask) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["name"], listed["partitions"]) == ("orders", 1)


@pytest.mark.parametrize("limit", ["MAX_RESPONSE_BYTES", "MAX_RESPONSE_ELEMENTS"])
def test_an_image_without_end_is_not_read_to_its_end(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_client, limit, 1)
    with pytest.raises(CliError, match="sends an image of more than"):
        with_servers(source("orders"), ask=lambda nodes: read_topics(nodes, None, "committed", 5000))
