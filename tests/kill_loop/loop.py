"""The loop: a node of a running cluster is killed and started again, time after time, while clients write."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

from kquorum.cli.clients.cluster_client import ClusterClient, run_asking
from kquorum.cli.commands.topics.topic_client import NewTopic, create_topic
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.processes import NodeFailed, wait_until
from kquorum.node.config.addresses import HostPort
from kquorum.raft.adapters.file_log import FOLDER_NAME
from tests.kill_loop.folders import check_folders
from tests.kill_loop.ledger import Ledger
from tests.kill_loop.load import TopicLoad, create_last
from tests.kill_loop.snapshots import SnapshotFolder
from tests.kill_loop.words import Words, bad_lines, log_files
from tests.support.cluster import Cluster, Overrides

BROKER_ID = 101
WAIT_S = 60.0
# How many requests must be acknowledged between two kills, so that each kill meets a cluster at work.
PROGRESS = 5
LATEST_MOMENT_S, LONGEST_DOWN_S = 0.5, 1.0
SNAPSHOT_WAIT_S = 20.0
# What is killed, of a hundred kills.
LEADER, CONTROLLER, ALL, BROKER = "leader", "any controller", "all controllers", "broker"
WEIGHTS = {LEADER: 50, CONTROLLER: 35, ALL: 10, BROKER: 5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`segment_bytes`, `snapshot_bytes` and `retention_bytes` are the nodes' keys, small so that logs roll, snapshots
    are made and logs advance all the time. With `in_snapshot`, the kill of a controller waits for a snapshot that is
    being written; the `partitions` made before the first kill make that last a while."""

    kills: int
    seed: int = 1
    clients: int = 3
    segment_bytes: int = 16 * 1024
    snapshot_bytes: int = 32 * 1024
    retention_bytes: int = 96 * 1024
    in_snapshot: bool = False
    partitions: int = 0

    def overrides(self) -> Overrides:
        return {
            "metadata.log.segment.bytes": self.segment_bytes,
            "metadata.log.max.record.bytes.between.snapshots": self.snapshot_bytes,
            "metadata.max.retention.bytes": self.retention_bytes,
        }

    def longer_logs(self) -> dict[int, Overrides]:
        """Two controllers keep more, so that their logs can be compared far back at the end."""
        key = "metadata.max.retention.bytes"
        return {2: {key: 20 * self.retention_bytes}, 3: {key: -1}}


@dataclass(slots=True)
class Outcome:
    kills: Counter[str] = field(default_factory=Counter)
    requests: dict[str, int] = field(default_factory=dict)
    committed: int = 0
    log_start: int = 0
    segments_seen: int = 0
    snapshots_seen: int = 0
    killed_in_snapshot: int = 0
    torn_tails: int = 0
    restarted: int = 0
    warnings: dict[str, int] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "kills": dict(self.kills),
            "requests": self.requests,
            "committed_offset": self.committed,
            "log_start_offset": self.log_start,
            "segments_seen": self.segments_seen,
            "snapshots_seen": self.snapshots_seen,
            "killed_in_snapshot": self.killed_in_snapshot,
            "torn_tails_cut": self.torn_tails,
            "logs_restarted": self.restarted,
            "warnings": self.warnings,
            "violations": self.violations,
        }


class KillLoop:
    """One run in a folder of its own, which is left to be inspected."""

    def __init__(self, folder: Path, options: Options, say: Callable[[str], None]) -> None:
        self.cluster = Cluster(
            folder,
            controllers=3,
            brokers=1,
            overrides=options.overrides(),
            node_overrides=options.longer_logs(),
        )
        self.ledger = Ledger()
        self.outcome = Outcome()
        self.last_topic = ""
        self._options = options
        self._say = say
        self._random_source = Random(options.seed)
        self._clock = Event()
        ids = self.cluster.node_ids
        self._snapshots = {node_id: SnapshotFolder(self._log_folder(node_id)) for node_id in ids}

    def run(self) -> Outcome:
        """What was done and what is wrong; raises nothing that a node did."""
        with self.cluster as cluster:
            try:
                cluster.start()
                self._preload()
                self._kill_under_load()
                self.last_topic, listed = create_last(*self._broker, self.ledger, "kill-last", WAIT_S)
                self.outcome.violations += self.ledger.violations(listed, "the broker")
                self.outcome.committed = self._settle()
                self._end()
            except (NodeFailed, CliError) as error:
                self.outcome.violations.append(str(error))
        self.judge()
        return self.outcome

    def judge(self) -> None:
        """Look at what the nodes left behind."""
        outcome = self.outcome
        outcome.requests = self.ledger.counts()
        outcome.violations += check_folders(self.data_folders(), self.ledger, outcome.committed)
        words = Words(path for folder in self.data_folders().values() for path in log_files(folder))
        outcome.violations += words.violations
        outcome.torn_tails, outcome.restarted = len(words.torn_bytes), words.restarted
        outcome.warnings = dict(words.warnings)
        for folder in self._snapshots.values():
            outcome.violations += folder.look()
        seen = list(self._snapshots.values())
        outcome.segments_seen = sum(len(folder.segments) for folder in seen)
        outcome.snapshots_seen = sum(len(folder.snapshots) for folder in seen)
        outcome.log_start = max(folder.log_start for folder in seen)

    def data_folders(self) -> Mapping[str, Path]:
        return {f"node {node_id}": self.cluster.data_folder(node_id) for node_id in self.cluster.node_ids}

    # Killing

    def _kill_under_load(self) -> None:
        host, port = self._broker
        with TopicLoad(host, port, self._options.clients, self.ledger, self._random_source) as load:
            for number in range(1, self._options.kills + 1):
                before = self.ledger.acknowledged
                if not load.progressed(before, PROGRESS, WAIT_S):
                    raise NodeFailed(
                        f"hardly any request was acknowledged in {WAIT_S:.0f} s\n{self.cluster.tails()}"
                    )
                what = self._kill()
                self.outcome.kills[what] += 1
                self._say(
                    f"kill {number} of {self._options.kills}: {what}; {self.ledger.acknowledged} acknowledged, "
                    f"{len(self.outcome.violations)} violations"
                )
            if not load.progressed(self.ledger.acknowledged, PROGRESS, WAIT_S):
                raise NodeFailed(f"no progress after the last kill\n{self.cluster.tails()}")

    def _kill(self) -> str:
        """Kill at some moment, look at what is left, start again some time later. Raises NodeFailed."""
        weights = WEIGHTS | ({BROKER: 0} if self._options.in_snapshot else {})
        what = self._random_source.choices(list(weights), weights=list(weights.values()))[0]
        victims = self._victims(what)
        self._check_running()
        self._await_moment(victims[0])
        for node_id in victims:
            self.cluster.kill(node_id)
        self.outcome.killed_in_snapshot += any(self._snapshots[node_id].has_parts() for node_id in victims)
        for node_id in victims:
            self.outcome.violations += self._snapshots[node_id].look()
        self._clock.wait(self._random_source.uniform(0, LONGEST_DOWN_S))
        self.cluster.start_nodes(victims)
        for node_id in victims:
            said = bad_lines(self.cluster.output(node_id))
            self.outcome.violations += [f"node {node_id} started with: {line}" for line in said]
        return what

    def _victims(self, what: str) -> tuple[int, ...]:
        if what == ALL:
            return self.cluster.controller_ids
        if what == BROKER:
            return self.cluster.broker_ids
        if what == LEADER:
            return (self.cluster.leader_id(),)
        return (self._random_source.choice(self.cluster.controller_ids),)

    def _await_moment(self, victim: int) -> None:
        if self._options.in_snapshot:
            wait_until(self._snapshots[victim].has_parts, SNAPSHOT_WAIT_S, interval_s=0.001)
            # Somewhere between the first byte and the rename.
            self._clock.wait(self._random_source.expovariate(1 / 0.05))
        else:
            self._clock.wait(self._random_source.uniform(0, LATEST_MOMENT_S))

    def _check_running(self) -> None:
        ended = [node_id for node_id in self.cluster.node_ids if not self.cluster.is_running(node_id)]
        if ended:
            raise NodeFailed(f"ended without being killed: {ended}\n{self.cluster.tails()}")

    # Before and after

    def _preload(self) -> None:
        """Topics of 100 partitions."""
        host, port = self._broker
        for number in range(self._options.partitions // 100):
            name = f"kill-before-{number}"
            self.ledger.begin(name)
            run_asking(_create(HostPort(host, port), name, 100))
            self.ledger.created(name)

    def _settle(self) -> int:
        """Wait until every controller has all that is committed; answers that offset."""
        committed: list[int] = []

        def is_level() -> bool:
            try:
                status = self.cluster.quorum()
            except CliError:
                return False
            committed.append(status.high_watermark)
            return {voter.lag for voter in status.voters} == {0}

        self.cluster.leader_id(WAIT_S)
        if not wait_until(is_level, WAIT_S):
            raise NodeFailed(f"the controllers were not level within {WAIT_S:.0f} s\n{self.cluster.tails()}")
        return max(committed)

    def _end(self) -> None:
        """SIGTERM, brokers first."""
        self._check_running()
        for node_id in reversed(self.cluster.node_ids):
            status = self.cluster.terminate(node_id)
            if status != ExitStatus.OK:
                self.outcome.violations.append(
                    f"node {node_id} ended with exit status {status} after SIGTERM"
                )

    @property
    def _broker(self) -> tuple[str, int]:
        return "127.0.0.1", self.cluster.ports[BROKER_ID]

    def _log_folder(self, node_id: int) -> Path:
        return self.cluster.data_folder(node_id) / FOLDER_NAME


async def _create(broker: HostPort, name: str, partitions: int) -> None:
    async with ClusterClient([broker], round(WAIT_S * 1000)) as client:
        topic = NewTopic(name=name, partitions=partitions, replication_factor=1, configs={})
        await create_topic(client, topic, round(WAIT_S * 1000), if_not_exists=True)
