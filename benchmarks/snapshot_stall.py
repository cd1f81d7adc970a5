"""How long commits wait while a snapshot is written beside them.

    python -m benchmarks.snapshot_stall [--partitions 100000] [--rounds 3] [--fast] [--json] [--folder DIR]

One controller's core with its driver, `FileLog` and fdatasync, the sole voter, in one event loop; a record of 100
bytes is proposed every 2 ms. The time of a commit counts from when it was due to when the state machine has it, so a
loop that stands still is not excused. Measured in turn, round for round, in one run:

- `alone`: nothing else goes on;
- `beside a snapshot`: `SnapshotManager` writes one, as a node does (image to records, lz4, fsync, read back, rename);
- `beside a hasty one`: the same bytes written as fast as they can be, without rests and with the interpreter's usual
  turns: what the pace is for.

The image has topics of 100 partitions with three replicas. The limit is `alone`. `longest` is the longest commit of a
round, as the median over the rounds, for others use the machine as well; `longest of all` excuses nothing.
"""

import argparse
import asyncio
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import median
from uuid import UUID

import uvloop

from benchmarks._report import hardware, percentile, print_result
from kquorum.metadata.adapters.snapshot_manager import SnapshotManager, SnapshotSettings
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.snapshot import SnapshotContent, snapshot_batches
from kquorum.raft.adapters.clock import MonotonicWallClock
from kquorum.raft.adapters.disk_thread import DiskThread
from kquorum.raft.adapters.driver import RaftDriver
from kquorum.raft.adapters.file_log import FOLDER_NAME, FileLog
from kquorum.raft.adapters.quorum_state_file import QuorumStateFile
from kquorum.raft.config import QuorumConfig
from kquorum.raft.node import RaftNode
from kquorum.raft.ports import QuorumAt
from kquorum.raft.ready import OutboundRequest, OutboundResponse
from kquorum.raft.voters import ReplicaKey, Voter, VoterSet
from kquorum.snapshots.adapters.durable_snapshot import write_snapshot
from kquorum.wire.log_batch import LogBatch
from kquorum.wire.metadata_records.features import FeatureLevelRecord
from kquorum.wire.metadata_records.topics import PartitionRecord, TopicRecord
from kquorum.wire.record_batch import CompressionCodec

DEFAULT_PARTITIONS, FAST_PARTITIONS = 100_000, 2_000
PARTITIONS_PER_TOPIC = 100
BROKERS = 12
PERIOD_S = 0.002
ALONE_S, FAST_ALONE_S = 5.0, 0.5
DEFAULT_ROUNDS = 3
VALUE = bytes(100)
METADATA_VERSION = 25
DEADLINE_S = 600.0


def large_image(partitions: int) -> MetadataImage:
    """Made by replaying its records, and standing at offset 0 of epoch 1."""
    delta = MetadataDelta(MetadataImage.empty())
    delta.replay(FeatureLevelRecord(name="metadata.version", feature_level=METADATA_VERSION), 0)
    directories = [UUID(int=(1 << 100) + broker) for broker in range(BROKERS)]
    for number in range(partitions):
        topic_number, index = divmod(number, PARTITIONS_PER_TOPIC)
        topic_id = UUID(int=(1 << 90) + topic_number)
        if index == 0:
            delta.replay(TopicRecord(name=f"topic-{topic_number:06}", topic_id=topic_id), 0)
        replicas = tuple((number + step) % BROKERS for step in range(3))
        record = PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leader_epoch=number % 50,
            partition_epoch=number % 90,
            directories=tuple(directories[replica] for replica in replicas),
        )
        delta.replay(record, 0)
    return delta.apply(Provenance(last_contained_offset=0, last_contained_epoch=1, timestamp_ms=1))


class NoNetwork:
    """A sole voter has no peers."""

    def send(self, request: OutboundRequest) -> None:
        raise AssertionError(request)

    def respond(self, response: OutboundResponse) -> None:
        raise AssertionError(response)


class Commits:
    """The state machine: it only takes the time."""

    is_in_transaction = False

    def __init__(self) -> None:
        self.due_s: deque[float] = deque()
        self.took_ms: list[float] = []
        self.leads = asyncio.Event()

    def handle_commit(self, now_ms: int, batches: Sequence[LogBatch]) -> None:  # noqa: ARG002
        now_s = time.perf_counter()
        for batch in batches:
            if not batch.is_control:
                for _ in range(batch.last_offset - batch.base_offset + 1):
                    self.took_ms.append((now_s - self.due_s.popleft()) * 1000)

    def handle_commit_slice(self, now_ms: int, batches: Sequence[LogBatch]) -> bool:
        self.handle_commit(now_ms, batches)
        return True

    def handle_snapshot(self, now_ms: int, state: object) -> None:  # noqa: ARG002
        raise AssertionError("nothing is loaded here")

    def handle_leader_change(self, now_ms: int, leader_id: int, leader_epoch: int) -> None:  # noqa: ARG002
        self.leads.set()

    def handle_time(self, now_ms: int) -> None:
        """Nothing waits for time."""

    def next_deadline_ms(self) -> int | None:
        return None


class Leader:
    """The node without its network."""

    def __init__(self, folder: Path, clock: MonotonicWallClock) -> None:
        self.folder = folder / FOLDER_NAME
        self.log = FileLog(self.folder)
        voters = VoterSet.of(Voter(ReplicaKey(1)))
        config = QuorumConfig(
            node_id=1, directory_id=UUID(int=7), cluster_id="benchmark-cluster-id00", can_be_voter=True
        )
        node = RaftNode(config, voters, self.log.summary(), None, Random(1), clock.now_ms())
        state = QuorumStateFile(self.folder, lambda: voters.ids, lambda: 0)
        self._clock = clock
        self.driver = RaftDriver(node, self.log, state, clock.now_ms, on_fatal=_raise)
        self.commits = Commits()

    async def start(self) -> None:
        network = NoNetwork()
        self.driver.start(self.commits, network, network)
        await asyncio.wait_for(self.commits.leads.wait(), 30)

    async def stop(self) -> None:
        await self.driver.stop(1000)
        self.log.close()

    async def commit_until(self, is_over: asyncio.Event) -> list[float]:
        """Propose at a steady rate, whatever the loop does meanwhile; answers the latencies in ms."""
        epoch, commits = self.driver.leader_epoch, self.commits
        commits.took_ms = []
        due_s = time.perf_counter()
        while not is_over.is_set():
            while due_s <= time.perf_counter():
                commits.due_s.append(due_s)
                self.driver.propose(self._clock.now_ms(), epoch, (VALUE,))
                due_s += PERIOD_S
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
        while commits.due_s:  # noqa: ASYNC110 - commits come from another thread's flushes
            await asyncio.sleep(PERIOD_S)
        return commits.took_ms


def _raise(error: Exception) -> None:
    raise error


@dataclass(frozen=True, slots=True)
class Phase:
    name: str
    seconds: float
    size_in_bytes: int | None
    took_ms: list[float]


def row(rounds: Sequence[Phase]) -> dict[str, object]:
    """All rounds of one phase."""
    took_ms = [each for phase in rounds for each in phase.took_ms]
    size_in_bytes = rounds[0].size_in_bytes
    return {
        "commits": rounds[0].name,
        "seconds": median(phase.seconds for phase in rounds),
        "MB_written": None if size_in_bytes is None else size_in_bytes / 1e6,
        "count": len(took_ms),
        "p50_ms": percentile(took_ms, 50),
        "p99_ms": percentile(took_ms, 99),
        "longest_ms": median(max(phase.took_ms) for phase in rounds),
        "longest_of_all_ms": max(took_ms),
    }


async def alone(leader: Leader, seconds: float) -> Phase:
    is_over = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, is_over.set)
    return Phase("alone", seconds, None, await leader.commit_until(is_over))


async def beside_a_snapshot(leader: Leader, image: MetadataImage, clock: MonotonicWallClock) -> Phase:
    settings = SnapshotSettings(max_bytes=1, max_interval_ms=0, retention_bytes=-1, retention_ms=-1)
    keeper = SnapshotManager(leader.folder, settings, leader.driver, leader.log, clock.now_ms, _raise)
    keeper.start()
    here = Provenance(last_contained_offset=leader.driver.applied_offset - 1, last_contained_epoch=1)
    image = replace(image, provenance=here)
    keeper.publish(MetadataDelta(image), image)
    path = leader.folder / f"{image.end_offset:020}-{1:010}.checkpoint"
    keeper.handle_commit(clock.now_ms(), leader.log.read_batches(0, 1))
    start_s = time.perf_counter()
    is_over = asyncio.Event()
    waiting = asyncio.get_running_loop().create_task(_until_there(path, is_over))
    took_ms = await leader.commit_until(is_over)
    await waiting
    seconds = time.perf_counter() - start_s
    await keeper.close()
    return Phase("beside a snapshot", seconds, path.stat().st_size, took_ms)


async def _until_there(path: Path, is_over: asyncio.Event) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not path.exists():  # noqa: ASYNC110, ASYNC240 - a file appears, in a folder of memory
            await asyncio.sleep(0.05)
    is_over.set()


async def beside_a_hasty_one(leader: Leader, image: MetadataImage, folder: Path) -> Phase:
    """In a thread as the keeper's, which takes all that it can get."""
    content = SnapshotContent(image=image, quorum=QuorumAt(leader.driver.voters, 0))
    path = folder / content.snapshot_id.file_name
    is_over = asyncio.Event()
    thread = DiskThread(asyncio.get_running_loop(), "hasty")

    def write() -> int:
        batches = snapshot_batches(content, timestamp_ms=1, codec=CompressionCodec.LZ4, rest=lambda: None)
        return write_snapshot(path, content.snapshot_id, batches).size_in_bytes

    sizes: list[int] = []

    def done(size: int) -> None:
        sizes.append(size)
        is_over.set()

    start_s = time.perf_counter()
    thread.submit(write, done, _raise)
    took_ms = await leader.commit_until(is_over)
    seconds = time.perf_counter() - start_s
    await thread.close(1000)
    path.unlink()
    return Phase("beside a hasty one", seconds, sizes[0], took_ms)


async def measure(
    folder: Path, image: MetadataImage, rounds: int, alone_s: float
) -> list[tuple[Phase, Phase, Phase]]:
    clock = MonotonicWallClock()
    leader = Leader(folder, clock)
    await leader.start()
    try:
        await alone(leader, alone_s / 5)
        return [
            (
                await alone(leader, alone_s),
                await beside_a_snapshot(leader, image, clock),
                await beside_a_hasty_one(leader, image, folder),
            )
            for _ in range(rounds)
        ]
    finally:
        await leader.stop()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=DEFAULT_PARTITIONS)
    parser.add_argument("--rounds", type=int, default=DEFAULT_ROUNDS)
    parser.add_argument("--fast", action="store_true", help=f"{FAST_PARTITIONS} partitions: only to try it")
    parser.add_argument("--folder", type=Path, help="where to write; a temporary folder without it")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    machine = hardware()
    partitions = FAST_PARTITIONS if options.fast else options.partitions
    start_s = time.perf_counter()
    image = large_image(partitions)
    made_s = time.perf_counter() - start_s
    alone_s = FAST_ALONE_S if options.fast else ALONE_S
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measured = uvloop.run(measure(Path(folder), image, options.rounds, alone_s))
    settings = {
        "partitions": partitions,
        "rounds": options.rounds,
        "a commit every ms": PERIOD_S * 1000,
        "image made in s": round(made_s, 1),
    }
    tables = {"commit latency": [row(rounds) for rounds in zip(*measured, strict=True)]}
    print_result("snapshot_stall", machine, settings, tables, as_json=options.json)


if __name__ == "__main__":
    main()
