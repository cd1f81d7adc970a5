"""The commands that change voters, against a server that answers what each test says."""

import asyncio
import json
import time
from typing import Any

import pytest

from kquorum.cli.clients.addresses import KnownControllers
from kquorum.cli.clients.cluster_client import ClusterClient, PendingRequest, Unanswered
from kquorum.cli.clients.quorum_client import QuorumStatus, ReplicaLag
from kquorum.cli.commands.quorum.status import silent_voters
from kquorum.cli.commands.quorum.voter_checks import ObservedQuorum
from kquorum.cli.commands.quorum.voters import remove_voter, wait_for
from kquorum.cli.failures import CliError
from kquorum.cli.main import run
from kquorum.node.config.addresses import HostPort
from kquorum.wire.messages.describe_quorum import DescribeQuorumRequest
from kquorum.wire.protocol.apis import ApiKey
from kquorum.wire.uuids import uuid_from_text
from tests.support.fake_nodes import FakeNode, fake_node, quorum_response

DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"
NOT_LEADER, TIMED_OUT, DUPLICATE_VOTER, INVALID_UPDATE = 6, 7, 126, 95
LEVELS = {"metadata.version": 25, "kraft.version": 1}


class FakeQuorum:
    """Voters 1 (the leader) and 2, observer 4, all fetching; changes are refused with `codes` first, then made."""

    def __init__(self, *codes: int) -> None:
        self.voters = [1, 2]
        self.observers = [4]
        self.codes = list(codes)
        self.changes: list[Any] = []
        self.now_ms = 1_700_000_000_000

    def answers(self) -> dict[ApiKey, Any]:
        return {
            ApiKey.DESCRIBE_QUORUM: self.describe,
            ApiKey.DESCRIBE_CLUSTER: self.controllers,
            ApiKey.ADD_RAFT_VOTER: self.add,
            ApiKey.REMOVE_RAFT_VOTER: self.remove,
            ApiKey.UPDATE_FEATURES: self.update,
        }

    def describe(self, _: Any) -> dict[str, object]:
        self.now_ms += 1
        response: dict[str, Any] = quorum_response(nodes=((1, 9091), (2, 9092)))
        partition = response["topics"][0]["partitions"][0]
        partition["current_voters"] = [self._replica(node_id) for node_id in self.voters]
        partition["observers"] = [self._replica(node_id) for node_id in self.observers]
        return response

    def _replica(self, node_id: int) -> dict[str, object]:
        return {
            "replica_id": node_id,
            "replica_directory_id": uuid_from_text(DIRECTORY),
            "log_end_offset": 97,
            "last_fetch_timestamp": self.now_ms,
            "last_caught_up_timestamp": self.now_ms,
        }

    def controllers(self, _: Any) -> dict[str, object]:
        brokers = [
            {
                "broker_id": node_id,
                "host": "127.0.0.1",
                "port": 9090 + node_id,
                "rack": None,
                "is_fenced": False,
            }
            for node_id in (1, 2, 4)
        ]
        values = {"error_code": 0, "error_message": None, "endpoint_type": 2, "cluster_id": "abc"}
        return values | {"controller_id": 1, "brokers": brokers, "cluster_authorized_operations": -(2**31)}

    def add(self, request: Any) -> dict[str, object]:
        return self._change(request, lambda: self._move(request.voter_id, self.observers, self.voters))

    def remove(self, request: Any) -> dict[str, object]:
        return self._change(request, lambda: self._move(request.voter_id, self.voters, self.observers))

    def _change(self, request: Any, make: Any) -> dict[str, object]:
        self.changes.append(request)
        code = self.codes.pop(0) if self.codes else 0
        if not code:
            make()
        return {"throttle_time": 0, "error_code": code, "error_message": "another change" if code else None}

    @staticmethod
    def _move(node_id: int, source: list[int], target: list[int]) -> None:
        source.remove(node_id)
        target.append(node_id)

    def update(self, request: Any) -> dict[str, object]:
        self.changes.append(request)
        return {"throttle_time": 0, "error_code": INVALID_UPDATE, "error_message": "node 2 is silent"}


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def command(node: FakeNode, *arguments: str, timeout_ms: int = 30_000) -> int:
    where = ("--bootstrap-controller", node.address, "--timeout-ms", str(timeout_ms))
    return run(["quorum", *arguments, *where])


def test_adding_looks_everything_up_and_shows_before_and_after(capsys: pytest.CaptureFixture[str]) -> None:
    quorum = FakeQuorum()
    with fake_node(quorum.answers(), LEVELS) as node:
        assert command(node, "add-voter", "4", "--json") == 0
    outcome = printed(capsys)
    (asked,) = quorum.changes
    assert (asked.voter_id, asked.voter_directory_id) == (4, uuid_from_text(DIRECTORY))
    assert [(item.name, item.host, item.port) for item in asked.listeners] == [
        ("CONTROLLER", "127.0.0.1", 9094)
    ]
    assert outcome["done"] is True
    assert [voter["replica_id"] for voter in outcome["before"]["voters"]] == [1, 2]
    assert [voter["replica_id"] for voter in outcome["after"]["voters"]] == [1, 2, 4]


def test_a_dry_run_asks_for_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    quorum = FakeQuorum()
    with fake_node(quorum.answers(), LEVELS) as node:
        assert command(node, "add-voter", "4", "--dry-run") == 0
    assert quorum.changes == []
    assert "nothing was changed" in capsys.readouterr().out


def test_a_refused_preflight_is_an_exit_status_and_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    quorum = FakeQuorum()
    with fake_node(quorum.answers(), {"metadata.version": 25}) as node:
        assert command(node, "remove-voter", "2", "--json") == 1
    told = capsys.readouterr()
    assert told.err == "error: remove-voter 2 is not possible now: 1 check failed (dynamic quorum)\n"
    outcome = json.loads(told.out)
    assert outcome["preflight_passed"] is False
    remedies = {check["name"]: check["remedy"] for check in outcome["checks"]}
    assert "run `kquorum quorum upgrade` first" in remedies["dynamic quorum"]
    assert remedies["majority"] is None
    assert quorum.changes == []


def test_a_leader_that_says_not_now_is_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    quorum = FakeQuorum(TIMED_OUT, NOT_LEADER, TIMED_OUT)
    with fake_node(quorum.answers(), LEVELS) as node:
        assert command(node, "remove-voter", "2", "--json") == 0
    assert len(quorum.changes) == 4
    assert [voter["replica_id"] for voter in printed(capsys)["after"]["voters"]] == [1]


def test_a_change_that_was_late_but_came_counts(capsys: pytest.CaptureFixture[str]) -> None:
    """The leader gave the first request up waiting for its commit, which came; the second then finds it done."""
    quorum = FakeQuorum(TIMED_OUT, DUPLICATE_VOTER)
    answers = quorum.answers()

    def add(request: Any) -> dict[str, object]:
        if 4 in quorum.observers:
            FakeQuorum._move(4, quorum.observers, quorum.voters)
        return quorum.add(request)

    with fake_node(answers | {ApiKey.ADD_RAFT_VOTER: add}, LEVELS) as node:
        assert command(node, "add-voter", "4", "--json") == 0
    assert printed(capsys)["done"] is True


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("remove-voter", "9"), "node 9 is no voter"),
        (("add-voter", "2"), "node 2 is a voter already"),
        (("transfer-leadership", "1", "--grpc", "127.0.0.1:1"), "node 1 leads epoch 7"),
        (("upgrade",), "kraft.version is 1"),
    ],
)
def test_what_is_so_already_is_no_failure(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    quorum = FakeQuorum()
    with fake_node(quorum.answers(), LEVELS) as node:
        assert command(node, *arguments) == 0
        assert command(node, *arguments, "--json") == 0
    assert quorum.changes == []
    first, _, rest = capsys.readouterr().out.partition("\n")
    assert first.startswith(f"nothing to do: {words}")
    assert json.loads(rest)["nothing_to_do"].startswith(words)


def test_a_change_that_the_leader_does_not_answer_may_have_been_made(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_node(FakeQuorum().answers(), LEVELS) as node:
        node.mutes.add(ApiKey.REMOVE_RAFT_VOTER)
        began = time.monotonic()
        assert command(node, "remove-voter", "2", timeout_ms=3000) == 6
        assert time.monotonic() - began < 30
    told = capsys.readouterr().err
    assert "waiting for the leader to commit the change" in told
    assert "the request may have been carried out: look with `kquorum quorum status`" in told


def test_a_change_that_the_leader_puts_off_until_the_end_may_have_been_made(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_node(FakeQuorum(*[TIMED_OUT] * 100).answers(), LEVELS) as node:
        assert command(node, "remove-voter", "2", timeout_ms=3000) == 6
    told = capsys.readouterr().err
    assert "did not say within 3000 ms that it is done (another change); the request may have been" in told


def test_a_refusal_of_the_leader_is_final_and_in_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node(FakeQuorum(42).answers(), LEVELS) as node:
        assert command(node, "add-voter", "4") == 1
    assert "node 4 was not added to the voters: another change (INVALID_REQUEST)" in capsys.readouterr().err


def test_an_upgrade_asks_the_leader_before_it_says_that_it_can_be_done(
    capsys: pytest.CaptureFixture[str],
) -> None:
    quorum = FakeQuorum()
    with fake_node(quorum.answers(), {"metadata.version": 25}) as node:
        assert command(node, "upgrade") == 1
    assert "node 2 is silent (INVALID_UPDATE_VERSION)" in capsys.readouterr().out
    assert [request.validate_only for request in quorum.changes] == [True]


def test_waiting_ends_with_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    quorum = FakeQuorum()
    quorum.observers = []
    with fake_node(quorum.answers(), LEVELS) as node:
        began = time.monotonic()
        assert command(node, "add-voter", "4", "--wait", timeout_ms=3000) == 1
        assert 2.5 <= time.monotonic() - began <= 30
    told = capsys.readouterr().err
    assert "waiting: node 4 does not fetch from the leader" in told
    assert "add-voter 4 is not possible now" in told


@pytest.mark.parametrize(
    ("leader_timeout_ms", "answering", "is_hopeless"), [(5_000, 1, True), (5_000, 2, False), (None, 1, False)]
)
def test_a_change_is_hopeless_without_a_majority_unless_it_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, leader_timeout_ms: int | None, answering: int, is_hopeless: bool
) -> None:
    addresses = [HostPort("a", port) for port in (1, 2, 3)]
    known = KnownControllers({address: address.port for address in addresses}, frozenset({1, 2, 3}))
    found: list[bool] = []

    async def ask(_: ClusterClient, pending: PendingRequest[Any]) -> Any:
        pending.refused = dict.fromkeys(addresses[:answering])
        pending.silent = dict.fromkeys(addresses[answering:], "refused")
        found.append(pending.is_hopeless(pending))
        raise Unanswered(pending, "no answer")

    async def change() -> None:
        client = ClusterClient(addresses, 9_000, known=known, leader_timeout_ms=leader_timeout_ms)
        await remove_voter(client, None, 3, None)

    monkeypatch.setattr(ClusterClient, "ask", ask)
    monkeypatch.setattr("kquorum.cli.commands.quorum.voters.LOST_FOR_S", 0.0)
    with pytest.raises(Unanswered):
        asyncio.run(change())
    assert found == [is_hopeless]


def test_a_change_that_does_not_show_in_time_says_nothing_of_a_lost_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The leader may only have been slow to answer the last look."""
    told = "no answer to DescribeQuorum within 700 ms: a:1 has not answered"

    async def look(_: ClusterClient) -> ObservedQuorum:
        raise Unanswered(PendingRequest(request=DescribeQuorumRequest()), told)

    monkeypatch.setattr("kquorum.cli.commands.quorum.voters.look", look)
    client = ClusterClient([HostPort("a", 1)], 700)
    with pytest.raises(CliError) as failed:
        asyncio.run(wait_for(client, lambda _: True, "add-voter 4"))
    assert str(failed.value) == (
        f"add-voter 4 was agreed to, but did not show: {told}; see `kquorum quorum status`"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add-voter", "4", "--endpoint", "nowhere"), "--endpoint: 'nowhere' is not host:port"),
        (("add-voter", "4", "--directory-id", "x"), "--directory-id: 'x' is not a uuid"),
        (("transfer-leadership", "2", "--grpc", "x"), "--grpc: 'x' is not host:port"),
    ],
)
def test_a_typing_error_is_reported_before_any_request(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert run(["quorum", *arguments, "--bootstrap-controller", "127.0.0.1:1"]) == 2
    assert words in capsys.readouterr().err


def test_brokers_and_controllers_are_not_asked_together(capsys: pytest.CaptureFixture[str]) -> None:
    both = ["--bootstrap-controller", "127.0.0.1:1", "--bootstrap-server", "127.0.0.1:2"]
    assert run(["quorum", "status", *both]) == 2
    assert "exclude each other" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [("remove-voter", "2"), ("add-voter", "2"), ("upgrade",)])
def test_without_a_leader_a_change_is_not_waited_for_to_the_end(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time limit of the whole command would be an hour."""
    monkeypatch.setattr("kquorum.cli.commands.quorum.voters.LEADER_TIMEOUT_MS", 1_300)
    monkeypatch.setattr("kquorum.cli.clients.cluster_client.TELL_AFTER_S", 0.05)
    monkeypatch.setattr("kquorum.cli.clients.cluster_client.TELL_AGAIN_S", 0.05)
    leaderless = quorum_response(error_code=6, leader_id=-1)
    with fake_node({ApiKey.DESCRIBE_QUORUM: lambda _: leaderless}) as node:
        options = ("--bootstrap-controller", node.address, "--timeout-ms", "3600000")
        assert run(["quorum", *arguments, *options]) == 6
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(set(lines)), lines
    assert "the quorum has no leader that can be reached" in lines[-1]


def test_a_voter_whose_disk_was_replaced_is_named_with_both_directories() -> None:
    def replica(node_id: int, directory: str, *, alive: bool) -> ReplicaLag:
        return ReplicaLag(
            replica_id=node_id,
            directory_id=directory,
            log_end_offset=1,
            lag=0,
            last_fetch_timestamp_ms=1,
            last_caught_up_timestamp_ms=1,
            alive=alive,
        )

    status = QuorumStatus(
        leader_id=1,
        leader_epoch=2,
        high_watermark=3,
        voters=(replica(1, "one", alive=True), replica(2, "old", alive=False), replica(3, "x", alive=False)),
        observers=(replica(2, "new", alive=True), replica(11, "other", alive=True)),
    )
    first, second = str(silent_voters(status)).splitlines()
    assert first.startswith("silent: 2 of 3 voters")
    assert second.startswith("voter 2 is registered with directory old, but node 2 runs with directory new")
    assert "`kquorum quorum remove-voter 2`, then `add-voter 2`" in second
