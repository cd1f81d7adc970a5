"""Whole replicas (core, driver, file log, transport, listener) in one loop, over loopback TCP."""

import random
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from kquorum.network.server import KafkaServer
from kquorum.raft.adapters.clock import MonotonicWallClock
from kquorum.raft.adapters.driver import RaftDriver
from kquorum.raft.adapters.file_log import FOLDER_NAME, FileLog
from kquorum.raft.adapters.kafka_codec.codec import RAFT_APIS
from kquorum.raft.adapters.quorum_state_file import QuorumStateFile
from kquorum.raft.adapters.raft_requests import RaftRequests
from kquorum.raft.adapters.transport import KafkaTransport, endpoints_of
from kquorum.raft.config import QuorumConfig
from kquorum.raft.node import RaftNode
from kquorum.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from tests.support.state_machines import RecordingStateMachine

HOST = "127.0.0.1"
CLUSTER_ID = "integration"


def voters_at(ports: Sequence[int]) -> VoterSet:
    """Voters 1, 2, ... at these ports."""
    return VoterSet.of(
        *[
            Voter(ReplicaKey(node_id), (Endpoint("CONTROLLER", HOST, port),))
            for node_id, port in enumerate(ports, start=1)
        ]
    )


class ReplicaProcess:
    """One replica as a process would run it; `kill` drops it as SIGKILL would, `start` begins it again."""

    def __init__(self, node_id: int, folder: Path, voters: VoterSet) -> None:
        self.node_id = node_id
        self.folder = folder / f"node-{node_id}" / FOLDER_NAME
        self.voters = voters
        self.clock = MonotonicWallClock()
        self.fatal: list[Exception] = []

    async def start(self) -> None:
        config = QuorumConfig(
            node_id=self.node_id,
            directory_id=UUID(int=100 + self.node_id),
            cluster_id=CLUSTER_ID,
            can_be_voter=self.node_id in self.voters.ids,
            election_timeout_ms=150,
            fetch_timeout_ms=500,
            request_timeout_ms=500,
            fetch_max_wait_ms=100,
        )
        self.log = FileLog(self.folder)
        store = QuorumStateFile(self.folder, self.voters.ids)
        node = RaftNode(
            config, self.voters, self.log.summary(), store.read(), random.Random(), self.clock.now_ms()
        )
        self.state_machine = RecordingStateMachine()
        self.driver = RaftDriver(node, self.log, store, self.clock.now_ms, self.fatal.append)
        endpoints = endpoints_of(self.voters)
        self.transport = KafkaTransport(
            self.node_id, endpoints, config.request_timeout_ms, self.driver.receive
        )
        self.requests = RaftRequests(endpoints, self.driver.receive)
        self.server = KafkaServer(
            host=HOST,
            port=endpoints[self.node_id].port if self.node_id in endpoints else 0,
            handler=self.requests.handle,
            supported=RAFT_APIS,
            listener_name="CONTROLLER",
        )
        await self.server.start()
        self.driver.start(self.state_machine, self.transport, self.requests)

    async def stop(self) -> None:
        """In good order."""
        await self.driver.stop(2000)
        await self._close()

    async def kill(self) -> None:
        """A leader does not hand over. The log is closed when the disk thread has finished, which may take some time on
        a busy machine."""
        self.driver._halt()
        await self.driver.stop(30_000)
        await self._close()

    async def _close(self) -> None:
        self.requests.close()
        self.transport.close()
        await self.server.stop()
        self.log.close()

    @property
    def leads(self) -> bool:
        """Whether its state machine has been told so."""
        leaders = self.state_machine.leaders
        return bool(leaders) and leaders[-1] == (self.node_id, self.driver.leader_epoch)

    def propose(self, *values: bytes) -> int:
        return self.driver.propose(self.clock.now_ms(), self.driver.leader_epoch, values)
