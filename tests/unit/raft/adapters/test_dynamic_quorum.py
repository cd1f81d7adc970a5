"""A dynamic quorum on real sockets and files: from one voter to two and back, without a static list anywhere."""

import asyncio
import random
from pathlib import Path
from typing import Any
from uuid import UUID

from kquorum.network.api_versions import ServerFeatures, SupportedFeature
from kquorum.network.requests import Reply, RequestContext
from kquorum.network.server import KafkaServer
from kquorum.raft.adapters.clock import MonotonicWallClock
from kquorum.raft.adapters.driver import RaftDriver
from kquorum.raft.adapters.election_log import ElectionLog, read_elections
from kquorum.raft.adapters.file_log import FOLDER_NAME, FileLog
from kquorum.raft.adapters.kafka_codec.codec import RAFT_APIS
from kquorum.raft.adapters.quorum_checkpoint import write_quorum_checkpoint
from kquorum.raft.adapters.quorum_state_file import QuorumStateFile
from kquorum.raft.adapters.raft_requests import RaftRequests
from kquorum.raft.adapters.transport import KafkaTransport
from kquorum.raft.config import QuorumConfig
from kquorum.raft.messages import AddRaftVoterRequest, ChangeVotersResponse, RemoveRaftVoterRequest
from kquorum.raft.node import RaftNode
from kquorum.raft.ready import RoleChanged
from kquorum.raft.voters import NO_VOTERS, Endpoint, ReplicaKey, VersionRange, Voter, VoterSet
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.driver_parts import Journal, run, until
from tests.support.state_machines import RecordingStateMachine

HOST = "127.0.0.1"
CLUSTER = "dynamic"
# An election takes two votes on the disk, each of them two fsyncs, which on a busy machine last 100 ms and more.
ELECTION_TIMEOUT_MS = 500


class Member:
    """One replica as a process would run it. Its port is known once it listens, so `listen` comes before `start`."""

    def __init__(self, node_id: int, tmp_path: Path) -> None:
        self.key = ReplicaKey(node_id, UUID(int=100 + node_id))
        self.folder = tmp_path / f"node-{node_id}" / FOLDER_NAME
        self.clock = MonotonicWallClock()
        self.fatal: list[Exception] = []
        self.journal = Journal()

    async def listen(self) -> Endpoint:
        self.server = KafkaServer(
            host=HOST, port=0, handler=self._handle, supported=RAFT_APIS,
            listener_name="CONTROLLER",
            features=lambda: ServerFeatures(supported=(SupportedFeature("kraft.version", 0, 1),)),
        )  # fmt: skip
        await self.server.start()
        self.endpoint = Endpoint("CONTROLLER", HOST, self.server.bound_port)
        return self.endpoint

    def _handle(self, context: RequestContext, request: Any, reply: Reply) -> None:
        self.requests.handle(context, request, reply)

    @property
    def voter(self) -> Voter:
        return Voter(self.key, (self.endpoint,), VersionRange(0, 1))

    def start(self, *bootstrap_servers: Endpoint) -> None:
        config = QuorumConfig(
            node_id=self.key.id, directory_id=self.key.directory_id, cluster_id=CLUSTER, can_be_voter=True,
            endpoints=(self.endpoint,), bootstrap_servers=bootstrap_servers, election_timeout_ms=ELECTION_TIMEOUT_MS,
            fetch_timeout_ms=1000, request_timeout_ms=1000, fetch_max_wait_ms=100,
        )  # fmt: skip
        self.log = FileLog(self.folder)
        self.elections = ElectionLog(self.folder)
        store = QuorumStateFile(
            self.folder, lambda: self.driver.in_force.voters.ids, lambda: self.driver.in_force.kraft_version
        )
        now_ms = self.clock.now_ms
        node = RaftNode(
            config, NO_VOTERS, self.log.summary(), store.read(), random.Random(self.key.id), now_ms()
        )
        self.driver = RaftDriver(
            node, self.log, store, now_ms, self.fatal.append, on_role_change=self._role_changed
        )
        self.transport = KafkaTransport(self.key.id, {}, config.request_timeout_ms, self.driver.receive)
        self.requests = RaftRequests({}, self.driver.receive)
        self.driver.start(RecordingStateMachine(self.journal.append), self.transport, self.requests)

    def _role_changed(self, change: RoleChanged) -> None:
        self.elections.record(self.clock.now_ms(), self.key.id, change, self.driver.leader_id)

    async def stop(self) -> None:
        await self.driver.stop(2000)
        self.requests.close()
        self.transport.close()
        await self.server.stop()
        self.log.close()
        assert self.fatal == []

    @property
    def leads(self) -> bool:
        return ("leader", self.key.id, self.driver.leader_epoch) in self.journal

    async def add(self, other: "Member") -> ChangeVotersResponse:
        request = AddRaftVoterRequest(
            cluster_id=CLUSTER, timeout_ms=600, voter=other.key, endpoints=(other.endpoint,)
        )
        response = await self.driver.ask(request)
        assert isinstance(response, ChangeVotersResponse)
        return response


async def two_voters(tmp_path: Path) -> tuple[Member, Member]:
    first, second = Member(1, tmp_path), Member(2, tmp_path)
    bootstrap = await first.listen()
    await second.listen()
    write_quorum_checkpoint(first.folder, VoterSet.of(first.voter), 1000)
    first.start()
    second.start(bootstrap)
    await until(lambda: first.leads)
    first.driver.propose(first.clock.now_ms(), first.driver.leader_epoch, [b"one"])
    await until(lambda: second.driver.applied_offset == first.driver.log_end_offset)
    response = await first.add(second)
    done = {ErrorCode.none}
    while response.error is ErrorCode.request_timed_out:
        # Not caught up yet, or its own report was in the way; or the commit came too late, and then it is done.
        done.add(ErrorCode.duplicate_voter)
        await asyncio.sleep(0.02)
        response = await first.add(second)
    assert response.error in done, response.message
    both = VoterSet.of(first.voter, second.voter)
    await until(lambda: first.driver.voters == both)
    return first, second


def test_a_voter_is_added_and_leads_and_the_first_one_is_removed(tmp_path: Path) -> None:
    async def scenario() -> None:
        first, second = await two_voters(tmp_path)
        both = VoterSet.of(first.voter, second.voter)
        await until(lambda: second.driver.voters == first.driver.voters == both)
        offset = await first.driver.read_linearizable()
        assert offset == first.driver.high_watermark
        handed = await first.driver.transfer_leadership(2)
        assert handed.error is ErrorCode.none, handed.message
        assert first.driver.leader_id == second.driver.leader_id == 2
        await until(lambda: second.leads)
        removal = RemoveRaftVoterRequest(cluster_id=CLUSTER, voter=first.key)
        removed = await second.driver.ask(removal)
        assert isinstance(removed, ChangeVotersResponse)
        assert removed.error is ErrorCode.none, removed.message
        assert second.driver.voters == VoterSet.of(second.voter)
        await second.driver.read_linearizable()
        await first.stop()
        await second.stop()
        roles = [(event.node_id, event.role) for event in read_elections(second.folder)]
        assert (2, "leader") in roles

    run(scenario())


def test_the_next_process_knows_the_voters_from_its_log(tmp_path: Path) -> None:
    async def scenario() -> None:
        first, second = await two_voters(tmp_path)
        expected = first.driver.voters
        await until(lambda: second.driver.voters == expected)
        await second.stop()
        await first.stop()
        assert b'"data_version":1' in (first.folder / "quorum-state").read_bytes()
        for member in (first, second):
            reopened = FileLog(member.folder)
            sets = [record for record in reopened.summary().quorum_records if hasattr(record, "voters")]
            assert sets[-1].voters == expected
            reopened.close()

    run(scenario())


def test_a_voter_that_comes_back_at_another_port_is_found_there(tmp_path: Path) -> None:
    async def scenario() -> None:
        first, second = await two_voters(tmp_path)
        await second.stop()
        again = Member(2, tmp_path)
        await again.listen()
        assert again.endpoint != second.endpoint
        again.start(first.endpoint)
        await until(lambda: first.leads or again.leads)
        moved = VoterSet.of(first.voter, again.voter)
        await until(lambda: first.driver.voters == again.driver.voters == moved)
        leader = first if first.driver.leader_id == 1 else again
        last = leader.driver.propose(leader.clock.now_ms(), leader.driver.leader_epoch, [b"two"])
        await until(lambda: min(first.driver.applied_offset, again.driver.applied_offset) > last)
        await again.stop()
        await first.stop()

    run(scenario())
