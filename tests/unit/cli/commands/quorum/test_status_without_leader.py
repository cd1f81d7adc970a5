"""The commands while there is no leader, or a node hangs: their output, and how soon it comes."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kquorum.cli.clients.cluster_client import TELL_AFTER_S
from kquorum.cli.commands.quorum.status import ControllerAnswer, Leaderless
from kquorum.cli.main import run
from kquorum.wire.protocol.apis import ApiKey
from tests.support.fake_nodes import FakeNode, fake_node, quorum_response

NOT_LEADER = 6
DEAD_PORT = 1


@pytest.fixture
def nodes() -> Iterator[Callable[..., FakeNode]]:
    """Makes nodes that answer DescribeQuorum with what is given."""
    with ExitStack() as stack:
        yield lambda answer: stack.enter_context(fake_node({ApiKey.DESCRIBE_QUORUM: answer}))


def follows(leader_id: int) -> Callable[[Any], dict[str, object]]:
    return lambda _: quorum_response(error_code=NOT_LEADER, leader_id=leader_id)


def config(folder: Path, ports: Sequence[int], *, dynamic: bool = False) -> str:
    """Controllers 1, 2, ... on these ports."""
    path = folder / "quorum.toml"
    defaults = 'controller.listener.names = "CONTROLLER"\nlog.dirs = "data/{node.id}"\n'
    if dynamic:
        servers = ",".join(f"127.0.0.1:{port}" for port in ports)
        defaults += f'controller.quorum.bootstrap.servers = "{servers}"\n'
    tables = [
        f'[[nodes]]\nnode.id = {number}\nprocess.roles = "controller"\n'
        f'listeners = "CONTROLLER://127.0.0.1:{port}"\n'
        for number, port in enumerate(ports, start=1)
    ]
    path.write_text("\n".join(["[defaults]", defaults, *tables]))
    return str(path)


def test_too_few_voters_are_reported_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], nodes: Callable[..., FakeNode]
) -> None:
    path = config(tmp_path, [nodes(follows(-1)).port, DEAD_PORT, DEAD_PORT + 1])
    began = time.monotonic()
    assert run(["quorum", "status", "-c", path, "--timeout-ms", "30000"]) == 6
    assert time.monotonic() - began < 25
    told = capsys.readouterr()
    assert told.err == (
        "error: the quorum has no leader that can be reached: node 1 answers and follows no leader in epoch 7; "
        "no answer from node 2, node 3; 1 of 3 voters alive, 2 needed: start node 2 or node 3\n"
    )
    rows = [line.split() for line in told.out.splitlines() if line.strip()[:1].isdigit()]
    assert [row[2:] for row in rows] == [
        ["alive", "none", "7"],
        ["silent", "Connection", "refused"],
        ["silent", "Connection", "refused"],
    ]


def test_as_json_there_is_one_document_with_what_each_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], nodes: Callable[..., FakeNode]
) -> None:
    path = config(tmp_path, [nodes(follows(-1)).port, DEAD_PORT, DEAD_PORT + 1])
    assert run(["quorum", "status", "-c", path, "--json"]) == 6
    told = json.loads(capsys.readouterr().out)
    assert [item["answers"] for item in told["controllers"]] == [True, False, False]
    assert told["controllers"][0]["leader_epoch"] == 7
    assert "start node 2 or node 3" in told["needs"]


def test_a_dynamic_quorum_is_waited_for_and_it_is_said_what_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], nodes: Callable[..., FakeNode]
) -> None:
    path = config(tmp_path, [nodes(follows(2)).port, DEAD_PORT], dynamic=True)
    timeout_ms = str(round(TELL_AFTER_S * 1000) + 500)
    assert run(["quorum", "remove-voter", "2", "-c", path, "--timeout-ms", timeout_ms, "--json"]) == 6
    told = capsys.readouterr()
    waiting, error = told.err.splitlines()
    assert waiting.startswith("kquorum: waiting for a leader: node 1 (127.0.0.1:")
    assert "follows node 2 in epoch 7; node 2: cannot connect" in waiting
    assert "a majority of the voters must be alive: start node 2" in error
    assert json.loads(told.out)["exit_status"] == 6


def test_a_node_that_hangs_does_not_cost_the_time_of_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], nodes: Callable[..., FakeNode]
) -> None:
    hanging, leader = nodes(follows(-1)), nodes(lambda _: quorum_response())
    hanging.mutes.add(ApiKey.DESCRIBE_QUORUM)
    path = config(tmp_path, [hanging.port, leader.port])
    began = time.monotonic()
    assert run(["quorum", "status", "-c", path, "--timeout-ms", "30000", "--json"]) == 0
    assert time.monotonic() - began < 25
    assert json.loads(capsys.readouterr().out)["leader_id"] == 1


class SteppingDown:
    """Node 1 of voters 1, 2 and 3: it leads until `is_over` says that it has stepped down."""

    def __init__(self, is_over: Callable[["SteppingDown"], bool]) -> None:
        self.described = 0
        self.asked = 0
        self._is_over = is_over

    def describe(self, _: Any) -> dict[str, object]:
        self.described += 1
        if self._is_over(self):
            return quorum_response(error_code=NOT_LEADER, leader_id=-1)
        response: dict[str, Any] = quorum_response()
        replica = {
            "replica_directory_id": UUID(int=7),
            "log_end_offset": 9,
            "last_caught_up_timestamp": self.described,
        }
        response["topics"][0]["partitions"][0]["current_voters"] = [
            {"replica_id": node_id, "last_fetch_timestamp": self.described, **replica}
            for node_id in (1, 2, 3)
        ]
        return response

    def remove(self, _: Any) -> dict[str, object]:
        """What a leader says of a change that it began, and could not commit before it lost its epoch."""
        self.asked += 1
        return {"throttle_time": 0, "error_code": NOT_LEADER, "error_message": "the leader lost its epoch"}


@pytest.mark.parametrize(
    ("is_over", "doubt"),
    [
        (lambda node: node.described > 1, ""),
        (lambda node: node.described > 2, ""),
        (
            lambda node: node.asked > 0,
            "; the request may have been carried out: look with `kquorum quorum status`",
        ),
    ],
    ids=["at the second look", "while it looks on", "with the change begun"],
)
def test_a_change_ends_when_the_leader_steps_down_without_a_majority(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_over: Callable[[SteppingDown], bool], doubt: str
) -> None:
    """The time limit of the whole command would be an hour."""
    node = SteppingDown(is_over)
    answers = {ApiKey.DESCRIBE_QUORUM: node.describe, ApiKey.REMOVE_RAFT_VOTER: node.remove}
    with fake_node(answers, {"metadata.version": 25, "kraft.version": 1}) as server:
        path = config(tmp_path, [server.port, DEAD_PORT, DEAD_PORT + 1], dynamic=True)
        assert run(["quorum", "remove-voter", "3", "-c", path, "--timeout-ms", "3600000"]) == 6
    error = capsys.readouterr().err.splitlines()[-1]
    head, _, rest = error.partition("; no answer from ")
    assert head.startswith("error: the quorum has no leader that can be reached: node 1 answers")
    assert rest == f"node 2, node 3; 1 of 3 voters alive, 2 needed: start node 2 or node 3{doubt}"


def test_a_change_outlasts_a_majority_that_is_gone_for_a_moment(tmp_path: Path) -> None:
    """As in a rolling restart: two of three refuse connections, and the third does not lead just then."""
    node = SteppingDown(lambda _: False)
    made: list[int] = []

    def remove(request: Any) -> dict[str, object]:
        if not node.asked:
            return node.remove(request)
        made.append(request.voter_id)
        return {"throttle_time": 0, "error_code": 0, "error_message": None}

    def describe(request: Any) -> dict[str, object]:
        response: dict[str, Any] = node.describe(request)
        partition = response["topics"][0]["partitions"][0]
        partition["current_voters"] = [
            voter for voter in partition["current_voters"] if voter["replica_id"] not in made
        ]
        return response

    answers = {ApiKey.DESCRIBE_QUORUM: describe, ApiKey.REMOVE_RAFT_VOTER: remove}
    with fake_node(answers, {"metadata.version": 25, "kraft.version": 1}) as server:
        path = config(tmp_path, [server.port, DEAD_PORT, DEAD_PORT + 1], dynamic=True)
        assert run(["quorum", "remove-voter", "3", "-c", path, "--timeout-ms", "3600000"]) == 0
    assert made == [3]


def answers(*controllers: tuple[int, bool], voters: int) -> Leaderless:
    return Leaderless(
        controllers=tuple(
            ControllerAnswer(node_id=node_id, address=f"h:{node_id}", answers=alive)
            for node_id, alive in controllers
        ),
        voters=frozenset(range(1, voters + 1)),
    )


def test_what_is_needed() -> None:
    assert answers((1, True), (2, False), (3, False), voters=3).needs == (
        "1 of 3 voters alive, 2 needed: start node 2 or node 3"
    )
    assert answers((1, False), (2, False), (3, False), voters=3).needs == (
        "0 of 3 voters alive, 2 needed: start 2 of node 1, node 2, node 3"
    )
    assert "an election is under way" in answers((1, True), (2, True), (3, False), voters=3).needs
    assert "an election is under way" in answers((1, True), (2, True), voters=0).needs
    assert "start node 2 (who votes" in answers((1, True), (2, False), voters=0).needs
    assert answers((1, True), (2, False), voters=3).needs == (
        "a majority of the voters must be alive: start node 2, and see whether node 3 runs (not asked from here)"
    )
