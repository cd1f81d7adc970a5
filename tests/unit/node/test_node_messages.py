"""What a node tells its operator: whom it follows, who is missing, who votes, and who is of another cluster."""

import asyncio
import logging
import socket
from collections.abc import Coroutine
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.network.requests import RequestContext
from kquorum.node.foreign_cluster import EVERY_MS, MAX_REMEMBERED, ForeignClusters, Seldom
from kquorum.node.leader_watch import LeaderWatch, who_is_missing, why_no_election
from kquorum.node.logs import log as notable_log
from kquorum.node.peers import Answer, Heard, PeerWatch
from kquorum.node.voter_watch import VoterWatch
from kquorum.raft.errors import NotLeaderError
from kquorum.raft.inputs import FailureReason, Input, RequestFailed, ResponseReceived
from kquorum.raft.messages import (
    MAX_EPOCH,
    DescribeQuorumResponse,
    FetchResponse,
    ReplicaStatus,
    VoteResponse,
)
from kquorum.raft.ready import RoleChanged, VotersChanged
from kquorum.raft.voters import NO_VOTERS, ZERO_DIRECTORY, Endpoint, ReplicaKey, Voter, VoterSet
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import RequestHeader
from kquorum.wire.uuids import uuid_to_text
from tests.support.api_calls import Values
from tests.support.node_logs import warnings
from tests.support.running_controllers import RunningController, eventually

OURS, THEIRS = "a3F1b3J1bS1leGFtcGxlMQ", "b3F1b3J1bS1leGFtcGxlMQ"
PLACES = {peer: Endpoint("CONTROLLER", "127.0.0.1", 21300 + peer) for peer in (-2, 1, 2, 3)}
OLD, NEW = UUID(int=7 << 64), UUID(int=8 << 64)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 20))


def voters(*keys: ReplicaKey) -> VoterSet:
    return VoterSet.of(*(Voter(key) for key in keys))


ONE, TWO, THREE, OTHER_THREE = ReplicaKey(1, OLD), ReplicaKey(2, OLD), ReplicaKey(3, OLD), ReplicaKey(3, NEW)


ALL_THREE = voters(ONE, TWO, THREE)


class TestWhoIsMissing:
    def told(self, heard: dict[int, Heard], known: VoterSet = ALL_THREE) -> str:
        return who_is_missing(1, known, (-2,), PLACES.get, heard.get)

    def test_each_silent_voter_is_named_with_its_address_and_the_reason(self) -> None:
        heard = {2: Heard(Answer.NONE, "Connection refused"), 3: Heard(Answer.NONE, "timed out")}
        assert self.told(heard) == (
            "no answer from 2 (127.0.0.1:21302: Connection refused), 3 (127.0.0.1:21303: timed out); "
            "2 of 3 voters are needed"
        )

    def test_who_is_silent_comes_first_and_the_others_are_distinguished(self) -> None:
        heard = {2: Heard(Answer.USEFUL), 3: Heard(Answer.NONE, "timed out")}
        assert self.told(heard).startswith("no answer from 3 (127.0.0.1:21303: timed out); answering: 2 (")
        assert self.told({2: Heard(Answer.FOREIGN)}).startswith(
            "of another cluster: 2 (127.0.0.1:21302); not asked"
        )

    def test_one_voter_is_needed_and_not_several(self) -> None:
        alone = voters(ReplicaKey(2, OLD))
        assert self.told({2: Heard(Answer.NONE, "timed out")}, alone).endswith("1 of 1 voter is needed")

    def test_without_known_voters_the_bootstrap_servers_are_meant(self) -> None:
        told = self.told({-2: Heard(Answer.NONE, "timed out")}, NO_VOTERS)
        assert told == "no answer from 127.0.0.1:21298 (timed out); the voters are not known yet"


class Leaders:
    """A LeaderWatch that warns after 20 ms and then every 40, with a leader when the test says so."""

    def __init__(self) -> None:
        self.is_led = False
        self.watch = LeaderWatch(lambda: self.is_led, lambda: "no answer from 2", first_ms=20, next_ms=40)

    def take(self, role: str, epoch: int, leader_id: int = -1) -> None:
        self.watch.handle_role(RoleChanged(role, epoch, "a test"), leader_id)


def on_terminal(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == notable_log.name]


@pytest.fixture
def heard_lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def test_a_missing_leader_is_warned_of_until_it_is_there(heard_lines: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        leaders = Leaders()
        leaders.watch.start()
        await eventually(lambda: len(warnings(heard_lines)) >= 2)
        assert "waiting for a leader for 0 s: no answer from 2" in warnings(heard_lines)
        leaders.is_led = True
        leaders.take("follower", 3, leader_id=2)
        await eventually(lambda: leaders.watch._timer is None)
        assert on_terminal(heard_lines) == ["follows 2 in epoch 3: a test"]

    run(work())


def test_going_back_to_a_leader_that_was_given_up_is_no_leader(heard_lines: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        leaders = Leaders()
        leaders.take("follower", 3, leader_id=2)
        leaders.take("prospective", 3, leader_id=2)
        leaders.take("follower", 3, leader_id=2)
        await eventually(lambda: bool(warnings(heard_lines)))
        assert on_terminal(heard_lines) == ["follows 2 in epoch 3: a test"]
        leaders.is_led = True
        await eventually(lambda: len(on_terminal(heard_lines)) == 2)
        assert on_terminal(heard_lines)[-1] == "follows 2 in epoch 3 again"

    run(work())


def test_the_last_epoch_is_named_as_the_reason_for_no_leader() -> None:
    """However many answer, no node can be elected in a later one: to look for silent peers would be in vain."""
    assert why_no_election(MAX_EPOCH - 1) is None
    reason = why_no_election(MAX_EPOCH)
    assert reason is not None
    assert f"epoch {MAX_EPOCH} is the last one there is" in reason
    page = (Path(__file__).resolve().parents[3] / "docs" / "troubleshooting.md").read_text()
    assert "## The epochs are used up" in page


def test_a_node_that_leaves_misses_no_peer(heard_lines: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        leaders = Leaders()
        leaders.watch.close()
        leaders.take("resigned", 3)
        assert leaders.watch._timer is None

    run(work())
    assert on_terminal(heard_lines) == ["resigned in epoch 3: a test"]


def test_the_outcome_of_a_request_is_noted_and_passed_on() -> None:
    passed: list[Input] = []
    foreign: list[int] = []
    watch = PeerWatch(passed.append, foreign.append, {3: "Connection refused"}.get)
    assert watch.last_from(2) is None
    events: list[Input] = [
        ResponseReceived(1, 2, VoteResponse()),
        RequestFailed(2, 3, FailureReason.DISCONNECTED),
        RequestFailed(3, 4, FailureReason.TIMED_OUT),
        ResponseReceived(4, 5, FetchResponse(error=ErrorCode.inconsistent_cluster_id, is_top_level=True)),
    ]
    for event in events:
        watch.receive(event)
    assert passed == events
    assert watch.last_from(2) == Heard(Answer.USEFUL)
    assert watch.last_from(3) == Heard(Answer.NONE, "Connection refused")
    assert watch.last_from(4) == Heard(Answer.NONE, "timed out")
    assert watch.last_from(5) == Heard(Answer.FOREIGN)
    assert foreign == [5]


class TestAnotherCluster:
    def test_the_error_has_both_ids(self, heard_lines: pytest.LogCaptureFixture) -> None:
        def answer(request: ControllerRequest) -> Values:
            assert request.api_key is ApiKey.DESCRIBE_CLUSTER
            values: dict[str, object] = {
                "throttle_time": 0,
                "error_code": ErrorCode.none,
                "error_message": None,
            }
            return values | {"cluster_id": THEIRS, "controller_id": 2, "brokers": (), "endpoint_type": 2}

        async def work() -> None:
            async with RunningController(2, answer) as controller:
                address = controller.address
                assert address is not None
                clusters = ForeignClusters(OURS, 1, lambda: 0)
                for _ in range(3):
                    clusters.was_refused_by(2, Endpoint("CONTROLLER", address.host, address.port))
                await eventually(lambda: bool(warnings(heard_lines)))

        run(work())
        (told,) = warnings(heard_lines)
        assert f"belongs to cluster {THEIRS}, but this is node 1 of cluster {OURS}" in told
        assert f"kquorum format --cluster-id {THEIRS}" in told

    def test_a_peer_that_does_not_say_which(self, heard_lines: pytest.LogCaptureFixture) -> None:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            endpoint = Endpoint("CONTROLLER", "127.0.0.1", closed.getsockname()[1])

            async def work() -> None:
                ForeignClusters(OURS, 1, lambda: 0).was_refused_by(2, endpoint)
                await eventually(lambda: bool(warnings(heard_lines)))

            run(work())
        assert "belongs to cluster (unknown)" in warnings(heard_lines)[0]

    def test_a_refusal_names_the_refused_client(self, heard_lines: pytest.LogCaptureFixture) -> None:
        class Request:
            def __init__(self, cluster_id: str | None) -> None:
                self.cluster_id = cluster_id

        header = RequestHeader(ApiKey.FETCH, 17, 1, "raft-client-4")
        context = RequestContext(1, "10.0.0.4", "CONTROLLER", header)

        async def work() -> None:
            clusters = ForeignClusters(OURS, 1, lambda: 0)
            for cluster_id in (OURS, None, THEIRS, THEIRS):
                clusters.look_at(context, Request(cluster_id))
            clusters.look_at(context, object())

        run(work())
        (told,) = warnings(heard_lines)
        assert told.startswith(
            f"refused raft-client-4 at 10.0.0.4: it belongs to cluster {THEIRS}, but this is node 1"
        )

    def test_each_thing_once_a_minute_and_not_without_end(self) -> None:
        now = [0]
        seldom = Seldom(EVERY_MS, lambda: now[0])
        assert [seldom.allows("a"), seldom.allows("a"), seldom.allows("b")] == [True, False, True]
        assert sum(seldom.allows(number) for number in range(1000)) == MAX_REMEMBERED - 2
        now[0] = EVERY_MS
        assert seldom.allows("a")


class FakeDriver:
    """Leads, and describes the observers it was given."""

    def __init__(self, *observers: ReplicaStatus, leader_id: int = 1) -> None:
        self.leader_id = leader_id
        self.observers = observers

    async def ask(self, _request: object) -> DescribeQuorumResponse:
        if self.leader_id != 1:
            raise NotLeaderError(self.leader_id, 1)
        return DescribeQuorumResponse(leader_id=1, observers=self.observers)


def status(key: ReplicaKey, last_fetch_ms: int) -> ReplicaStatus:
    return ReplicaStatus(
        replica_id=key.id, directory_id=key.directory_id, last_fetch_timestamp_ms=last_fetch_ms
    )


def hand_over(driver: Any, *sets: VoterSet) -> VoterWatch:
    """The sets come into force two seconds apart, the first at 10,000 ms."""
    watch = VoterWatch(1, fetch_timeout_ms=2_000)

    async def work() -> None:
        for index, voter_set in enumerate(sets):
            watch.handle(10_000 + 2_000 * index, driver, VotersChanged(voter_set, 1))
            await asyncio.gather(*watch._tasks)

    run(work())
    return watch


class TestVoters:
    def test_a_node_whose_disk_was_replaced_names_both_directories(
        self, heard_lines: pytest.LogCaptureFixture
    ) -> None:
        new = UUID(int=987)

        async def work() -> None:
            for own, static in ((new, False), (ONE.directory_id, False), (new, True)):
                watch = VoterWatch(1, fetch_timeout_ms=2_000, directory_id=own)
                key = ReplicaKey(1, ZERO_DIRECTORY) if static else ONE
                watch.handle(10_000, FakeDriver(leader_id=2), VotersChanged(voters(key, TWO), 1))

        run(work())
        (told,) = [line for line in on_terminal(heard_lines) if "registered" in line]
        assert told.startswith(
            f"voter 1 is registered with directory {uuid_to_text(ONE.directory_id)}, but this node has directory "
            f"{uuid_to_text(new)}"
        )
        assert "`kquorum quorum remove-voter 1`, then `add-voter 1`" in told

    def test_a_replaced_disk_that_joins_by_itself_asks_for_no_command(
        self, heard_lines: pytest.LogCaptureFixture
    ) -> None:
        """Seconds later `remove-voter` would remove the new one."""

        driver: Any = FakeDriver(leader_id=2)

        async def work() -> None:
            watch = VoterWatch(1, fetch_timeout_ms=2_000, directory_id=UUID(int=987), joins_by_itself=True)
            watch.handle(10_000, driver, VotersChanged(voters(ONE, TWO), 1))

        run(work())
        (told,) = [line for line in on_terminal(heard_lines) if "registered" in line]
        assert "controller.quorum.auto.join.enable" in told
        assert "remove-voter" not in told

    def test_only_changes_are_logged(self, heard_lines: pytest.LogCaptureFixture) -> None:
        both = voters(ONE, TWO)
        moved = both.updated(Voter(TWO, (PLACES[2],)))
        hand_over(FakeDriver(leader_id=2), NO_VOTERS, both, moved, voters(ONE, TWO, THREE))
        assert on_terminal(heard_lines) == [
            "the voters are 1, 2 (kraft.version 1)",
            "the voters are 1, 2, 3 (kraft.version 1)",
        ]

    def test_a_live_voter_whose_place_another_folder_takes(
        self, heard_lines: pytest.LogCaptureFixture
    ) -> None:
        replaced = voters(ONE, TWO, OTHER_THREE)
        hand_over(FakeDriver(status(THREE, 11_900)), ALL_THREE, voters(ONE, TWO), replaced)
        removed, joined = warnings(heard_lines)
        assert removed.startswith(
            "voter 3 (directory AAAAAAAAAAcAAAAAAAAAAA) was removed while it was alive: it fetched 100"
        )
        assert (
            "voter 3 (directory AAAAAAAAAAgAAAAAAAAAAA) joins in place of 3 (directory AAAAAAAAAAcAAAAAAAAAAA)"
            in joined
        )
        assert "two processes run with this id" in joined

    def test_a_voter_that_comes_back_from_the_same_folder(
        self, heard_lines: pytest.LogCaptureFixture
    ) -> None:
        hand_over(FakeDriver(status(THREE, 11_900)), ALL_THREE, voters(ONE, TWO), ALL_THREE)
        assert len(warnings(heard_lines)) == 1

    @pytest.mark.parametrize(
        ("driver", "gone"),
        [
            (FakeDriver(status(THREE, 9_000)), THREE),
            (FakeDriver(), THREE),
            (FakeDriver(status(THREE, 11_900), leader_id=2), THREE),
            (FakeDriver(status(ReplicaKey(3), 11_900)), ReplicaKey(3)),
        ],
        ids=["silent", "never seen", "not the leader", "known by its id alone"],
    )
    def test_no_warning(
        self, heard_lines: pytest.LogCaptureFixture, driver: FakeDriver, gone: ReplicaKey
    ) -> None:
        hand_over(driver, voters(ONE, TWO, gone), voters(ONE, TWO))
        assert not warnings(heard_lines)
