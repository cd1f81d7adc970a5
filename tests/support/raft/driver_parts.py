"""A scripted core and recording parts around a real driver."""

import asyncio
import random
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any
from uuid import UUID

from kquorum.raft.adapters.driver import RaftDriver
from kquorum.raft.config import QuorumConfig
from kquorum.raft.inputs import Input, ShutdownRequested
from kquorum.raft.node import RaftNode
from kquorum.raft.ports import LogSummary, QuorumAt
from kquorum.raft.ready import OutboundRequest, OutboundResponse, QuorumState, Ready
from kquorum.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from kquorum.wire.log_batch import LogBatch, build_batch
from tests.support.memory_log import MemoryLog
from tests.support.quorum_state_memory import QuorumStateMemory
from tests.support.state_machines import RecordingStateMachine

TEST_TIMEOUT_S = 120


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, TEST_TIMEOUT_S))


async def until(condition: Callable[[], object]) -> None:
    """Wait for what the loop or the disk thread will bring about; fails when it does not."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - a condition, not an event of ours
            await asyncio.sleep(0.001)


async def turns(count: int) -> None:
    """Let the loop go round a few times."""
    for _ in range(count):
        await asyncio.sleep(0)


def now_ms() -> int:
    return int(time.monotonic() * 1000)


def batch(offset: int, epoch: int = 1, size: int = 10) -> LogBatch:
    return build_batch(offset, epoch, 1000, [(None, b"v" * size)])


class Journal(list[tuple[Any, ...]]):
    """What happened, in order."""

    def kinds(self) -> list[str]:
        return [entry[0] for entry in self]


class PausePoint:
    """A place in the disk thread where a test can hold the thread back."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._open.set()
        self.reached = 0

    def hold(self) -> None:
        self._open.clear()

    def release(self) -> None:
        self._open.set()

    def pass_through(self) -> None:
        self.reached += 1
        assert self._open.wait(60)


class RecordingLog(MemoryLog):
    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal
        self.flush_pause = PausePoint()
        self.flush_error: Exception | None = None

    def append(self, batches: Sequence[LogBatch]) -> None:
        super().append(batches)
        self._journal.append(("append", *[item.base_offset for item in batches]))

    def truncate_to(self, end_offset: int) -> None:
        super().truncate_to(end_offset)
        self._journal.append(("truncate", end_offset))

    def flush(self) -> int:
        end_offset = super().flush()
        self.flush_pause.pass_through()
        if self.flush_error is not None:
            raise self.flush_error
        self._journal.append(("flush", end_offset))
        return end_offset


class RecordingStateStore(QuorumStateMemory):
    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal
        self.pause = PausePoint()

    def write(self, state: QuorumState) -> None:
        self.pause.pass_through()
        super().write(state)
        self._journal.append(("state", state.leader_epoch))


class RecordingNetwork:
    """Both the transport and the responder."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.responses: list[OutboundResponse] = []

    def send(self, request: OutboundRequest) -> None:
        self._journal.append(("send", request.correlation_id))

    def respond(self, response: OutboundResponse) -> None:
        self._journal.append(("respond", response.request_id))
        self.responses.append(response)


class ScriptedNode:
    """Answers `take_ready` with what the test queued, else with a Ready that asks for nothing."""

    node_id = 1
    leader_id = -1
    leader_epoch = 0
    log_end_offset = 0
    high_watermark = -1
    voters = VoterSet.of(Voter(ReplicaKey(1)))
    kraft_version = 0

    def __init__(self) -> None:
        self.readies: list[Ready] = []
        self.inputs: list[Input] = []
        self.taken = 0
        self.step_error: Exception | None = None
        self.leaves_at_once = True

    def step(self, now_ms: int, event: Input) -> None:
        if self.step_error is not None:
            raise self.step_error
        self.inputs.append(event)

    def take_ready(self, now_ms: int) -> Ready:
        self.taken += 1
        if self.readies:
            return self.readies.pop(0)
        return Ready(is_shut_down=self.leaves_at_once and ShutdownRequested() in self.inputs)

    def propose(self, now_ms: int, leader_epoch: int, values: Sequence[bytes]) -> int:
        return 0

    def resign(self, now_ms: int, leader_epoch: int) -> None:
        pass

    def quorum_at(self, end_offset: int) -> QuorumAt:
        return QuorumAt(self.voters, self.kraft_version)

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        return Endpoint("CONTROLLER", f"c{node_id}", 9093)

    def upgrade_kraft_version(
        self, now_ms: int, leader_epoch: int, kraft_version: int, *, validate_only: bool = False
    ) -> str | None:
        return f"epoch {leader_epoch}, version {kraft_version}, validate_only {validate_only}"

    def inputs_of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.inputs if isinstance(event, kind)]


class Rig:
    """A driver with recording parts; `node` is scripted unless a real one is given."""

    def __init__(self, node: RaftNode | None = None) -> None:
        self.journal = Journal()
        self.script = ScriptedNode()
        self.log = RecordingLog(self.journal)
        self.state_store = RecordingStateStore(self.journal)
        self.state_machine = RecordingStateMachine(self.journal.append)
        self.network = RecordingNetwork(self.journal)
        self.fatal: list[Exception] = []
        self.driver = RaftDriver(node or self.script, self.log, self.state_store, now_ms, self.fatal.append)

    async def start(self) -> None:
        self.driver.start(self.state_machine, self.network, self.network)
        await turns(3)

    async def carry_out(self, *readies: Ready) -> None:
        """Have the driver take these, one a turn."""
        for ready in readies:
            self.script.readies.append(ready)
            self.driver.wake()
            await turns(2)


class FixedRandomSource:
    def __init__(self) -> None:
        self._random = random.Random(1)

    def randint(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


def sole_voter() -> RaftNode:
    """A real core that elects itself at once."""
    directory_id = UUID(int=7)
    config = QuorumConfig(node_id=1, directory_id=directory_id, cluster_id="c", can_be_voter=True)
    voters = VoterSet.of(Voter(ReplicaKey(1)))
    return RaftNode(config, voters, LogSummary(), None, FixedRandomSource(), now_ms())


def follower_of(leader_id: int) -> RaftNode:
    """A real core, voter 1, that remembers this leader of epoch 1, and has no log."""
    config = QuorumConfig(node_id=1, directory_id=UUID(int=7), cluster_id="c", can_be_voter=True)
    voters = VoterSet.of(*(Voter(ReplicaKey(node_id)) for node_id in (1, leader_id)))
    state = QuorumState(leader_epoch=1, leader_id=leader_id)
    return RaftNode(config, voters, LogSummary(), state, FixedRandomSource(), now_ms())
